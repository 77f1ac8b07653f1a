"""Graphs that use what few graphs use: error handlers, several answers in one node, tasks, graphs
run in threads."""

import asyncio
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import (
    NodeInterrupt,  # pyright: ignore[reportDeprecated] - older agents raise it
)
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy, interrupt

from tests.agents.journal import point, ran
from tests.agents.shapes import Wanted
from tests.agents.stories import State, asking, chain, parallel, working


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
    point(state["journal"], "refunding")
    answer = interrupt("Refund?")
    ran(state["journal"], "refunding")
    return {"answers": [f"refund={answer}"]}


handled = StateGraph(State).add_node("paying", paying, error_handler=refunding)
handled.add_edge(START, "paying")
"""A node that asks and fails, and its error handler, which asks too."""


guarded = StateGraph(State).add_node("ask", asking("ask", "Go?"))
guarded.add_node("charge", working("charge"), error_handler=working("compensate"))
guarded.add_node("beside", working("beside"))
guarded.add_edge(START, "ask").add_edge("ask", "charge").add_edge("ask", "beside")
"""After the answer a node works that has an error handler, beside one that has none."""


def too_long(state: State) -> dict[str, Any]:
    raise NodeInterrupt("Too long?")  # pyright: ignore[reportDeprecated] - as older agents do


raising = chain(too_long=too_long)
"""A node that pauses in the old way, which takes no answer."""


async def running_elsewhere(state: State, config: RunnableConfig) -> dict[str, Any]:
    elsewhere = {**config["configurable"], "thread_id": "elsewhere", "checkpoint_ns": ""}  # pyright: ignore[reportTypedDictNotRequiredAccess] - every node has some
    result = await _two.ainvoke({"journal": state["journal"]}, {"configurable": elsewhere})
    return {"answers": result["answers"]}


_two = chain(one=working("one"), two=working("two")).compile()

elsewhere = chain(elsewhere=running_elsewhere)
"""A node that runs a graph in another thread."""


@task
def charging(journal: str) -> str:
    ran(journal, "charging")
    return "charged"


@task
def shipping(journal: str) -> str:
    point(journal, "shipping")
    ran(journal, "shipping")
    return "shipped"


@entrypoint()
async def tasks(wanted: Wanted) -> dict[str, str]:
    """Asks, then runs two tasks, one after the other."""
    answer = interrupt("Go?")
    charged = await charging(wanted["journal"])
    return {"all": f"{answer} {charged} {await shipping(wanted['journal'])}"}


def running(state: State) -> dict[str, Any]:
    interrupt("Go?")
    return {"answers": _two.invoke({"journal": state["journal"]})["answers"]}


threaded = chain(running=running)
"""A sync node that runs a graph of two nodes in its thread."""


def running_at_once(state: State) -> dict[str, Any]:
    return {"answers": _two.invoke({"journal": state["journal"]})["answers"]}


threaded_at_once = chain(running=running_at_once)
"""The same, which asks nothing."""


async def route(state: State) -> str:
    ran(state["journal"], "route?")
    while (Path(state["journal"]) / "hold-route").exists():  # noqa: ASYNC110 - a test holds it
        await asyncio.sleep(0.005)
    return "ship"


routed = StateGraph(State).add_node("ask", asking("ask", "Go?")).add_node("ship", working("ship"))
routed.add_edge(START, "ask").add_conditional_edges("ask", route, ["ship"])
"""What comes after the node takes time to tell."""


def failing_once(state: State) -> dict[str, Any]:
    answer = interrupt("Pay?")
    ran(state["journal"], "failing_once")
    failed = Path(state["journal"]) / "failed"
    if not failed.exists():
        failed.touch()
        raise ConnectionError("once more")
    return {"answers": [f"paid={answer}"]}


_failing_once = chain(failing_once=failing_once).compile()


async def trying_again(state: State) -> dict[str, Any]:
    return {"answers": (await _failing_once.ainvoke({"journal": state["journal"]}))["answers"]}


around_again = StateGraph(State).add_node("trying_again", trying_again, retry_policy=RetryPolicy())
around_again.add_edge(START, "trying_again")
"""A node that runs a graph, and runs it again when it fails."""
