"""Agents whose nodes note that they ran, for the tests of rounds, claims and crashes."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NotRequired

from langgraph.config import get_store
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt
from pydantic import AfterValidator, BaseModel, field_validator
from typing_extensions import TypedDict

from tests.agents.journal import point, ran


def append(left: list[str], right: list[str]) -> list[str]:
    return left + right


def merge(state: list[Any], updates: Sequence[Any]) -> list[Any]:
    """What a delta channel holds after the updates of a superstep."""
    return [*state, *(each for update in updates for each in update)]


class State(TypedDict):
    journal: str
    answers: NotRequired[Annotated[list[str], append]]


def asking(name: str, question: str) -> Any:
    """A node that asks one question and notes when it ran past it."""

    def node(state: State) -> dict[str, Any]:
        ran(state["journal"], f"{name}?")
        answer = interrupt(question)
        point(state["journal"], name)
        ran(state["journal"], name)
        return {"answers": [f"{name}={answer}"]}

    return node


def working(name: str) -> Any:
    """A node that asks nothing."""

    def node(state: State) -> dict[str, Any]:
        point(state["journal"], name)
        ran(state["journal"], name)
        return {"answers": [name]}

    return node


def line(schema: Any, **nodes: Any) -> StateGraph[Any]:
    """Nodes that run one after another."""
    graph = StateGraph(schema)
    previous = START
    for name, node in nodes.items():
        graph.add_node(name, node)
        graph.add_edge(previous, name)
        previous = name
    return graph


def chain(**nodes: Any) -> StateGraph[Any]:
    return line(State, **nodes)


def parallel(**nodes: Any) -> StateGraph[Any]:
    graph = StateGraph(State)
    for name, node in nodes.items():
        graph.add_node(name, node)
        graph.add_edge(START, name)
    return graph


one = chain(before=working("before"), ask=asking("ask", "Go?"))
"""A node that works, then one that asks."""

then = chain(ask=asking("ask", "Go?"), charge=working("charge"), ship=working("ship"))
"""After the answer two nodes work, one after the other."""

two = chain(first=asking("first", "First?"), second=asking("second", "Second?"))
"""Two rounds, in two nodes."""

same = chain(first=asking("first", "Sure?"), second=asking("second", "Sure?"))
"""Two rounds with the same question."""

pair = parallel(left=asking("left", "Left?"), right=asking("right", "Right?"))
"""Two questions at once."""


def both(state: State) -> dict[str, Any]:
    ran(state["journal"], "both")
    name = interrupt("Name?")
    point(state["journal"], "both-named")
    colour = interrupt("Colour?")
    point(state["journal"], "both")
    return {"answers": [f"{name}={colour}"]}


twice = chain(both=both)
"""One node that asks twice."""


def moving(state: State) -> dict[str, Any]:
    ran(state["journal"], "moving?")
    first = interrupt("Delete A?")
    ran(state["journal"], "moving-first")
    second = interrupt("Delete B?")
    ran(state["journal"], f"moving={first},{second}")
    return {"answers": [f"moving={first},{second}"]}


drift = parallel(moving=moving, right=asking("right", "Right?"))
"""One branch asks a second question while the other is still at work."""


async def drifting_slow(state: State) -> dict[str, Any]:
    ran(state["journal"], "slow?")
    answer = interrupt("Slow?")
    while (Path(state["journal"]) / "hold-slow").exists():  # noqa: ASYNC110 - a test holds it
        await asyncio.sleep(0.001)
    ran(state["journal"], "slow")
    return {"answers": [f"slow={answer}"]}


drifting = parallel(moving=moving, slow=drifting_slow)
"""The same, beside an async branch that ends with its run."""


def inner_graph() -> Any:
    graph = StateGraph(State)
    graph.add_node("inner_first", asking("inner_first", "Inner A?"))
    graph.add_node("inner_second", asking("inner_second", "Inner B?"))
    graph.add_edge(START, "inner_first")
    graph.add_edge("inner_first", "inner_second")
    return graph.compile()


_inner = inner_graph()

nested = parallel(sub=_inner, right=asking("right", "Right?"))
"""A subgraph of two questions as a node, beside a branch."""


async def calling(state: State) -> dict[str, Any]:
    ran(state["journal"], "calling")
    result = await _inner.ainvoke({"journal": state["journal"]})
    return {"answers": result["answers"]}


called = parallel(sub=calling, right=asking("right", "Right?"))
"""The same subgraph, called inside a node."""


def calling_in_a_thread(state: State) -> dict[str, Any]:
    ran(state["journal"], "calling")
    result = _inner.invoke({"journal": state["journal"]})
    return {"answers": result["answers"]}


called_sync = parallel(sub=calling_in_a_thread, right=asking("right", "Right?"))
"""The same subgraph, run by a sync node."""


async def calling_and_blocking(state: State) -> dict[str, Any]:
    ran(state["journal"], "calling")
    result = _inner.invoke({"journal": state["journal"]})
    return {"answers": result["answers"]}


called_blocking = parallel(sub=calling_and_blocking, right=asking("right", "Right?"))
"""The same subgraph, run by an async node in a way that blocks the event loop."""


def fan(state: State) -> list[Send]:
    return [Send("item", {"journal": state["journal"], "name": name}) for name in "abc"]


class Item(TypedDict):
    journal: str
    name: str


def item(state: Item) -> dict[str, Any]:
    name = state["name"]
    answer = interrupt(f"Item {'c' if name == 'c' else 'x'}?")
    ran(state["journal"], f"item-{name}")
    return {"answers": [f"{name}={answer}"]}


fanned = StateGraph(State).add_node("item", item).add_conditional_edges(START, fan, ["item"])
"""A fan-out of three tasks, two of which ask the same."""


def _not_odd(word: str) -> str:
    if word == "odd":
        raise ValueError("not odd")
    return word


_Word: Any = Annotated[str, AfterValidator(_not_odd)]


def picky_of_words(state: State) -> dict[str, Any]:
    return {"answers": [interrupt("Which word?", response_schema=_Word)]}


choosy_word = chain(picky=picky_of_words)
"""Asks for a word that only Pydantic can judge."""


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("an even number is needed")
        return value


def picky(state: State) -> dict[str, Any]:
    ran(state["journal"], "picky?")
    answer = interrupt("How many?", response_schema=Even)
    ran(state["journal"], "picky")
    return {"answers": [f"picky={answer.number}"]}


choosy = parallel(picky=picky, right=asking("right", "Right?"))
"""A question whose answer only the node can judge, beside one that anybody can."""

choosy_alone = chain(picky=picky)


async def slow(state: State) -> dict[str, Any]:
    ran(state["journal"], "slow?")
    answer = interrupt("Slow?")
    (Path(state["journal"]) / "held-slow").touch()
    while (Path(state["journal"]) / "hold-slow").exists():  # noqa: ASYNC110 - a test holds it
        await asyncio.sleep(0.005)
    ran(state["journal"], "slow")
    return {"answers": [f"slow={answer}"]}


slowly = chain(slow=slow, after=working("after"))
"""An async node that a test can hold."""


async def block(state: State) -> dict[str, Any]:
    ran(state["journal"], "block?")
    answer = interrupt("Block?")
    point(state["journal"], "block")
    ran(state["journal"], "block")
    return {"answers": [f"block={answer}"]}


blocking = chain(block=block)
"""An async node that blocks the event loop while a test holds it."""


def broken(state: State) -> dict[str, Any]:
    answer = interrupt("Fail?")
    raise RuntimeError(f"secret {answer}")


failing = chain(broken=broken)


def url(state: State) -> dict[str, Any]:
    ran(state["journal"], "url?")
    first = interrupt("Form first?")
    reply = interrupt(
        {
            "type": "mcp_elicitation",
            "requests": [
                {
                    "key": "page",
                    "message": "Open it.",
                    "mode": "url",
                    "url": "https://example.com/a",
                }
            ],
        }
    )
    ran(state["journal"], "url")
    return {"answers": [f"{first}:{reply['responses']['page']['action']}"]}


url_later = chain(url=url)
"""A form first, a page in the next round."""

stopping = StateGraph(State).add_node("work", working("work")).add_edge(START, "work")
breakpoint_before = stopping.compile(interrupt_before=["work"])
"""A static breakpoint."""

breakpoint_last = chain(ask=asking("ask", "Go?"), work=working("work")).compile(
    interrupt_after=["work"]
)
"""A static breakpoint behind which nothing is left to do."""


class Answered(TypedDict):
    answers: list[str]


breakpoint_apart = StateGraph(State, output_schema=Answered).add_node("work", working("work"))
breakpoint_apart = breakpoint_apart.add_edge(START, "work").compile(interrupt_before=["work"])
"""A static breakpoint before there is any output."""

done = chain(work=working("work"))
"""Never asks."""

steps = chain(ask=asking("ask", "Go?"), **{f"step{n}": working(f"step{n}") for n in range(4)})
"""Four supersteps after the answer."""


async def remember(state: State) -> dict[str, Any]:
    store = get_store()
    known = await store.aget(("notes",), "last")
    answer = interrupt("Remember what?")
    await store.aput(("notes",), "last", {"text": answer})
    return {"answers": [known.value["text"] if known else "nothing"]}


remembering = chain(remember=remember)
"""An agent that asks for LangGraph's store."""


