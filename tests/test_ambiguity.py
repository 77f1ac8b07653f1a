"""Which pauses are not asked, because an answer could reach another question: on real graphs."""

import asyncio
import operator
import threading
from collections.abc import Callable
from typing import Annotated, Any, cast

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel
from langgraph.types import Command, Interrupt, Send, interrupt
from typing_extensions import TypedDict

from core.ambiguity import Overlaps
from core.cannot_ask import PREFIX, CannotAsk
from core.pending import Pending
from tests import scripted

pytestmark = pytest.mark.anyio

Graph = Pregel[Any, Any, Any, Any]

PAY: ToolCall = {"name": "pay", "args": {"amount": 1}, "id": "a", "type": "tool_call"}
SHIP: ToolCall = {"name": "ship", "args": {"to": "Ada"}, "id": "b", "type": "tool_call"}
LOG: ToolCall = {"name": "log", "args": {"line": "x"}, "id": "c", "type": "tool_call"}


@tool
def pay(amount: int) -> str:
    """Pay, once somebody agrees."""
    return f"pay {interrupt(f'Pay {amount}?')}"


@tool
async def ship(to: str) -> str:
    """Ship, once somebody agrees."""
    return f"ship {interrupt(f'Ship to {to}?')}"


@tool
def log(line: str) -> str:
    """Ask nobody."""
    return line


TOOLS: list[BaseTool] = [pay, ship, log]


class Steps(TypedDict, total=False):
    steps: Annotated[list[Any], operator.add]


def agent(node: Any, *calls: ToolCall) -> Graph:
    """A hand-written agent whose model proposes some calls, and whose node `tools` runs them."""

    def model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("", tool_calls=list(calls))]}

    return (
        StateGraph(MessagesState)
        .add_node("model", model)
        .add_node("tools", node)
        .add_edge(START, "model")
        .add_edge("model", "tools")
        .compile(checkpointer=InMemorySaver())
    )


def steps(node: Any) -> Graph:
    """A graph of one node."""
    return (
        StateGraph(Steps)
        .add_node("node", node)
        .add_edge(START, "node")
        .compile(checkpointer=InMemorySaver())
    )


def asking(question: str) -> CompiledStateGraph[Any, Any, Any, Any]:
    """A graph that asks one question."""

    def ask(state: Steps) -> Steps:
        return {"steps": [interrupt(question)]}

    return StateGraph(Steps).add_node(ask).add_edge(START, "ask").compile()


async def pending(graph: Graph, input: Any = None) -> tuple[Overlaps, list[Pending]]:
    """Run a graph to its pause: what was seen, and what every task of every level waits for."""
    seen = Overlaps()
    config: Any = {"configurable": {"thread_id": "1"}, "callbacks": [seen]}
    await graph.ainvoke({"messages": [], "steps": []} if input is None else input, config)
    return seen, waiting(graph)


def answer(id: str, value: str) -> Command[Any]:
    return Command(resume={id: value})


def waiting(graph: Graph) -> list[Pending]:
    """Every interrupt that a checkpointer holds, as each task lists it."""
    saver = cast("Any", graph).checkpointer
    assert isinstance(saver, InMemorySaver)
    found: list[Pending] = []
    for (_, namespace, _), writes in saver.writes.items():
        for id, channel, value, path in writes.values():
            if channel == "__interrupt__":
                interrupts: list[Interrupt[Any]] = saver.serde.loads_typed(value)
                found += [
                    Pending(
                        id=each.id,
                        value=each.value,
                        schema=None,
                        namespace=namespace,
                        task=id,
                        path=path,
                    )
                    for each in interrupts
                ]
    assert found
    return found


async def refused(graph: Graph, input: Any = None) -> str:
    seen, found = await pending(graph, input)
    with pytest.raises(CannotAsk) as refusal:
        seen.check(graph, found)
    assert str(refusal.value).startswith(PREFIX)
    return str(refusal.value)


async def asked(graph: Graph, input: Any = None) -> list[Pending]:
    seen, found = await pending(graph, input)
    seen.check(graph, found)
    return found


# Why: LangGraph does not know which of a task's tools an answer is for.


