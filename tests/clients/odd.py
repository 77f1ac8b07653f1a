"""Agents that do what clients have to cope with: fail, or change their mind."""

from pathlib import Path

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    answer: str


class Noted(TypedDict):
    folder: str


class NotedState(Noted, State):
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
