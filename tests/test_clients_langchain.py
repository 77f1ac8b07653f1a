"""LangChain's MCP adapter: agents that are asked by a tool, and pass the question on.

First an agent of this process, whose tools are ours; then two of our own servers, the first of
which has an agent whose tools sit on the second.
"""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from langchain.mcp import MCPAdapter
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from mcp import Client, MCPError

from core.protocol import LATEST
from tests.front import Front
from tests.people import (
    Person,
    Told,
    accepting,
    never,
    official,
    refusing,
    shown,
)
from tests.scripted import agent
from tests.served import CHECKOUT, two_serving
from tests.tables import rows

pytestmark = pytest.mark.anyio

RELAY = CHECKOUT / "tests" / "clients" / "relay" / "langgraph.json"


class Conversation:
    """A run of an agent whose model calls these tools at once, and then is done."""

    def __init__(self, adapter: MCPAdapter, *calls: tuple[str, dict[str, Any]]) -> None:
        self._adapter = adapter
        self._calls = [
            ToolCall(name=name, args=arguments, id=f"call_{number}")
            for number, (name, arguments) in enumerate(calls, start=1)
        ]
        self._agent: Any = None
        self._config: Any = {"configurable": {"thread_id": "t"}}
        self.state: dict[str, Any] = {}

    async def start(self) -> list[Any]:
        """Runs to the first pause; the values of the interrupts that are pending."""
        tools = await self._adapter.list_tools()
        reply = AIMessage("", tool_calls=self._calls)
        self._agent = agent(tools, reply, checkpointer=InMemorySaver())
        return await self._run({"messages": [{"role": "user", "content": "go"}]})

    async def answer(self, answers: dict[str, Any]) -> list[Any]:
        """Answers the only interrupt."""
        return await self._run(Command(resume={"responses": answers}))

    async def answer_each(self, *answers: dict[str, Any]) -> list[Any]:
        """Answers each pending interrupt, in order."""
        interrupts = self.state["__interrupt__"]
        resume = {
            interrupt.id: {"responses": each}
            for interrupt, each in zip(interrupts, answers, strict=True)
        }
        return await self._run(Command(resume=resume))

    async def _run(self, input: Any) -> list[Any]:
        self.state = await self._agent.ainvoke(input, self._config)
        return [interrupt.value for interrupt in self.state.get("__interrupt__", ())]

    def results(self) -> list[ToolMessage]:
        """What the tools came to."""
        return [each for each in self.state["messages"] if isinstance(each, ToolMessage)]


def keys(interrupt: Any) -> list[str]:
    assert interrupt["type"] == "mcp_elicitation"
    return [request["key"] for request in interrupt["requests"]]


def accept(key: str, response: Any) -> dict[str, Any]:
    return {key: {"action": "accept", "content": {"response": response}}}


def text(message: ToolMessage) -> str:
    content: Any = message.content
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


# An agent whose tools are ours.


async def test_the_agent_pauses_with_our_question_and_goes_on_with_the_answer(
    front: Front,
) -> None:
    async with MCPAdapter(front.url) as adapter:
        conversation = Conversation(adapter, ("region", {}))
        (asked,) = await conversation.start()
        (request,) = asked["requests"]
        assert request["message"] == "Which region should the service deploy to?"
        assert request["key"] == "answer-9ef115e0cbdb4042"
        assert await conversation.answer(accept(request["key"], "eu-west-1")) == []
    (result,) = conversation.results()
    assert json.loads(text(result)) == {"region": "eu-west-1"}


async def test_the_call_is_repeated_from_its_start_after_each_answer(
    front: Front, shared_database: str
) -> None:
    before, kept = len(front.calls), rows(shared_database).get("intermezzo_calls", 0)
    async with MCPAdapter(front.url) as adapter:
        conversation = Conversation(adapter, ("survey", {}))
        asked = await conversation.start()
        for answer in ("tea", 5, "warm"):
            (key,) = keys(asked[0])
            asked = await conversation.answer(accept(key, answer))
        assert asked == []
    (result,) = conversation.results()
    assert json.loads(text(result)) == {"topic": "tea", "rating": 5, "reason": "warm"}
    # With three rounds: four calls from the start, each followed by as many answers as there were.
    assert len(front.calls) - before == 1 + 2 + 3 + 4
    # The earlier attempts stay paused until they expire.
    assert rows(shared_database)["intermezzo_calls"] - kept == 4


