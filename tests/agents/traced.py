"""Agents that run tools and graphs with callbacks of their own, as tracers want it."""

import asyncio
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.types import interrupt

from tests.agents.stories import State, chain, working


def tracing() -> RunnableConfig:
    return {"callbacks": [BaseCallbackHandler()]}


_steps = chain(one=working("one"), two=working("two")).compile()


async def in_graph(state: State) -> dict[str, Any]:
    interrupt("Go?")
    ended = await _steps.ainvoke({"journal": state["journal"]}, tracing())
    return {"answers": ended["answers"]}


traced_graph = chain(node=in_graph)
"""A node runs a graph of two nodes."""


def in_graph_sync(state: State) -> dict[str, Any]:
    interrupt("Go?")
    return {"answers": _steps.invoke({"journal": state["journal"]}, tracing())["answers"]}


traced_graph_sync = chain(node=in_graph_sync)
"""The same in a thread."""


@tool
async def walk(journal: str) -> list[str]:
    """Take two steps."""
    return (await _steps.ainvoke({"journal": journal}))["answers"]


async def in_tool(state: State) -> dict[str, Any]:
    interrupt("Go?")
    return {"answers": await walk.ainvoke({"journal": state["journal"]}, tracing())}


traced_tool = chain(node=in_tool)
"""A node runs a tool, which runs a graph of two nodes."""


@tool
def walk_sync(journal: str) -> list[str]:
    """Take two steps."""
    return _steps.invoke({"journal": journal})["answers"]


def in_tool_sync(state: State) -> dict[str, Any]:
    interrupt("Go?")
    return {"answers": walk_sync.invoke({"journal": state["journal"]}, tracing())}


traced_tool_sync = chain(node=in_tool_sync)
"""The same in a thread."""


@tool
async def pay(journal: str) -> str:
    """Ask late the first time, and early the second."""
    waited = Path(journal) / "waited"
    if not waited.exists():
        waited.touch()
        await asyncio.sleep(0.05)
    answer: str = interrupt("Pay?")
    return answer


@tool
async def ship(journal: str) -> str:
    """Ask in between."""
    await asyncio.sleep(0.02)
    answer: str = interrupt("Ship?")
    return answer


async def at_once(state: State) -> dict[str, Any]:
    given = {"journal": state["journal"]}
    paid, shipped = await asyncio.gather(
        pay.ainvoke(given, tracing()), ship.ainvoke(given, tracing())
    )
    return {"answers": [f"pay={paid}", f"ship={shipped}"]}


traced_at_once = chain(node=at_once)
"""Two tools ask at once in one task, in another order each time."""
