"""Agents that tell how they get on while they run."""

import asyncio
from pathlib import Path
from typing import Any

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from tests.agents.journal import point, ran
from tests.agents.stories import State, chain, working


def half(state: State) -> dict[str, Any]:
    write = get_stream_writer()
    write({"progress": 1, "total": 2, "message": "half"})
    point(state["journal"], "half")
    write({"tokens": "for another reader"})
    write({"progress": 2, "total": 2})
    return {"answers": ["whole"]}


def log(state: State) -> dict[str, Any]:
    write = get_stream_writer()
    for level in ("debug", "info", "error"):
        write({"level": level, "data": {"said": level}, "logger": "agent"})
    return {"answers": ["logged"]}


async def patient(state: State) -> dict[str, Any]:
    """Reports, and when it is held waits until it is stopped."""
    journal = state["journal"]
    get_stream_writer()({"progress": 1})
    ran(journal, "patient?")
    try:
        if (Path(journal) / "hold-patient").exists():
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        ran(journal, "stopped")
        raise
    ran(journal, "patient")
    return {"answers": ["patient"]}


def ask(state: State) -> dict[str, Any]:
    ran(state["journal"], "ask?")
    return {"answers": [f"ask={interrupt('Go?')}"]}


def broken(state: State) -> dict[str, Any]:
    raise RuntimeError("secret")


_inner = StateGraph(State).add_node("half", half).add_edge(START, "half").compile()

halves: Any = chain(half=half)
halves_inside = chain(inner=_inner)
halves_later = chain(before=working("before"), half=half)
logs = chain(log=log)
nodes = chain(first=working("first"), second=working("second"))
breaks_later = chain(first=working("first"), second=broken)
waits = chain(patient=patient)
waits_later = chain(ask=ask, patient=patient)