async def test_a_question_has_the_same_key_in_every_thread(front: Front) -> None:
    async with MCPAdapter(front.url) as adapter:
        (first,), (second,) = [await Conversation(adapter, ("pair", {})).start() for _ in range(2)]
    assert keys(first) == keys(second)


@pytest.mark.parametrize(("action", "past"), [("decline", "declined"), ("cancel", "cancelled")])
async def test_a_refusal_is_a_failed_tool_that_the_agent_reads(
    front: Front, action: str, past: str
) -> None:
    async with MCPAdapter(front.url) as adapter:
        conversation = Conversation(adapter, ("region", {}))
        (key,) = keys((await conversation.start())[0])
        assert await conversation.answer({key: {"action": action}}) == []
    (result,) = conversation.results()
    assert result.status == "error"
    assert text(result) == f"The request for input was {past}."


async def test_parallel_questions_are_one_interrupt_of_the_agent(front: Front) -> None:
    async with MCPAdapter(front.url) as adapter:
        conversation = Conversation(adapter, ("pair", {}))
        (asked,) = await conversation.start()
        left, right = keys(asked)
        await conversation.answer({**accept(left, "salt"), **accept(right, "pepper")})
    (result,) = conversation.results()
    assert json.loads(text(result))["pair"] == "salt | pepper"


async def test_parallel_calls_with_the_same_arguments_stay_two(front: Front) -> None:
    async with MCPAdapter(front.url) as adapter:
        conversation = Conversation(adapter, ("region", {}), ("region", {}))
        one, other = await conversation.start()
        assert keys(one) == keys(other)
        (key,) = keys(one)
        assert await conversation.answer_each(accept(key, "here"), accept(key, "there")) == []
    # Which of the two the adapter asks first differs from run to run.
    regions = sorted(json.loads(text(each))["region"] for each in conversation.results())
    assert regions == ["here", "there"]


async def test_a_wrong_answer_ends_the_agents_run(front: Front) -> None:
    async with MCPAdapter(front.url) as adapter:
        conversation = Conversation(adapter, ("deployment", {}))
        (key,) = keys((await conversation.start())[0])
        wrong = {"region": "eu-west-1", "replicas": 20}
        with pytest.raises(MCPError) as refused:
            await conversation.answer({key: {"action": "accept", "content": wrong}})
    assert refused.value.error.code == -32602
    assert refused.value.error.message == "Form content does not match requestedSchema"


async def test_a_changed_question_makes_the_adapter_raise(front: Front, tmp_path: Path) -> None:
    async with MCPAdapter(front.url) as adapter:
        conversation = Conversation(adapter, ("fickle", {"folder": str(tmp_path)}))
        (key,) = keys((await conversation.start())[0])
        with pytest.raises(ValueError, match="these had none: answer-"):
            await conversation.answer(accept(key, "yes"))


async def test_a_rerun_that_asks_nothing_ignores_the_answers(front: Front, tmp_path: Path) -> None:
    async with MCPAdapter(front.url) as adapter:
        conversation = Conversation(adapter, ("forgetful", {"folder": str(tmp_path)}))
        (key,) = keys((await conversation.start())[0])
        assert await conversation.answer(accept(key, "yes")) == []
    (result,) = conversation.results()
    assert json.loads(text(result)) == {"answer": "not asked"}


async def test_an_agents_failure_is_a_failed_tool_that_the_agent_reads(front: Front) -> None:
    async with MCPAdapter(front.url) as adapter:
        conversation = Conversation(adapter, ("failing", {}))
        assert await conversation.start() == []
    (result,) = conversation.results()
    assert result.status == "error"
    assert text(result).startswith("failing failed (error ")


