"""Agents that tell how they get on while they run."""

import asyncio

from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    answer: str


PAUSE = 0.05
"""Seconds between two reports; the scenario wants to see each arrive by itself."""


async def _progress(state: State) -> State:
    write = get_stream_writer()
    for done in (0, 50, 100):
        write({"progress": done, "total": 100, "message": f"Completed step {done} of 100"})
        await asyncio.sleep(PAUSE)
    return {"answer": "done"}


async def _log(state: State) -> State:
    write = get_stream_writer()
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        write({"level": "info", "data": message})
        await asyncio.sleep(PAUSE)
    return {"answer": "done"}


progress = StateGraph(State).add_node("work", _progress).add_edge(START, "work").compile()
logging = StateGraph(State).add_node("work", _log).add_edge(START, "work").compile()
