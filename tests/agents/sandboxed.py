"""Agents for sandboxes: one that a deadline kills, one that it stops, one that says too much."""

from typing import Any

from langgraph.types import interrupt

from tests.agents.journal import point, ran
from tests.agents.stories import State, asking, chain, linger, working


async def stall(state: State) -> dict[str, Any]:
    ran(state["journal"], "stall?")
    point(state["journal"], "stall")
    ran(state["journal"], "stall")
    return {"answers": ["stalled"]}


stalls = chain(ask=asking("ask", "Go?"), charge=working("charge"), stall=stall)
"""After the answer a node works, and another one blocks the event loop while a test holds it."""

lingers = chain(ask=asking("ask", "Go?"), charge=working("charge"), linger=linger)
"""After the answer a node works, and another one waits while a test holds it."""

waits = chain(slow=linger, ask=asking("ask", "Go?"))
"""Waits before it asks anything."""


def grow(state: State) -> dict[str, Any]:
    ran(state["journal"], "grow?")
    size = int(interrupt("How large?"))
    ran(state["journal"], "grow")
    return {"answers": ["x" * size]}


grows = chain(grow=grow)
"""Its result is as large as the answer says."""
