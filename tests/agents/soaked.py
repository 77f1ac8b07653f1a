"""An agent of two rounds whose nodes note that they ran, in a file that outlives every process."""

import os
from typing import Annotated, Any, NotRequired

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from tests.agents.stories import append


class State(TypedDict):
    call: str
    notes: str
    answers: NotRequired[Annotated[list[str], append]]


def note(state: State, node: str) -> None:
    """One line, written at once: which process ran which node of which call."""
    line = f"{state['call']} {node} {os.getpid()}\n".encode()
    file = os.open(state["notes"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line)
    finally:
        os.close(file)


def asking(name: str) -> Any:
    def node(state: State) -> dict[str, Any]:
        answer = interrupt(f"{name}?")
        note(state, name)
        return {"answers": [f"{name}={answer}"]}

    return node


def working(name: str) -> Any:
    async def node(state: State) -> dict[str, Any]:
        note(state, name)
        return {"answers": [name]}

    return node


soaked = (
    StateGraph(State)
    .add_sequence(
        [
            ("first", asking("first")),
            ("charge", working("charge")),
            ("second", asking("second")),
            ("ship", working("ship")),
        ]
    )
    .add_edge(START, "first")
)
"""Asks, charges, asks, ships."""

NODES = ("first", "charge", "second", "ship")
