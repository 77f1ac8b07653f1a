"""Asks two questions at once, from two nodes that run side by side."""

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    left: str
    right: str
    pair: str


def ask_left(state: State) -> State:
    return {"left": interrupt("What goes on the left?")}


def ask_right(state: State) -> State:
    return {"right": interrupt("What goes on the right?")}


def join(state: State) -> State:
    return {"pair": f"{state.get('left')} | {state.get('right')}"}


graph = (
    StateGraph(State)
    .add_node(ask_left)
    .add_node(ask_right)
    .add_node(join)
    .add_edge(START, "ask_left")
    .add_edge(START, "ask_right")
    .add_edge(["ask_left", "ask_right"], "join")
    .compile()
)
