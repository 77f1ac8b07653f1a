"""`params` of each method, checked: the last rung before any work.

Pure module. A member of the wrong type is -32602 and never means "absent": a malformed retry that
passed for a fresh call would run the agent again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from core.errors import InvalidParams
from core.protocol import LATEST


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """What `tools/call` asks for. `responses` are by key, each an object; None when not sent."""

    name: str
    arguments: dict[str, Any]
    context: dict[str, Any] | None
    responses: dict[str, Any] | None
    request_state: str | None


def tool_call(params: Mapping[str, Any], *, modern: bool) -> ToolCall:
    """The params of `tools/call`.

    Raises:
        InvalidParams: a member is missing or of the wrong type, or an older client's request
            carries a member that only the newest revision gives a meaning.
    """
    name = params.get("name")
    if not isinstance(name, str):
        raise InvalidParams('"name" must be a string.')
    if not modern:
        _refuse_answers(params)
    state = params.get("requestState")
    if "requestState" in params and not isinstance(state, str):
        raise InvalidParams('"requestState" must be a string.')
    return ToolCall(
        name=name,
        arguments=_object(params, "arguments") or {},
        context=_object(params, "context"),
        responses=_responses(params),
        request_state=state,
    )


def cursor(params: Mapping[str, Any]) -> str | None:
    """The cursor of a list, if it goes on from an earlier page."""
    value = params.get("cursor")
    if "cursor" in params and not isinstance(value, str):
        raise InvalidParams('"cursor" must be a string.')
    return value


def requested_version(params: Mapping[str, Any]) -> str:
    """The revision that `initialize` proposes."""
    version = params.get("protocolVersion")
    if not isinstance(version, str):
        raise InvalidParams('"protocolVersion" must be a string.')
    return version


def _refuse_answers(params: Mapping[str, Any]) -> None:
    for member in ("requestState", "inputResponses"):
        if member in params:
            raise InvalidParams(
                f'"{member}" needs the header MCP-Protocol-Version: {LATEST}; without it this is'
                " an older client's request, which can't answer questions."
            )


def _responses(params: Mapping[str, Any]) -> dict[str, Any] | None:
    responses = _object(params, "inputResponses")
    for key, response in (responses or {}).items():
        if not isinstance(response, dict):
            raise InvalidParams(f'"inputResponses" must hold objects, and "{key[:100]}" is none.')
    return responses


def _object(params: Mapping[str, Any], member: str) -> dict[str, Any] | None:
    value = params.get(member)
    if member in params and not isinstance(value, dict):
        raise InvalidParams(f'"{member}" must be an object.')
    return cast("dict[str, Any] | None", value)