async def test_structured_content_is_the_messages_artifact(front: Front) -> None:
    async with MCPAdapter(front.url) as adapter:
        conversation = Conversation(adapter, ("echo", {"message": "é"}))
        assert await conversation.start() == []
    (result,) = conversation.results()
    assert result.artifact["structured_content"] == {"echo": "é"}


# An agent of ours whose tools are on another server of ours.


@pytest.fixture(scope="module")
def relay(shared_database: str, front: Front) -> Generator[Front]:
    """Two processes whose agent uses the tools behind `front`."""
    with two_serving(shared_database, RELAY, CONCIERGE_TOOLS=front.url) as relay:
        yield relay


async def relayed(relay: Front, person: Person, request: str) -> list[str]:
    """What the inner tools came to, once a person has answered all that they asked."""
    arguments = {"messages": [{"type": "human", "content": request}]}
    return tool_results(await official(LATEST)(relay.url, person, "concierge", arguments))


def tool_results(told: Told) -> list[str]:
    messages = told.output["messages"]
    assert messages[-1]["content"] == "Done."
    return [
        each["content"] if isinstance(each["content"], str) else each["content"][0]["text"]
        for each in messages
        if each["type"] == "tool"
    ]


async def test_an_inner_form_is_answered_by_the_outer_client(relay: Front) -> None:
    person = accepting(Which="eu-west-1")
    (result,) = await relayed(relay, person, "region please")
    assert json.loads(result) == {"region": "eu-west-1"}
    assert person.messages() == ["Which region should the service deploy to?"]


async def test_inner_rounds_are_asked_one_after_another(relay: Front) -> None:
    person = accepting(What="tea", How=5, Why="warm")
    (result,) = await relayed(relay, person, "survey please")
    assert json.loads(result) == {"topic": "tea", "rating": 5, "reason": "warm"}
    assert len(person.asked) == 3


async def test_an_inner_page_is_opened_by_the_outer_client(relay: Front) -> None:
    person = accepting()
    (result,) = await relayed(relay, person, "calendar please")
    assert json.loads(result) == {"status": "connected"}
    (page,) = person.asked
    assert isinstance(page, mcp_types.ElicitRequestURLParams)
    assert page.url == "https://example.com/oauth/calendar/start"


async def test_a_refusal_reaches_the_inner_agent(relay: Front) -> None:
    greeted, refused = await relayed(relay, refusing("decline"), "greeter region")
    assert json.loads(greeted) == {"greeting": "Hello, stranger!"}
    assert refused == "The request for input was declined."


async def test_two_inner_calls_with_one_key_are_two_questions(relay: Front) -> None:
    arguments = {"messages": [{"type": "human", "content": "region region"}]}
    async with Client(relay.url, mode=LATEST, elicitation_callback=never) as client:
        asked = await client.session.call_tool("concierge", arguments, allow_input_required=True)
        assert isinstance(asked, mcp_types.InputRequiredResult)
        one, other = asked.input_requests or {}
        (digest, inner), (other_digest, other_inner) = one.split(".1/"), other.split(".2/")
        assert (digest, inner) == (other_digest, other_inner)
        answers: dict[str, Any] = {
            other: mcp_types.ElicitResult(action="accept", content={"response": "there"}),
            one: mcp_types.ElicitResult(action="accept", content={"response": "here"}),
        }
        ended = await client.session.call_tool(
            "concierge",
            arguments,
            input_responses=answers,
            request_state=asked.request_state,
            allow_input_required=True,
        )
    assert isinstance(ended, mcp_types.CallToolResult)
    results = tool_results(shown(ended))
    assert [json.loads(each)["region"] for each in results] == ["here", "there"]


async def test_inner_parallel_questions_are_asked_in_one_round(relay: Front) -> None:
    before = len(relay.calls)
    person = accepting(What_goes_on_the_left="salt", What_goes_on_the_right="pepper")
    (result,) = await relayed(relay, person, "pair please")
    assert json.loads(result)["pair"] == "salt | pepper"
    assert len(relay.calls) - before == 2
