"""Graphs of the shapes that people write, whose nodes note that they ran."""

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType] - generics
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, Send, interrupt
from typing_extensions import TypedDict

from tests.agents.journal import ran
from tests.agents.stories import State, asking, chain, inner_graph, working
from tests.scripted import ProposingModel


class Wanted(TypedDict):
    journal: str


@task
def charge(journal: str) -> str:
    ran(journal, "charge")
    return "charged"


@task
def confirm(journal: str) -> str:
    ran(journal, "confirm?")
    answer = interrupt("Ship?")
    ran(journal, "confirm")
    return answer


@task
def ship(journal: str) -> str:
    ran(journal, "ship")
    return "shipped"


@entrypoint()
async def functional(wanted: Wanted) -> dict[str, str]:
    """Tasks: one that has a side effect, one that asks, one after it."""
    journal = wanted["journal"]
    charged = await charge(journal)
    answer = await confirm(journal)
    return {"all": f"{charged} {answer} {await ship(journal)}"}


def age(state: State) -> dict[str, Any]:
    ran(state["journal"], "age?")
    question = "Age?"
    while not (answer := interrupt(question)).isdigit() or int(answer) < 1:
        continue
    ran(state["journal"], "age")
    return {"answers": [f"age={answer}"]}


looping = chain(age=age)
"""Asks the same text again until the answer will do."""


async def twice_called(state: State) -> dict[str, Any]:
    ran(state["journal"], "caller")
    first = await inner.ainvoke({"journal": state["journal"]})
    second = await inner.ainvoke({"journal": state["journal"]})
    return {"answers": first["answers"] + second["answers"]}


inner = inner_graph()
calling_twice = chain(caller=twice_called)
"""One node calls the same subgraph twice, one call after the other."""


def deeper() -> Any:
    graph = StateGraph(State).add_node("inner", inner_graph()).add_edge(START, "inner")
    return graph.compile()


deep = StateGraph(State).add_node("outer", deeper()).add_edge(START, "outer")
"""A subgraph in a subgraph."""


def persistent() -> Any:
    graph = StateGraph(State)
    graph.add_node("inner_first", asking("inner_first", "Inner A?"))
    graph.add_node("inner_second", asking("inner_second", "Inner B?"))
    graph.add_edge(START, "inner_first").add_edge("inner_first", "inner_second")
    return graph.compile(checkpointer=True)


async def twice_remembered(state: State) -> dict[str, Any]:
    ran(state["journal"], "caller")
    first = await remembered.ainvoke({"journal": state["journal"]})
    second = await remembered.ainvoke({"journal": state["journal"]})
    return {"answers": [*first["answers"], "then", *second["answers"]]}


remembered = persistent()
calling_persistent = chain(caller=twice_remembered)
"""One node calls a subgraph twice that keeps its state from call to call."""


def again(state: State) -> str:
    return "inner" if state.get("answers", []).count("round") < 2 else END


def turn(state: State) -> dict[str, Any]:
    return {"answers": ["round"]}


visiting_persistent = (
    StateGraph(State)
    .add_node("inner", persistent())
    .add_node("turn", turn)
    .add_edge(START, "inner")
    .add_edge("inner", "turn")
    .add_conditional_edges("turn", again, ["inner", END])
)
"""A loop through a subgraph that keeps its state from visit to visit."""


def spread(state: State) -> list[Send]:
    return [Send("each", {"journal": state["journal"]}) for _ in range(2)]


async def one_of_many(state: State) -> dict[str, Any]:
    result = await inner.ainvoke({"journal": state["journal"]})
    return {"answers": result["answers"]}


spreading = (
    StateGraph(State).add_node("each", one_of_many).add_conditional_edges(START, spread, ["each"])
)
"""A fan-out of one subgraph."""


def swallow(state: State) -> dict[str, Any]:
    try:
        answer = interrupt("Swallowed?")
    except Exception as pause:  # the mistake that the README tells of
        return {"answers": [f"swallowed {type(pause).__name__}"]}
    return {"answers": [answer]}


swallowing = chain(swallow=swallow)

attempts: dict[str, int] = {}


