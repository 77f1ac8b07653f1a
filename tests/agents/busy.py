"""Agents whose threads are still at work when something else ends their run."""

import asyncio
from pathlib import Path
from typing import Any

from langgraph.types import interrupt

from tests.agents.journal import point, ran
from tests.agents.stories import Even, State, chain, parallel


def charge(journal: str) -> str:
    ran(journal, "charge?")
    point(journal, "charge")
    ran(journal, "charge")
    return "charged"


async def picking(state: State) -> dict[str, Any]:
    charging = asyncio.ensure_future(asyncio.to_thread(charge, state["journal"]))
    picked = interrupt("How many?", response_schema=Even)
    return {"answers": [f"{await charging},{picked.number}"]}


picking_beside_a_thread = chain(node=picking)
"""The node's answer may be refused while a thread that it started is at work."""


async def breaking(state: State) -> dict[str, Any]:
    interrupt("Break?")
    while not (Path(state["journal"]) / "held-charge").exists():  # noqa: ASYNC110 - a test holds it
        await asyncio.sleep(0.005)
    raise ConnectionError("broken")


def charging(state: State) -> dict[str, Any]:
    interrupt("Charge?")
    return {"answers": [charge(state["journal"])]}


failing_beside_a_thread = parallel(breaking=breaking, charging=charging)
"""A node fails while its sync sibling is at work."""
