"""Graphs that use what LangGraph has besides plain nodes, each with several rounds of questions."""

import asyncio
from typing import Annotated, Any, NotRequired

from langgraph.cache.memory import InMemoryCache
from langgraph.channels import UntrackedValue
from langgraph.channels.delta import DeltaChannel
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.managed import RemainingSteps
from langgraph.types import (
    CachePolicy,
    Command,
    Overwrite,
    RetryPolicy,
    Send,
    TimeoutPolicy,
    interrupt,
)
from typing_extensions import TypedDict

from tests.agents.journal import ran
from tests.agents.shapes import Wanted
from tests.agents.stories import Item, State, append, asking, chain, fan, line, merge, working


def attempts(journal: str, name: str) -> int:
    """How often this node ran past its questions, this time included."""
    ran(journal, name)
    with open(f"{journal}/ran", encoding="utf-8") as notes:
        return notes.read().split().count(name)


# Channels whose value is spread over a chain of checkpoints.


class Delta(TypedDict):
    journal: str
    answers: NotRequired[Annotated[list[str], DeltaChannel(merge)]]
    often: NotRequired[Annotated[list[str], DeltaChannel(merge, snapshot_frequency=2)]]


def delta_asking(name: str, *, anew: bool = False) -> Any:
    def node(state: Delta) -> dict[str, Any]:
        ran(state["journal"], f"{name}?")
        answer = interrupt(f"{name}?")
        ran(state["journal"], name)
        said = [f"{name}={answer}"]
        return {"answers": Overwrite(said) if anew else said, "often": said}

    return node


def delta_working(name: str) -> Any:
    def node(state: Delta) -> dict[str, Any]:
        ran(state["journal"], name)
        return {"answers": [name], "often": [name]}

    return node


delta = line(
    Delta, w=delta_working("w"), a=delta_asking("A"), x=delta_working("x"), b=delta_asking("B")
)
delta_anew = line(
    Delta,
    w=delta_working("w"),
    a=delta_asking("A", anew=True),
    x=delta_working("x"),
    b=delta_asking("B", anew=True),
    y=delta_working("y"),
)
_delta_inner = line(Delta, p=delta_asking("P"), q=delta_working("q"), r=delta_asking("R"))
delta_inside = line(Delta, w=delta_working("w"), inner=_delta_inner.compile(), y=delta_asking("Y"))
_delta_memory = line(Delta, p=delta_asking("P"), q=delta_working("q")).compile(checkpointer=True)
delta_remembered = line(Delta, one=_delta_memory, w=delta_asking("W"), two=_delta_memory)


# Fan-outs, jumps, joins.


def item(state: Item) -> dict[str, Any]:
    name = state["name"]
    ran(state["journal"], f"item-{name}?")
    answer = interrupt(f"Item {name}?")
    ran(state["journal"], f"item-{name}")
    if name == "a":
        answer += interrupt("Once more a?")
    return {"answers": [f"{name}={answer}"]}


fanned_out = StateGraph(State).add_node("item", item).add_node("end", asking("end", "End?"))
fanned_out.add_conditional_edges(START, fan, ["item"]).add_edge("item", "end")


def sending(state: State) -> Command[Any]:
    answer = interrupt("Where?")
    ran(state["journal"], "sending")
    sent = Send("item", {"journal": state["journal"], "name": "z"})
    return Command(goto=[sent, "end"], update={"answers": [answer]})


sent = StateGraph(State).add_node("sending", sending).add_node("item", item)
sent.add_node("end", asking("end", "End?")).add_edge(START, "sending")


def climbing(state: State) -> Command[Any]:
    answer = interrupt("Up?")
    ran(state["journal"], "climbing")
    return Command(graph=Command.PARENT, goto="landing", update={"answers": [f"up={answer}"]})


_below = StateGraph(State).add_node("climbing", climbing).add_edge(START, "climbing").compile()
climbed = StateGraph(State).add_node("below", _below).add_node("side", asking("side", "Side?"))
climbed.add_node("landing", asking("landing", "Landed?"))
climbed.add_edge(START, "below").add_edge(START, "side")

deferred = StateGraph(State).add_node("a", asking("a", "A?")).add_node("b", working("b"))
deferred.add_node("c", asking("c", "C?")).add_node("z", asking("z", "Z?"), defer=True)
deferred.add_edge(START, "a").add_edge(START, "b").add_edge("b", "c")
deferred.add_edge("a", "z").add_edge("c", "z")


# Values that LangGraph provides, or does not keep.


class Managed(TypedDict):
    journal: str
    left: RemainingSteps
    answers: NotRequired[Annotated[list[str], append]]


def counting(name: str) -> Any:
    def node(state: Managed) -> dict[str, Any]:
        return {"answers": [f"{name}={interrupt(f'{name}?')}:{state['left']}"]}

    return node


managed = line(Managed, one=counting("One"), two=counting("Two"))


class Untracked(TypedDict):
    journal: str
    secret: NotRequired[Annotated[Any, UntrackedValue]]
    answers: NotRequired[Annotated[list[str], append]]


def hiding(state: Untracked) -> dict[str, Any]:
    return {"secret": "hidden", "answers": ["set"]}


def showing(name: str) -> Any:
    def node(state: Untracked) -> dict[str, Any]:
        answer = interrupt(f"{name}?")
        return {"answers": [f"{name}={answer}:{state.get('secret')}"], "secret": name}

    return node


untracked = line(Untracked, hiding=hiding, one=showing("One"), two=showing("Two"))


# Nodes that are cached, tried again, timed, caught.


