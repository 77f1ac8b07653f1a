"""Agents whose nodes are still at work when something else happens, for `tests.test_at_work`."""

import asyncio
from pathlib import Path
from typing import Annotated, Any, NotRequired

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from typing_extensions import TypedDict

from tests.agents.journal import point, ran
from tests.agents.stories import LONG_KEY, State, append, asking, chain, parallel, working


def async_working(name: str) -> Any:
    """A node that works until the test lets it go."""

    async def node(state: State) -> dict[str, Any]:
        ran(state["journal"], name)
        await _held(state["journal"], name)
        return {"answers": [name]}

    return node


async def _held(journal: str, name: str) -> None:
    folder = Path(journal)
    (folder / f"held-{name}").touch()
    while (folder / f"hold-{name}").exists():  # noqa: ASYNC110 - a test holds it
        await asyncio.sleep(0.005)


def _then_both() -> StateGraph[Any]:
    graph = chain(ask=asking("ask", "Go?"))
    for name in ("charge", "slow"):
        graph.add_node(name, async_working(name)).add_edge("ask", name)
    return graph


both = _then_both().compile()
"""After the answer two nodes at once."""

in_turn = _then_both().compile().with_config({"max_concurrency": 1})
"""The same, of which one waits for the other."""


async def cleaning(state: State) -> dict[str, Any]:
    """Takes its time over ending, whoever asks it to."""
    ran(state["journal"], "cleaning")
    try:
        await _held(state["journal"], "cleaning")
    finally:
        while (Path(state["journal"]) / "hold-cleaned").exists():
            try:
                await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                continue
        ran(state["journal"], "cleaned")
    return {"answers": ["clean"]}


cleans = chain(ask=asking("ask", "Go?"), cleaning=cleaning)

_paying = chain(prepare=working("prepare"), charge=working("charge")).compile()


async def orders(state: State) -> dict[str, Any]:
    """Goes on after a graph that it called."""
    await _paying.ainvoke({"journal": state["journal"]})
    point(state["journal"], "ordered")
    return {"answers": ["ordered"]}


def orders_in_a_thread(state: State) -> dict[str, Any]:
    _paying.invoke({"journal": state["journal"]})
    point(state["journal"], "ordered")
    return {"answers": ["ordered"]}


ordering = chain(ask=asking("ask", "Go?"), orders=orders)
ordering_in_a_thread = chain(ask=asking("ask", "Go?"), orders=orders_in_a_thread)

_pair = parallel(left=working("left"), right=working("right")).compile(checkpointer=False)


async def invokes(state: State) -> dict[str, Any]:
    """Blocks the event loop until the threads of a graph have ended."""
    answers = _pair.invoke({"journal": state["journal"]})["answers"]
    return {"answers": sorted(answers)}


invoking = chain(ask=asking("ask", "Go?"), invokes=invokes)

_one = chain(inner=working("inner")).compile()


@tool
def use(journal: str) -> str:
    """Run a graph."""
    return str(_one.invoke({"journal": journal})["answers"])


_tools = ToolNode([use])


async def invokes_tools(state: State) -> dict[str, Any]:
    """Blocks the event loop until the thread of a tool has ended."""
    call = {"name": "use", "args": {"journal": state["journal"]}, "id": "1", "type": "tool_call"}
    messages = _tools.invoke({"messages": [AIMessage("", tool_calls=[call])]})["messages"]
    return {"answers": [messages[0].content]}


invoking_tools = chain(ask=asking("ask", "Go?"), invokes_tools=invokes_tools)


class Halt(BaseException):
    """As libraries raise it that want to be passed by."""


async def halts(state: State) -> dict[str, Any]:
    ran(state["journal"], "halts")
    raise Halt


async def cancels(state: State) -> dict[str, Any]:
    """Waits for something that is cancelled by others."""
    ran(state["journal"], "cancels")
    waiting = asyncio.get_running_loop().create_future()
    waiting.cancel()
    await waiting
    return {}


def presses_a_key(state: State) -> dict[str, Any]:
    ran(state["journal"], "presses_a_key")
    raise KeyboardInterrupt


halting = chain(ask=asking("ask", "Go?"), halts=halts)
cancelling = chain(ask=asking("ask", "Go?"), cancels=cancels)
pressing = chain(ask=asking("ask", "Go?"), presses_a_key=presses_a_key)
halting_first = chain(halts=halts)
cancelling_first = chain(cancels=cancels)


Wordy = TypedDict(
    "Wordy",
    {"journal": str, "answers": NotRequired[Annotated[list[str], append]], LONG_KEY: list[str]},  # pyright: ignore[reportGeneralTypeIssues] - the name is no literal
)


def wordy_charge(state: Any) -> dict[str, Any]:
    ran(state["journal"], "charge")
    return {LONG_KEY: ["x"]}


wordy_later = StateGraph(Wordy).add_node("ask", asking("ask", "Go?"))
wordy_later.add_node("charge", wordy_charge).add_node("ship", working("ship"))
wordy_later.add_edge(START, "ask").add_edge("ask", "charge").add_edge("charge", "ship")
"""What a node leaves after the answer is more than the database holds."""
