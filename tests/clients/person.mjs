// A person in front of a client: answers what is asked, and remembers it.

export const url = process.env.MCP_URL;

/** Accepts each question with the response whose key begins its message. */
export function accepting(responses) {
  return person((params) => {
    const start = Object.keys(responses).find((each) => params.message.startsWith(each));
    return { action: "accept", content: { response: responses[start] } };
  });
}

/** Accepts every question with this content; a page has none. */
export function filling(content) {
  return person(() => (content ? { action: "accept", content } : { action: "accept" }));
}

/** Answers every question with this action. */
export function refusing(action) {
  return person(() => ({ action }));
}

function person(answer) {
  const asked = [];
  return {
    asked,
    messages: () => asked.map((params) => params.message),
    reply: (params) => {
      asked.push(params);
      return answer(params);
    },
  };
}

/** The texts of a result. */
export function texts(result) {
  return result.content.map((block) => block.text);
}

/** The agent's output, which is the only text of a result. */
export function output(result) {
  if (result.isError) throw new Error(`an error result: ${texts(result)}`);
  return JSON.parse(texts(result)[0]);
}
