"""How large an answer may be: some platforms pass no more on, and fail instead.

Pure module. The bound is applied before anything is stored, so that the outcome of a call is one
that can be told again.
"""

from collections.abc import Mapping
from typing import Any

from core.cannot_ask import CannotAsk
from core.plain import dumps
from core.protocol import ToolResult, error_result
from core.questions import Round


def fitting(came_to: ToolResult | Round, largest: int | None) -> ToolResult | Round:
    """What a run came to, or the error result that says that it is too large.

    Args:
        largest: bytes of an answer; None when there is no bound.
    """
    if largest is None:
        return came_to
    if isinstance(came_to, ToolResult):
        size = size_of(came_to.as_result())
        if size <= largest:
            return came_to
        return error_result(f"The result is too large: {size} bytes, of at most {largest}.")
    size = size_of(came_to.requests)
    if size <= largest:
        return came_to
    reason = f"The questions are too large: {size} bytes, of at most {largest}. Ask for less."
    return error_result(str(CannotAsk(reason)))


def size_of(content: Mapping[str, Any]) -> int:
    """Bytes as JSON, when that is passed on as a string in another JSON document: what is escaped
    counts once more."""
    body = dumps(content)
    return len(body.encode()) + body.count('"') + body.count("\\")
