"""Each example agent, run as LangGraph runs it: what it asks, and what its answers lead to."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Interrupt

from core.catalog import Catalog
from core.results import render

pytestmark = pytest.mark.anyio

CHECKOUT = Path(__file__).parent.parent
CATALOG = Catalog.read(CHECKOUT / "langgraph.json")


class Conversation:
    """One call of one agent: each step runs it to its next questions or its end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._saver = InMemorySaver()
        self._config: RunnableConfig = {"configurable": {"thread_id": name}}

    async def call(self, **arguments: Any) -> Any:
        agent = await CATALOG.agent(self._name)
        return await self._run(agent.input(arguments))

    async def answer(self, *values: Any) -> Any:
        """Answer the pending questions, in the order in which `call` gave them."""
        return await self._run(
            Command(
                resume={
                    question.id: value
                    for question, value in zip(self._pending, values, strict=True)
                }
            )
        )

    async def _run(self, value: Any) -> Any:
        agent = await CATALOG.agent(self._name)
        async with agent.open(self._config, saver=self._saver) as graph:
            output: Any = await graph.ainvoke(value, self._config)
        self._pending: list[Interrupt] = sorted(
            output.pop("__interrupt__", ()), key=lambda question: str(question.value)
        )
        return [question.value for question in self._pending] or output


async def test_every_agent_of_the_catalogue_loads_and_says_what_it_is_for() -> None:
    tools = await CATALOG.tools()
    listed = json.loads((CHECKOUT / "langgraph.json").read_bytes())["graphs"]
    assert [tool.name for tool in tools] == list(listed)
    assert all(tool.description.endswith(".") for tool in tools)
    assert CATALOG.warnings == ()


@pytest.mark.parametrize(
    ("answer", "greeting"),
    [
        ({"action": "accept", "content": {"name": "Ada"}}, "Hello, Ada!"),
        ({"action": "decline"}, "Hello, stranger!"),
        ({"action": "cancel"}, "Hello, stranger!"),
    ],
)
async def test_the_greeter_decides_what_a_refusal_means(
    answer: dict[str, Any], greeting: str
) -> None:
    conversation = Conversation("greeter")
    (question,) = await conversation.call()
    assert question["type"] == "mcp_elicitation"
    output = await conversation.answer({"responses": {"user_name": answer}})
    assert output == {"greeting": greeting}


@pytest.mark.parametrize(
    ("action", "status"), [("accept", "connected"), ("decline", "not connected")]
)
async def test_the_calendar_sends_the_user_to_a_page(action: str, status: str) -> None:
    conversation = Conversation("calendar")
    (question,) = await conversation.call()
    assert question["requests"][0]["url"] == "https://example.com/oauth/calendar/start"
    output = await conversation.answer({"responses": {"calendar_auth": {"action": action}}})
    assert output == {"status": status}


async def test_the_region_is_asked_in_plain_words() -> None:
    conversation = Conversation("region")
    assert await conversation.call() == ["Which region should the service deploy to?"]
    assert await conversation.answer("eu-west-1") == {"region": "eu-west-1"}


async def test_a_deployment_is_asked_with_one_form_and_told_as_in_the_reference() -> None:
    conversation = Conversation("deployment")
    assert await conversation.call() == ["Where should the service deploy?"]
    output = await conversation.answer({"region": "eu-west-1", "replicas": 3})
    tool = await CATALOG.tool("deployment")
    assert tool is not None
    assert render(output, tool=tool).content == [
        {"type": "text", "text": '{"region":"eu-west-1","replicas":3}'}
    ]


async def test_the_pair_asks_two_questions_at_once() -> None:
    conversation = Conversation("pair")
    assert await conversation.call() == ["What goes on the left?", "What goes on the right?"]
    output = await conversation.answer("salt", "pepper")
    assert output == {"left": "salt", "right": "pepper", "pair": "salt | pepper"}


async def test_the_survey_asks_three_questions_one_after_another() -> None:
    conversation = Conversation("survey")
    assert await conversation.call() == ["What would you like to review?"]
    assert await conversation.answer("the tram") == ["How do you rate it?"]
    assert await conversation.answer(4) == ["Why 4 for the tram?"]
    output = await conversation.answer("on time")
    assert output == {"topic": "the tram", "rating": 4, "reason": "on time"}


async def test_the_echo_never_asks() -> None:
    assert await Conversation("echo").call(message="hi") == {"echo": "hi"}
    tool = await CATALOG.tool("echo")
    assert tool is not None
    result = render({"echo": "hi"}, tool=tool)
    assert result.structured == {"echo": "hi"}
    assert tool.problem({"message": "hi"}) is None
    assert tool.problem({}) == 'Invalid arguments for echo: "message" is a required property'


@pytest.mark.parametrize(("name", "per_interrupt"), [("mailer", 2), ("mailer_per_call", 1)])
async def test_the_mailer_sends_what_was_approved(name: str, per_interrupt: int) -> None:
    conversation = Conversation(name)
    request = "Write to ada@example.com and bob@example.com about Launch"
    questions = await conversation.call(messages=[{"role": "user", "content": request}])
    assert len(questions) == 2 // per_interrupt
    approve: Any = {"type": "approve"}
    decision: Any = {"decisions": [approve] * 2} if name == "mailer" else approve
    output = await conversation.answer(*[decision] * len(questions))
    tool = await CATALOG.tool(name)
    assert tool is not None
    (told,) = render(output, tool=tool).content
    last = json.loads(told["text"])["messages"][-1]["content"]
    assert last == 'Sent "Launch" to ada@example.com.\nSent "Launch" to bob@example.com.'
