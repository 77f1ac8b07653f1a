"""What is stored of an agent's state is what LangGraph itself would have stored, and no more.

Each graph runs twice: as a call (in memory to the first pause, then from rows), and on LangGraph's
own saver from the start. At every pause LangGraph's saver reads both threads, and they are equal.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Annotated, Any, TypeAlias
from uuid import UUID, uuid4

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import StateGraph
from langgraph.types import Command, StateSnapshot, interrupt
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from pydantic import BaseModel
from typing_extensions import TypedDict

from core.gate import Gate
from core.records import Asking, Claim
from core.saver import CallSaver, CallState
from core.store import Store
from tests.agents.stories import line, merge

pytestmark = pytest.mark.anyio


class Colour(Enum):
    RED = "red"


class Model(BaseModel):
    name: str


@dataclass
class Point:
    x: int


class Plain(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    text: str
    number: float
    values: dict[str, Any]


class Delta(TypedDict, total=False):
    log: Annotated[list[str], DeltaChannel(merge)]
    often: Annotated[list[str], DeltaChannel(merge, snapshot_frequency=2)]


def odd(state: Plain) -> Plain:
    values = {
        "uuid": UUID(int=1),
        "decimal": Decimal("1.10"),
        "when": datetime(2026, 7, 28, tzinfo=UTC),
        "set": {1, 2},
        "bytes": b"\0\xff",
        "tuple": (1, 2),
        "model": Model(name="m"),
        "point": Point(1),
        "enum": Colour.RED,
        "keys": {1: "int key"},
        "nul": "a\0b",
    }
    return {
        "log": ["odd"],
        "text": "NUL \0 and \N{SNOWMAN}",
        "number": float("inf"),
        "values": values,
    }


Node: TypeAlias = Any
"""A node function, or a compiled subgraph."""


def step(name: str) -> Node:
    def node(state: Any) -> Any:
        return {"log": [name]} | ({"often": [name]} if "often" in str(state) else {})

    return node


def asks(name: str) -> Node:
    def node(state: Any) -> Any:
        return {"log": [f"{name}={interrupt(name)}"]}

    return node


def nested() -> StateGraph[Any]:
    inner = line(Plain, deep1=asks("deep1"), deep2=asks("deep2")).compile()
    graph = line(Plain, before=step("before"), inner=inner, after=asks("after"))
    graph.add_node("beside", asks("beside"))
    graph.add_edge("before", "beside")
    return graph


def remembering() -> StateGraph[Any]:
    """A subgraph that keeps its state between its calls."""
    memory = line(Plain, note=step("note"), ask=asks("ask")).compile(checkpointer=True)
    return line(Plain, first=memory, again=asks("again"))


GRAPHS: dict[str, Callable[[], StateGraph[Any]]] = {
    "values of every kind": lambda: line(Plain, odd=odd, one=asks("one"), two=asks("two")),
    "many steps": lambda: line(
        Plain, a=step("a"), b=step("b"), c=asks("c"), d=step("d"), e=asks("e")
    ),
    "a delta channel": lambda: line(Delta, a=step("a"), b=step("b"), c=asks("c"), d=asks("d")),
    "a subgraph beside a branch": nested,
    "a subgraph that remembers": remembering,
}

serde = JsonPlusSerializer(allowed_msgpack_modules=[Model, Point, Colour])


async def stored_by_langgraph(
    database: str, graph: StateGraph[Any], answers: int, *, odd: bool
) -> StateSnapshot:
    """The state of a thread that ran on LangGraph's own saver, after so many answers.

    Its PostgreSQL saver can't keep text with NUL or an infinite number; its saver in memory can.
    """
    config: RunnableConfig = {"configurable": {"thread_id": str(uuid4())}}
    async with await AsyncConnection[DictRow].connect(
        database, autocommit=True, row_factory=dict_row
    ) as connection:
        saver = AsyncPostgresSaver(connection, serde=serde)
        compiled = graph.compile(checkpointer=InMemorySaver(serde=serde) if odd else saver)
        await compiled.ainvoke({"log": ["input"]}, config, durability="sync")
        for _ in range(answers):
            await compiled.ainvoke(await _resume(compiled, config), config, durability="sync")
        return await compiled.aget_state(config, subgraphs=True)


async def _resume(compiled: Any, config: RunnableConfig) -> Command[Any]:
    snapshot = await compiled.aget_state(config)
    return Command(resume={each.id: f"answer to {each.value}" for each in snapshot.interrupts})


async def stored_by_us(
    database: str, store: Store, graph: StateGraph[Any], answers: int
) -> StateSnapshot:
    """The same as `core` runs it: in memory at first, then claimed, flushed and settled."""
    call, number = uuid4(), 1
    config: RunnableConfig = {"configurable": {"thread_id": str(call)}}
    state = CallState(str(call), serde)
    compiled = graph.compile(checkpointer=CallSaver(state))
    await compiled.ainvoke({"log": ["input"]}, config, durability="async")
    asking = Asking(keys=["k"], modes=["form"], questions=b"")
    hour = timedelta(hours=1)
    await store.pause(call, "a", asking, state.rows(), ttl=hour)
    for number in range(1, answers + 1):
        claim = Claim(call=call, number=number, id=uuid4())
        seen = await store.claim(claim, "a", given=["k"], modes=["form"], lease=hour)
        assert seen is not None
        assert seen.won
        state = CallState(
            str(call),
            serde,
            rows=seen.rows,
            sink=lambda rows, claim=claim: store.flush(claim, {}, rows),
        )
        pending = state.waiting.pending()
        values = {each.id: f"answer to {each.value}" for each in pending}
        compiled = graph.compile(checkpointer=CallSaver(state))
        await compiled.ainvoke(Command(resume=values), config, durability="sync")
        await state.close()
        await store.next(claim, {}, asking, state.rows(), withheld=False, ttl=hour)
    async with await AsyncConnection[DictRow].connect(
        database, autocommit=True, row_factory=dict_row
    ) as connection:
        reading = graph.compile(checkpointer=AsyncPostgresSaver(connection, serde=serde))
        return await reading.aget_state(config, subgraphs=True)


def comparable(snapshot: StateSnapshot) -> Any:
    """A snapshot without what differs from thread to thread."""
    return {
        "values": snapshot.values,
        "next": sorted(snapshot.next),
        "step": (snapshot.metadata or {}).get("step"),
        "source": (snapshot.metadata or {}).get("source"),
        "interrupts": sorted(each.value for each in snapshot.interrupts),
        "tasks": sorted(
            (task.name, comparable(task.state) if isinstance(task.state, StateSnapshot) else None)
            for task in snapshot.tasks
        ),
    }


@pytest.mark.parametrize("answers", [0, 1])
@pytest.mark.parametrize("name", GRAPHS)
async def test_a_call_is_stored_as_langgraph_stores_it(
    database: str, store: Store, name: str, answers: int
) -> None:
    graph = GRAPHS[name]()
    theirs = comparable(
        await stored_by_langgraph(database, graph, answers, odd=name.startswith("values"))
    )
    assert theirs["interrupts"], "the comparison needs a pause"
    assert comparable(await stored_by_us(database, store, graph, answers)) == theirs


async def test_nothing_but_langgraphs_own_metadata_is_stored(database: str, store: Store) -> None:
    call = uuid4()
    state = CallState(str(call), serde)
    compiled = line(Plain, one=asks("one")).compile(checkpointer=CallSaver(state))
    config: RunnableConfig = {
        "configurable": {"thread_id": str(call), "token": "secret-token", "user_id": "secret-user"},
        "metadata": {"note": "secret-note"},
    }
    await compiled.ainvoke({"log": []}, config)
    rows = state.rows()
    assert rows.checkpoints
    assert "secret" not in str(rows)


async def test_many_steps_in_memory_keep_one_checkpoint_of_each_namespace() -> None:
    state = CallState("t", serde)
    graph = line(Plain, a=step("a"), b=step("b"), c=step("c"), d=asks("d"))
    await graph.compile(checkpointer=CallSaver(state)).ainvoke(
        {"log": []}, {"configurable": {"thread_id": "t"}}
    )
    assert len(state.rows().checkpoints) == 1


async def test_what_graphs_kept_that_finished_nodes_called_is_neither_held_nor_loaded(
    database: str, store: Store
) -> None:
    def called() -> Any:
        return line(Plain, a=step("a"), b=step("b")).compile()

    graph = line(
        Plain, first=asks("first"), one=called(), two=called(), second=asks("second"), end=called()
    )
    call, hour = uuid4(), timedelta(hours=1)
    config: RunnableConfig = {"configurable": {"thread_id": str(call)}}
    asking = Asking(keys=["k"], modes=["form"], questions=b"")
    state = CallState(str(call), serde)
    await graph.compile(checkpointer=CallSaver(state)).ainvoke({"log": []}, config)
    await store.pause(call, "a", asking, state.rows(), ttl=hour)
    namespaces: list[set[str]] = []
    for number in (1, 2):
        claim = Claim(call=call, number=number, id=uuid4())
        seen = await store.claim(claim, "a", given=["k"], modes=["form"], lease=hour)
        assert seen is not None
        namespaces.append({ns for ns, *_ in seen.rows.checkpoints})
        state = CallState(str(call), serde, rows=seen.rows, sink=partial(store.flush, claim, {}))
        compiled = graph.compile(checkpointer=CallSaver(state))
        values = {each.id: "yes" for each in state.waiting.pending()}
        gated: RunnableConfig = {**config, "callbacks": [Gate(state)]}
        await compiled.ainvoke(Command(resume=values), gated, durability="sync")
        await state.flush()
        await state.close()
        if number == 1:
            await store.next(claim, {}, asking, state.rows(), withheld=False, ttl=hour)
    assert namespaces == [{""}, {""}]
    assert (await compiled.aget_state(config)).values["log"][-2:] == ["a", "b"]


async def test_a_copy_that_langgraph_changes_does_not_change_the_state() -> None:
    state = CallState("t", serde)
    compiled = line(Plain, a=asks("a")).compile(checkpointer=CallSaver(state))
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}
    await compiled.ainvoke({"log": ["x"]}, config)
    before = state.rows()
    await compiled.aget_state(config)
    found = state.get("", None, serde)
    assert found is not None
    found.checkpoint["channel_values"].clear()
    found.checkpoint["channel_versions"].clear()
    assert state.rows() == before