async def linger(state: State) -> dict[str, Any]:
    ran(state["journal"], "linger?")
    while (Path(state["journal"]) / "hold-slow").exists():  # noqa: ASYNC110 - a test holds it
        await asyncio.sleep(0.005)
    ran(state["journal"], "linger")
    return {"answers": ["lingered"]}


slow_later = chain(ask=asking("ask", "Go?"), linger=linger)
"""After the answer, a node that a test can hold."""


class Huge(State):
    number: NotRequired[dict[str, int]]


def grow(state: State) -> dict[str, Any]:
    return {"number": {"n": 2**70}}


def growing(*nodes: tuple[str, Any]) -> StateGraph[Any]:
    graph = StateGraph(Huge)
    previous = START
    for name, node in nodes:
        graph.add_node(name, node)
        graph.add_edge(previous, name)
        previous = name
    return graph


LONG_KEY = random.Random(0).randbytes(4096).hex()
Wordy = TypedDict("Wordy", {"journal": str, LONG_KEY: list[str]})  # pyright: ignore[reportGeneralTypeIssues] - the name is no literal


def fill(state: Any) -> dict[str, Any]:
    return {LONG_KEY: ["x"]}


def name(state: Any) -> dict[str, Any]:
    return {LONG_KEY: [interrupt("Go?")]}


wordy = StateGraph(Wordy).add_node("fill", fill).add_node("name", name)
wordy.add_edge(START, "fill").add_edge("fill", "name")
"""Has a state key that is longer than an index of PostgreSQL takes, and pauses."""


huge = growing(("grow", grow), ("ask", asking("ask", "Go?")))
"""Keeps a number that LangGraph can't store, and pauses."""

huge_last = growing(("ask", asking("ask", "Go?")), ("grow", grow))

huge_later = growing(("ask", asking("ask", "Go?")), ("grow", grow), ("work", working("work")))
