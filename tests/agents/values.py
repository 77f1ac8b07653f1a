"""Agents that give back exactly what they were given, so that a changed value shows."""

from typing import Any, NotRequired

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class Given(TypedDict):
    value: Any


class State(Given):
    answer: NotRequired[Any]


def say(state: State) -> dict[str, Any]:
    return {"answer": state["value"]}


def keep(state: State) -> dict[str, Any]:
    return {"answer": interrupt("Keep it?")}


FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 1000},
        "number": {"type": "number"},
        "whole": {"type": "integer"},
        "truth": {"type": "boolean"},
        "choice": {"type": "string", "enum": ["a", "b"]},
        "choices": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "day": {"type": "string", "format": "date"},
    },
    "required": ["text"],
}


def fill(state: State) -> dict[str, Any]:
    return {"answer": interrupt("Fill it in.", response_schema=FORM)}


says = StateGraph(State, input_schema=Given).add_node("say", say).add_edge(START, "say")
"""Gives a value back at once."""

keeps = StateGraph(State, input_schema=Given).add_node("keep", keep).add_edge(START, "keep")
"""Keeps a value through a pause, and gives back what it was answered."""

fills = StateGraph(State, input_schema=Given).add_node("fill", fill).add_edge(START, "fill")
"""The same with a form of every kind of field."""
