"""Says back what it was told, without asking anything."""

from typing import Annotated

from langgraph.graph import START, StateGraph
from pydantic import Field
from typing_extensions import TypedDict


class Told(TypedDict):
    message: Annotated[str, Field(description="What to say back.")]


class Said(TypedDict):
    echo: str


class State(Told, Said):
    """The whole state; clients see what goes in and what comes out."""


def say(state: Told) -> Said:
    return {"echo": state["message"]}


graph = (
    StateGraph(State, input_schema=Told, output_schema=Said)
    .add_node(say)
    .add_edge(START, "say")
    .compile()
)