def flaky(state: State) -> dict[str, Any]:
    answer = interrupt("Flaky?")
    attempts[state["journal"]] = attempts.get(state["journal"], 0) + 1
    ran(state["journal"], "attempt")
    if attempts[state["journal"]] < 3:
        raise ConnectionError("try again")
    return {"answers": [f"flaky={answer}"]}


retrying = StateGraph(State).add_node(
    "flaky", flaky, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False)
)
retrying.add_edge(START, "flaky")
"""A node with a retry policy: its attempts are one task, and take one answer."""


def jump(state: State) -> Command[Any]:
    answer = interrupt("Where?")
    return Command(goto="landing", update={"answers": [f"jump={answer}"]})


jumping = (
    StateGraph(State)
    .add_node("jump", jump)
    .add_node("landing", asking("landing", "Landed?"))
    .add_edge(START, "jump")
)
"""A node that goes elsewhere by a Command."""


def fill(state: State) -> dict[str, Any]:
    return {"answers": ["filled"]}


def scribble(state: State) -> dict[str, Any]:
    ran(state["journal"], "scribble")
    state.get("answers", []).append("scribbled")
    return {"answers": [interrupt("Go?")]}


scribbling = chain(fill=fill, scribble=scribble)
"""Changes the state in place before it asks, which LangGraph forgets with the run."""

_keeping_nothing = (
    StateGraph(State)
    .add_node("work", working("work"))
    .add_edge(START, "work")
    .compile(checkpointer=False)
)


async def use(state: State) -> dict[str, Any]:
    return {"answers": (await _keeping_nothing.ainvoke({"journal": state["journal"]}))["answers"]}


def use_in_a_thread(state: State) -> dict[str, Any]:
    return {"answers": _keeping_nothing.invoke({"journal": state["journal"]})["answers"]}


keeping_nothing = chain(
    ask=asking("ask", "Go?"), use=use, use_in_a_thread=use_in_a_thread, node=_keeping_nothing
)
"""After a question, graphs that were compiled to keep nothing."""


class Mail(MessagesState):
    journal: str


def call(name: str, id: str, **arguments: Any) -> ToolCall:
    return ToolCall(name=name, args=arguments, id=id, type="tool_call")


@tool
def send(journal: str, to: str) -> str:
    """Send a mail."""
    ran(journal, f"send:{to}")
    return f"sent to {to}"


@tool
def look(journal: str) -> str:
    """Look at the calendar."""
    ran(journal, "look")
    return "free"


def mails_and_a_look(messages: Sequence[BaseMessage]) -> list[ToolCall]:
    """Two equal mails and a look at the calendar, in the journal that the model is told of."""
    journal = str(messages[0].content)
    return [
        call("send", "1", journal=journal, to="a@example.com"),
        call("look", "2", journal=journal),
        call("send", "3", journal=journal, to="a@example.com"),
    ]


def reviewing(mode: Any) -> Any:
    """An agent whose mails are reviewed, and whose looks are not."""
    middleware = HumanInTheLoopMiddleware(interrupt_on={"send": True}, interrupt_mode=mode)
    model = ProposingModel(proposed=mails_and_a_look)
    return create_agent(model, [send, look], middleware=[middleware])


batched = reviewing("batched")
per_call = reviewing("per_call")


@tool
def pay(journal: str) -> str:
    """Pay."""
    answer = interrupt("Pay?")
    ran(journal, f"pay={answer}")
    return answer


@tool
def hand_over(journal: str) -> str:
    """Hand over."""
    answer = interrupt("Hand over?")
    ran(journal, f"hand_over={answer}")
    return answer


def plan(state: Mail) -> dict[str, Any]:
    calls = [
        call("pay", "1", journal=state["journal"]),
        call("hand_over", "2", journal=state["journal"]),
    ]
    return {"messages": [AIMessage("", tool_calls=calls)]}


shared_tools = StateGraph(Mail).add_node("plan", plan).add_node("tools", ToolNode([pay, hand_over]))
shared_tools.add_edge(START, "plan").add_edge("plan", "tools")
"""A classic tool node that runs two asking tools in one task."""
