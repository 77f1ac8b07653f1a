"""`params._meta`: what a request says about its client and itself.

Pure module. Unknown members are ignored; a known one of the wrong shape is -32602.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from core.errors import InvalidParams
from core.protocol import LOG_LEVEL_KEY, LOG_LEVELS

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def elicitation_modes(capabilities: object) -> frozenset[str]:
    """The modes of elicitation that a `clientCapabilities` declares; without a mode, `form`.

    Raises:
        InvalidParams: not the shape that the protocol gives it.
    """
    elicitation = _object(capabilities, "clientCapabilities").get("elicitation", _ABSENT)
    if elicitation is _ABSENT:
        return frozenset()
    declared = _object(elicitation, "clientCapabilities.elicitation")
    modes = frozenset(mode for mode in ("form", "url") if mode in declared)
    for mode in modes:
        _object(declared[mode], f"clientCapabilities.elicitation.{mode}")
    return modes or frozenset(("form",))


def progress_token(meta: Mapping[str, Any]) -> str | int | None:
    """The token that progress is reported under, if the client wants any."""
    token = meta.get("progressToken")
    if token is None or (isinstance(token, (str, int)) and not isinstance(token, bool)):
        return token
    raise InvalidParams('"_meta.progressToken" must be a string or an integer.')


def log_level(meta: Mapping[str, Any]) -> str | None:
    """The least level of log notifications that the client wants, if any."""
    level = meta.get(LOG_LEVEL_KEY)
    if level is None or (isinstance(level, str) and level in LOG_LEVELS):
        return level
    raise InvalidParams(f'"_meta" names an unknown level in "{LOG_LEVEL_KEY}".')


def traceparent(value: object) -> str:
    """A W3C trace context, or the empty string: one that is malformed is to be ignored."""
    return value if isinstance(value, str) and _TRACEPARENT.fullmatch(value) else ""


def trace_id(traceparent: str) -> str:
    """The trace that a trace context belongs to; empty without one."""
    found = _TRACEPARENT.fullmatch(traceparent)
    return found[1] if found else ""


_ABSENT: Final = object()


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidParams(f'"{name}" must be an object.')
    return cast("dict[str, Any]", value)