async def test_langgraph_gives_an_answer_to_whichever_tool_of_a_task_asks_first() -> None:
    turn = threading.Event()
    first, late = ["pay"], threading.Barrier(2)

    def approval(name: str) -> str:
        """Ask after the other tool when it is not our turn: the order that chance would give."""
        late.wait()
        if first[0] != name:
            turn.wait()
        try:
            return f"{name}: {interrupt(f'{name}?')}"
        finally:
            turn.set()

    @tool("pay")
    def slow_pay(amount: int) -> str:
        """Pay."""
        return approval("pay")

    @tool("ship")
    def slow_ship(to: str) -> str:
        """Ship."""
        return approval("ship")

    graph = agent(ToolNode([slow_pay, slow_ship]), PAY, SHIP)
    config: Any = {"configurable": {"thread_id": "1"}}
    paused = await graph.ainvoke({"messages": []}, config)
    [question] = paused["__interrupt__"]
    assert question.value == "pay?"

    turn.clear()
    first[0] = "ship"
    paused = await graph.ainvoke(answer(question.id, "yes, pay"), config)

    # Shipping was given the answer about paying, and paying is asked for again.
    [question] = paused["__interrupt__"]
    assert question.value == "pay?"
    turn.clear()
    ended = await graph.ainvoke(answer(question.id, "no"), config)
    assert [message.content for message in ended["messages"][-2:]] == ["pay: no", "ship: yes, pay"]


# Refused.


async def test_a_tool_node_that_runs_two_asking_tools_in_one_task_is_not_asked() -> None:
    text = await refused(agent(ToolNode(TOOLS), PAY, SHIP))
    assert '"tools"' in text
    assert "create_agent" in text
    assert "Send" in text


async def test_an_asking_tool_beside_any_other_in_one_task_is_not_asked() -> None:
    # Nobody can know that the other never asks.
    await refused(agent(ToolNode(TOOLS), PAY, LOG))


async def test_a_function_that_runs_a_tool_node_is_seen_through() -> None:
    node = ToolNode(TOOLS)

    def run(state: MessagesState) -> Any:
        return node.invoke(state)

    async def arun(state: MessagesState) -> Any:
        return await node.ainvoke(state)

    await refused(agent(run, PAY, PAY))
    await refused(agent(run, PAY, LOG))
    await refused(agent(arun, PAY, SHIP))
    await refused(agent(arun, PAY, LOG))


async def test_tools_gathered_by_a_node_of_its_own_are_not_asked() -> None:
    async def gather(state: Steps) -> Steps:
        replies = await asyncio.gather(pay.ainvoke({"amount": 1}), ship.ainvoke({"to": "Ada"}))
        return {"steps": list(replies)}

    await refused(steps(gather))


async def test_graphs_gathered_by_a_node_are_not_asked() -> None:
    left, right = asking("Left?"), asking("Right?")

    async def gather(state: Steps) -> Steps:
        replies = await asyncio.gather(left.ainvoke({"steps": []}), right.ainvoke({"steps": []}))
        return {"steps": list(replies)}

    await refused(steps(gather))


async def test_agents_called_by_tools_that_share_a_task_are_not_asked() -> None:
    helper = asking("May I?")

    @tool("pay")
    async def ask_helper(amount: int) -> str:
        """Let another agent pay."""
        return str(await helper.ainvoke({"steps": []}))

    await refused(agent(ToolNode([ask_helper, log]), PAY, LOG))


async def test_a_tool_node_that_asks_before_its_tools_start_is_not_asked() -> None:
    def gate(request: Any, execute: Callable[[Any], Any]) -> Any:
        interrupt(f"{request.tool_call['name']}?")
        return execute(request)

    await refused(agent(ToolNode(TOOLS, wrap_tool_call=gate), PAY, SHIP))


async def test_such_a_tool_node_in_a_subgraph_is_not_asked() -> None:
    inner = agent(ToolNode(TOOLS), PAY, SHIP)
    inner.checkpointer = None
    outer = (
        StateGraph(MessagesState)
        .add_node("inner", inner)
        .add_edge(START, "inner")
        .compile(checkpointer=InMemorySaver())
    )
    assert '"tools"' in await refused(outer)


