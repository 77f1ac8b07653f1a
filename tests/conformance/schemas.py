"""Agents whose input schemas hold what a server must not lose."""

from typing import Annotated

from langgraph.graph import START, StateGraph
from pydantic import Field
from typing_extensions import TypedDict


class Placed(TypedDict, total=False):
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]


class Said(TypedDict, total=False):
    answer: str


class State(Placed, Said):
    pass


def _place(state: Placed) -> Said:
    return {"answer": state.get("region", "nowhere")}


def _keep(state: State) -> Said:
    return {"answer": "ok"}


region = (
    StateGraph(State, input_schema=Placed, output_schema=Said)
    .add_node("place", _place)
    .add_edge(START, "place")
    .compile()
)
contact = StateGraph(State).add_node("keep", _keep).add_edge(START, "keep").compile()
