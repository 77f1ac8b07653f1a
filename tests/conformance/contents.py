"""Agents that answer with each kind of content, and one that fails."""

from typing import Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJg"
    "gg=="
)
"""One pixel."""

WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
"""No samples."""


class State(TypedDict, total=False):
    mcp_content: list[dict[str, Any]]


def _answering(*blocks: dict[str, Any]) -> Any:
    def answer(state: State) -> State:
        return {"mcp_content": list(blocks)}

    return StateGraph(State).add_node("answer", answer).add_edge(START, "answer").compile()


def _resource(uri: str, media_type: str, text: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "text": text}}


_image = {"type": "image", "data": PNG, "mimeType": "image/png"}

simple_text = _answering({"type": "text", "text": "This is a simple text response for testing."})
image = _answering(_image)
audio = _answering({"type": "audio", "data": WAV, "mimeType": "audio/wav"})
embedded_resource = _answering(
    _resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
)
multiple_content_types = _answering(
    {"type": "text", "text": "Multiple content types test:"},
    _image,
    _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
)


def _fail(state: State) -> State:
    raise RuntimeError("This tool intentionally returns an error for testing")


error_handling = StateGraph(State).add_node("fail", _fail).add_edge(START, "fail").compile()
