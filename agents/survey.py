"""Asks three questions one after another; the last one depends on the answer before it."""

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    topic: str
    rating: int
    reason: str


def ask_topic(state: State) -> State:
    return {"topic": interrupt("What would you like to review?")}


def ask_rating(state: State) -> State:
    return {
        "rating": interrupt(
            "How do you rate it?",
            response_schema={"type": "integer", "minimum": 1, "maximum": 5},
        )
    }


def ask_reason(state: State) -> State:
    return {"reason": interrupt(f"Why {state.get('rating')} for {state.get('topic')}?")}


graph = (
    StateGraph(State)
    .add_sequence([ask_topic, ask_rating, ask_reason])
    .add_edge(START, "ask_topic")
    .compile()
)