def cached_asking(state: State) -> dict[str, Any]:
    ran(state["journal"], "cached?")
    answer = interrupt("Cached?")
    ran(state["journal"], "cached")
    return {"answers": [f"cached={answer}"]}


def _of_journal(state: State) -> str:
    return state["journal"]


_policy: CachePolicy[Any] = CachePolicy(key_func=_of_journal)
_cached = StateGraph(State).add_node("work", working("work"), cache_policy=_policy)
_cached.add_node("ask", cached_asking, cache_policy=_policy).add_node("b", asking("b", "B?"))
_cached.add_node("again", asking("again", "Again?"))
_cached.add_edge(START, "work").add_edge(START, "ask").add_edge(START, "b").add_edge("b", "again")
cached = _cached.compile(cache=InMemoryCache())


def flaky(state: State) -> dict[str, Any]:
    first = interrupt("Flaky?")
    second = interrupt("Flakier?")
    if attempts(state["journal"], "flaky") < 3:
        raise ConnectionError("once more")
    return {"answers": [f"flaky={first},{second}"]}


_often = RetryPolicy(initial_interval=0.001, jitter=False)
tried_again = StateGraph(State).add_node("flaky", flaky, retry_policy=_often)
tried_again.add_node("side", asking("side", "Side?"))
tried_again.add_edge(START, "flaky").add_edge(START, "side")


async def lingering(state: State) -> dict[str, Any]:
    first = interrupt("Slow?")
    if attempts(state["journal"], "lingering") == 1:
        await asyncio.Event().wait()
    second = interrupt("Slower?")
    return {"answers": [f"lingering={first},{second}"]}


timed = StateGraph(State).add_node(
    "lingering", lingering, timeout=TimeoutPolicy(run_timeout=0.2), retry_policy=_often
)
timed.add_node("side", asking("side", "Side?"))
timed.add_edge(START, "lingering").add_edge(START, "side")


def bursting(state: State) -> dict[str, Any]:
    answer = interrupt("Burst?")
    ran(state["journal"], "bursting")
    raise ValueError(answer)


def rescuing(state: State) -> Command[Any]:
    ran(state["journal"], "rescuing?")
    answer = interrupt("Rescue?")
    ran(state["journal"], "rescuing")
    return Command(update={"answers": [f"rescue={answer}"]}, goto="after")


caught = StateGraph(State).add_node("bursting", bursting, error_handler=rescuing)
caught.add_node("side", asking("side", "Side?")).add_node("after", asking("after", "After?"))
caught.add_edge(START, "bursting").add_edge(START, "side")


# Tasks, and graphs that nodes run.


@task
def quick(journal: str, name: str) -> str:
    ran(journal, f"quick-{name}")
    return name


@task
def asked(journal: str, name: str) -> str:
    ran(journal, f"asked-{name}?")
    answer = interrupt(f"Task {name}?")
    ran(journal, f"asked-{name}")
    return answer


_inner = chain(i1=asking("i1", "I1?"), i2=asking("i2", "I2?")).compile()


@task
async def inside(journal: str) -> list[str]:
    return (await _inner.ainvoke({"journal": journal}))["answers"]


@entrypoint()
async def tasked(wanted: Wanted) -> dict[str, Any]:
    """Tasks that ask, one after the other, and a graph in one."""
    journal = wanted["journal"]
    first = quick(journal, "1")
    answer = await asked(journal, "a")
    answers = await inside(journal)
    last = interrupt("Last?")
    return {"all": [await first, answer, answers, last, await quick(journal, "2")]}


@entrypoint()
def tasked_sync(wanted: Wanted) -> dict[str, Any]:
    """The same without async."""
    journal = wanted["journal"]
    first = quick(journal, "1")
    answer = asked(journal, "a").result()
    last = interrupt("Last?")
    return {"all": [first.result(), answer, last, quick(journal, "2").result()]}


_memory = chain(m1=asking("m1", "M1?"), m2=asking("m2", "M2?")).compile(checkpointer=True)
remembered = line(State, one=_memory, mid=asking("mid", "Mid?"), two=_memory)


async def running_memory(state: State) -> dict[str, Any]:
    result = await _memory.ainvoke({"journal": state["journal"], "answers": ["in"]})
    return {"answers": [str(len(result["answers"]))]}


remembered_inside = line(State, one=running_memory, mid=asking("mid", "Mid?"), two=running_memory)


async def each(state: Item) -> dict[str, Any]:
    result = await _inner.ainvoke({"journal": state["journal"]})
    return {"answers": [state["name"], *result["answers"]]}


def each_sync(state: Item) -> dict[str, Any]:
    result = _inner.invoke({"journal": state["journal"]})
    return {"answers": [state["name"], *result["answers"]]}


fanned_inside = StateGraph(State).add_node("item", each)
fanned_inside.add_conditional_edges(START, fan, ["item"])
fanned_inside_sync = StateGraph(State).add_node("item", each_sync)
fanned_inside_sync.add_conditional_edges(START, fan, ["item"])


async def telling(state: State) -> dict[str, Any]:
    tell = get_stream_writer()
    tell({"part": 1})
    answer = interrupt("Tell?")
    tell({"part": 2})
    return {"answers": [f"tell={answer}"]}


told = chain(telling=telling, work=working("work"), end=asking("end", "End?"))

FEATURES = (
    *("delta", "delta_anew", "delta_inside", "delta_remembered", "fanned_out", "sent", "climbed"),
    *("deferred", "managed", "untracked", "cached", "tried_again", "timed", "caught", "tasked"),
    *("tasked_sync", "remembered", "remembered_inside", "fanned_inside", "fanned_inside_sync"),
    "told",
)
