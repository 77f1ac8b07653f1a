// The TypeScript client v2: it finds out which revision to speak, and it can be asked.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { accepting, filling, output, refusing, texts, url } from "./person.mjs";

const REGION = "Which region should the service deploy to?";

async function call(person, name, args = {}, options = {}) {
  const client = new Client(
    { name: "test", version: "1.0.0" },
    {
      capabilities: { elicitation: { form: {}, url: {} } },
      versionNegotiation: { mode: "auto" },
    },
  );
  client.setRequestHandler("elicitation/create", async (request) => person.reply(request.params));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  try {
    if (options.list) await client.listTools();
    return await client.callTool({ name, arguments: args }, options);
  } finally {
    await client.close();
  }
}

test("an accepted answer resumes the agent", async () => {
  const person = accepting({ Which: "eu-west-1" });
  assert.deepEqual(output(await call(person, "region")), { region: "eu-west-1" });
  assert.deepEqual(person.messages(), [REGION]);
});

for (const [action, past] of [
  ["decline", "declined"],
  ["cancel", "cancelled"],
]) {
  test(`a text question that got a ${action} ends the call`, async () => {
    const result = await call(refusing(action), "region");
    assert.equal(result.isError, true);
    assert.deepEqual(texts(result), [`The request for input was ${past}.`]);
  });

  test(`an agent decides what a ${action} of a relayed question means`, async () => {
    const result = await call(refusing(action), "greeter");
    assert.deepEqual(output(result), { greeting: "Hello, stranger!" });
  });
}

test("a wrong answer is an error with its code, its text and its fields", async () => {
  const wrong = filling({ region: "eu-west-1", replicas: 20 });
  await assert.rejects(call(wrong, "deployment"), (error) => {
    assert.equal(error.code, -32602);
    assert.match(error.message, /Form content does not match requestedSchema/);
    assert.match(JSON.stringify(error.data), /replicas/);
    return true;
  });
});

test("a form is answered with what its fields hold", async () => {
  const content = { region: "eu-west-1", replicas: 3 };
  assert.deepEqual(output(await call(filling(content), "deployment")), content);
});

test("a page is opened and confirmed", async () => {
  const person = filling();
  assert.deepEqual(output(await call(person, "calendar")), { status: "connected" });
  assert.equal(person.asked[0].url, "https://example.com/oauth/calendar/start");
});

test("several rounds are asked one after another", async () => {
  const person = accepting({ What: "tea", How: 5, Why: "warm" });
  const result = await call(person, "survey");
  assert.deepEqual(output(result), { topic: "tea", rating: 5, reason: "warm" });
  assert.equal(person.messages().at(-1), "Why 5 for tea?");
});

test("parallel questions are asked in one round", async () => {
  const person = accepting({ "What goes on the left": "salt", "What goes on the right": "pepper" });
  assert.equal(output(await call(person, "pair")).pair, "salt | pepper");
  assert.equal(person.asked.length, 2);
});

test("an agent's failure is an error result without its inside", async () => {
  const result = await call(refusing("cancel"), "failing");
  assert.equal(result.isError, true);
  assert.match(texts(result)[0], /^failing failed \(error [0-9a-f]+\)\.$/);
});

test("an unknown tool is an error of the protocol", async () => {
  await assert.rejects(call(refusing("cancel"), "nobody"), { code: -32602 });
});

test("declared output comes as structured content, which the client has checked", async () => {
  const result = await call(refusing("cancel"), "echo", { message: "é" }, { list: true });
  assert.deepEqual(result.structuredContent, { echo: "é" });
});

test("an argument that a header repeats arrives, listed or not", async () => {
  for (const list of [true, false]) {
    const result = await call(refusing("cancel"), "placed", { region: "é" }, { list });
    assert.deepEqual(output(result), { answer: "é" });
  }
});

test("progress reaches the callback", async () => {
  const reports = [];
  await call(refusing("cancel"), "telling", {}, { onprogress: (each) => reports.push(each) });
  assert.deepEqual(
    reports.map(({ progress, total }) => [progress, total]),
    [
      [0, 100],
      [50, 100],
      [100, 100],
    ],
  );
});

test("a client that declares nothing is told what is needed", async () => {
  const client = new Client(
    { name: "test", version: "1.0.0" },
    { versionNegotiation: { mode: "auto" } },
  );
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  await assert.rejects(client.callTool({ name: "region", arguments: {} }), (error) => {
    assert.equal(error.code, -32021);
    assert.deepEqual(error.data.requiredCapabilities, { elicitation: { form: {} } });
    return true;
  });
  await client.close();
});
