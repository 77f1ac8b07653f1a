"""Graphs that use what few graphs use: error handlers, several answers in one node, tasks, graphs
run in threads."""

import asyncio
from pathlib import Path
from typing import Any

from langgraph.errors import (
    NodeInterrupt,  # pyright: ignore[reportDeprecated] - older agents raise it
)
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from tests.agents.journal import ran
from tests.agents.stories import State, asking, chain, parallel


async def approving(state: State) -> dict[str, Any]:
    ran(state["journal"], "approving?")
    first = interrupt("Delete A?")
    ran(state["journal"], "approving-first")
    while (Path(state["journal"]) / "hold-between").exists():  # noqa: ASYNC110 - a test holds it
        await asyncio.sleep(0.005)
    second = interrupt("Delete B?")
    ran(state["journal"], f"approving={first},{second}")
    return {"answers": [f"approving={first},{second}"]}


approvals = chain(approving=approving)
"""One node that asks twice, and may be stopped in between."""

approvals_beside = parallel(approving=approving, right=asking("right", "Right?"))
"""The same, beside a branch."""


def paying(state: State) -> dict[str, Any]:
    answer = interrupt("Pay?")
    ran(state["journal"], "paying")
    raise ValueError(f"no funds for {answer}")


def refunding(state: State) -> dict[str, Any]:
    ran(state["journal"], "refunding?")
    answer = interrupt("Refund?")
    ran(state["journal"], "refunding")
    return {"answers": [f"refund={answer}"]}


handled = StateGraph(State).add_node("paying", paying, error_handler=refunding)
handled.add_edge(START, "paying")
"""A node that asks and fails, and its error handler, which asks too."""


def too_long(state: State) -> dict[str, Any]:
    raise NodeInterrupt("Too long?")  # pyright: ignore[reportDeprecated] - as older agents do


raising = chain(too_long=too_long)
"""A node that pauses in the old way, which takes no answer."""