async def test_such_a_tool_node_is_not_asked_after_an_answer_either() -> None:
    node = ToolNode(TOOLS)

    def approve_then_run(state: MessagesState) -> Any:
        interrupt("Run them?")
        return node.invoke(state)

    graph = agent(approve_then_run, PAY, LOG)
    [first] = await asked(graph)
    await refused(graph, answer(first.id, "yes"))


async def test_a_question_in_a_graph_that_keeps_nothing_is_not_asked() -> None:
    """LangGraph brings no answer there: the graph would ask the same for ever."""
    inner = asking("Left?")
    inner.checkpointer = False

    async def call(state: Steps) -> Steps:
        return {"steps": [await inner.ainvoke({"steps": []})]}

    def call_in_a_thread(state: Steps) -> Steps:
        return {"steps": [inner.invoke({"steps": []})]}

    for node in (call, call_in_a_thread, inner):
        text = await refused(steps(node))
        assert '"node"' in text
        assert "checkpointer=False" in text


async def test_a_graph_that_asks_beside_one_that_does_not_is_not_asked() -> None:
    """LangGraph counts the graphs of a task in the order in which they start."""
    asks, works = asking("May I?"), _one_step("worked")

    async def gather(state: Steps) -> Steps:
        replies = await asyncio.gather(works.ainvoke({"steps": []}), asks.ainvoke({"steps": []}))
        return {"steps": list(replies)}

    await refused(steps(gather))


# Asked.


def _one_step(said: str) -> CompiledStateGraph[Any, Any, Any, Any]:
    def step(state: Steps) -> Steps:
        return {"steps": [said]}

    return StateGraph(Steps).add_node(step).add_edge(START, "step").compile()


@pytest.mark.parametrize("first", [None, "First?"])
async def test_a_node_may_ask_after_tools_and_graphs_that_ran_at_once_and_asked_nothing(
    first: str | None,
) -> None:
    works = _one_step("worked")

    async def gather(state: Steps) -> Steps:
        begun = first and interrupt(first)
        tools = await log.abatch([{"line": "a"}, {"line": "b"}])
        graphs = await asyncio.gather(*(works.ainvoke({"steps": []}) for _ in range(2)))
        return {"steps": [begun, *tools, len(graphs), interrupt("Use these?")]}

    graph = steps(gather)
    found = await asked(graph)
    if first:
        found = await asked(graph, answer(found[0].id, "yes"))
    assert found[-1].value == "Use these?"
    ended = await graph.ainvoke(answer(found[-1].id, "yes"), {"configurable": {"thread_id": "1"}})
    assert ended["steps"] == [first and "yes", "a", "b", 2, "yes"]


async def test_a_tool_may_ask_after_others_that_it_ran_at_once() -> None:
    @tool("pay")
    async def research_then_ask(amount: int) -> str:
        """Look around, then ask."""
        await asyncio.gather(log.ainvoke({"line": "a"}), log.ainvoke({"line": "b"}))
        return str(interrupt("Publish?"))

    [only] = await asked(agent(ToolNode([research_then_ask]), PAY))
    assert only.value == "Publish?"


async def test_a_tool_node_with_a_single_call_is_asked() -> None:
    [only] = await asked(agent(ToolNode(TOOLS), PAY))
    assert only.value == "Pay 1?"


async def test_one_send_for_each_tool_call_is_asked() -> None:
    def model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("", tool_calls=[PAY, SHIP])]}

    def each(state: MessagesState) -> list[Send]:
        last = state["messages"][-1]
        assert isinstance(last, AIMessage)
        return [Send("tools", [call]) for call in last.tool_calls]

    graph = (
        StateGraph(MessagesState)
        .add_node("model", model)
        .add_node("tools", ToolNode(TOOLS))
        .add_edge(START, "model")
        .add_conditional_edges("model", each, ["tools"])
        .compile(checkpointer=InMemorySaver())
    )
    assert {each.value for each in await asked(graph)} == {"Pay 1?", "Ship to Ada?"}


