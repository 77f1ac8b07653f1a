"""Agents that ask, under the keys that the scenarios look for."""

from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    name: str
    answer: str


def _asked(key: str, message: str, **properties: str) -> Any:
    """What the person filled in, or None when they refused."""
    request = {
        "key": key,
        "message": message,
        "mode": "form",
        "requested_schema": {
            "type": "object",
            "properties": {name: {"type": kind} for name, kind in properties.items()},
            "required": list(properties),
        },
    }
    reply = interrupt({"type": "mcp_elicitation", "requests": [request]})
    return reply["responses"][key].get("content")


def _greet(state: State) -> State:
    content = _asked("user_name", "What is your name?", name="string")
    return {"answer": f"Hello, {content['name']}!" if content else "Hello!"}


def _confirm(state: State) -> State:
    content = _asked("confirm", "Please confirm", ok="boolean")
    return {"answer": "state-ok" if content and content["ok"] else "not confirmed"}


def _first_step(state: State) -> State:
    content = _asked("step1", "What is your name?", name="string")
    return {"name": content["name"] if content else "nobody"}


def _second_step(state: State) -> State:
    content = _asked("step2", "What is your favourite colour?", color="string")
    colour = content["color"] if content else "no colour"
    return {"answer": f"{state.get('name')} likes {colour}."}


elicitation = StateGraph(State).add_node("greet", _greet).add_edge(START, "greet").compile()
confirmation = StateGraph(State).add_node("confirm", _confirm).add_edge(START, "confirm").compile()
multi_round = (
    StateGraph(State)
    .add_node("first", _first_step)
    .add_node("second", _second_step)
    .add_edge(START, "first")
    .add_edge("first", "second")
    .compile()
)
