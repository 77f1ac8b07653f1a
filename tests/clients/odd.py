"""Agents that do what clients have to cope with: fail, or change their mind."""

from pathlib import Path
from typing import Annotated

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from pydantic import Field
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    answer: str


class Noted(TypedDict):
    folder: str


class NotedState(Noted, State):
    pass


class Placed(TypedDict, total=False):
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]


class PlacedState(Placed, State):
    pass


def _fail(state: State) -> State:
    raise RuntimeError("an inside that nobody may see")


def _times(folder: str) -> int:
    """How often this was called with this folder, in whichever process."""
    with (Path(folder) / "times").open("a+") as notes:
        notes.write("x")
        notes.seek(0)
        return len(notes.read())


def _ask_anew(state: Noted) -> State:
    return {"answer": interrupt(f"Question {_times(state['folder'])}?")}


def _ask_once(state: Noted) -> State:
    return {"answer": interrupt("Sure?") if _times(state["folder"]) == 1 else "not asked"}


def _place(state: Placed) -> State:
    return {"answer": state.get("region", "nowhere")}


failing = StateGraph(State).add_node("fail", _fail).add_edge(START, "fail").compile()
fickle = (
    StateGraph(NotedState, input_schema=Noted, output_schema=State)
    .add_node("ask", _ask_anew)
    .add_edge(START, "ask")
    .compile()
)
"""Asks another question each time it runs."""

forgetful = (
    StateGraph(NotedState, input_schema=Noted, output_schema=State)
    .add_node("ask", _ask_once)
    .add_edge(START, "ask")
    .compile()
)
"""Asks only the first time it runs."""

placed = (
    StateGraph(PlacedState, input_schema=Placed, output_schema=State)
    .add_node("place", _place)
    .add_edge(START, "place")
    .compile()
)
"""Takes an argument that a header repeats."""