@pytest.mark.parametrize("mode", ["batched", "per_call"])
async def test_create_agent_is_asked_in_both_review_modes(mode: Any) -> None:
    graph = scripted.agent(
        TOOLS,
        AIMessage("", tool_calls=[PAY, {**PAY, "id": "d"}, LOG]),
        middleware=[HumanInTheLoopMiddleware({"pay": True}, interrupt_mode=mode)],
        checkpointer=InMemorySaver(),
    )
    assert len(await asked(graph)) == (1 if mode == "batched" else 2)


async def test_create_agent_whose_tools_ask_is_asked_alone_and_as_a_subgraph() -> None:
    def make(saver: InMemorySaver | None) -> Any:
        reply = AIMessage("", tool_calls=[PAY, SHIP, LOG])
        return scripted.agent(TOOLS, reply, checkpointer=saver)

    outer = (
        StateGraph(MessagesState)
        .add_node("inner", make(None))
        .add_edge(START, "inner")
        .compile(checkpointer=InMemorySaver())
    )
    for graph in (make(InMemorySaver()), outer):
        assert {each.value for each in await asked(graph)} == {"Pay 1?", "Ship to Ada?"}


async def test_tools_one_after_the_other_in_one_node_are_asked() -> None:
    async def first_log(state: Steps) -> Steps:
        line = await log.ainvoke({"line": "x"})
        return {"steps": [line, await pay.ainvoke({"amount": 1})]}

    await asked(steps(first_log))


async def test_a_node_that_runs_several_calls_one_after_the_other_is_asked() -> None:
    by_name = {each.name: each for each in TOOLS}

    async def run(state: MessagesState) -> Any:
        last = state["messages"][-1]
        assert isinstance(last, AIMessage)
        return {"messages": [await by_name[call["name"]].ainvoke(call) for call in last.tool_calls]}

    await asked(agent(run, LOG, PAY, SHIP))


async def test_a_tool_that_uses_a_tool_is_asked() -> None:
    @tool
    async def outer(amount: int) -> str:
        """Pay through another tool."""
        return str(await pay.ainvoke({"amount": amount}))

    async def use(state: Steps) -> Steps:
        return {"steps": [await outer.ainvoke({"amount": 1})]}

    await asked(steps(use))


async def test_graphs_one_after_the_other_in_one_node_are_asked() -> None:
    left, right = asking("Left?"), asking("Right?")

    async def both(state: Steps) -> Steps:
        first = await left.ainvoke({"steps": []})
        return {"steps": [first, await right.ainvoke({"steps": []})]}

    graph = steps(both)
    [*_, first] = await asked(graph)
    assert first.value == "Left?"
    await asked(graph, answer(first.id, "yes"))


async def test_an_agent_called_by_the_only_tool_of_a_task_is_asked() -> None:
    helper = scripted.agent(TOOLS, AIMessage("", tool_calls=[PAY, SHIP]))

    @tool("pay")
    async def ask_helper(amount: int) -> str:
        """Let another agent pay and ship."""
        return str(await helper.ainvoke({"messages": []}))

    found = await asked(agent(ToolNode([ask_helper]), PAY))
    assert {each.value for each in found} == {"Pay 1?", "Ship to Ada?"}


async def test_parallel_nodes_and_fan_outs_are_asked() -> None:
    def ask(state: Any) -> Steps:
        return {"steps": [interrupt("May I?")]}

    def spread(state: Steps) -> list[Send]:
        return [Send("left", state), Send("left", state), Send("right", state)]

    graph = (
        StateGraph(Steps)
        .add_node("left", ask)
        .add_node("right", ask)
        .add_conditional_edges(START, spread, ["left", "right"])
        .compile(checkpointer=InMemorySaver())
    )
    assert len(await asked(graph)) == 3


async def test_tasks_of_the_functional_api_are_asked() -> None:
    @task
    async def approve(name: str) -> str:
        return f"{name}: {interrupt(f'{name}?')}"

    @entrypoint(checkpointer=InMemorySaver())
    async def both(names: list[str]) -> list[str]:
        return list(await asyncio.gather(*[approve(name) for name in names]))

    await asked(cast("Graph", both), ["a", "b"])


async def test_a_node_that_asks_about_several_calls_itself_is_asked() -> None:
    def approve(state: MessagesState) -> Any:
        interrupt("Run both?")

    [only] = await asked(agent(approve, PAY, SHIP))
    assert only.value == "Run both?"
