"""Asks in plain words which region to deploy to: the shortest agent that asks."""

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    region: str


def choose_region(state: State) -> State:
    return {"region": interrupt("Which region should the service deploy to?")}


graph = StateGraph(State).add_node(choose_region).add_edge(START, "choose_region").compile()
