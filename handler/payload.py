"""Bytes → one JSON value, strictly.

Pure module. What Python's parser lets through and another reader of the same bytes would take for
something else, or what a later step could not keep or send, is a fault here: a repeated key, a
number outside 64 bits or beyond a double, a lone surrogate, nesting without end. The value is
still returned where it could be read, so that the refusal can name the request's id.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Never, cast

from core.errors import InvalidParams, InvalidRequest, ParseError, Refusal

MAX_DEPTH: Final = 100
"""Objects and arrays inside each other. Everything after the parser recurses, at up to a few
frames a level, and Python stops at a thousand frames."""

MAX_VALUES: Final = 100_000
"""Values in a body, inside each other or side by side. Each costs some microseconds on the way, and
nothing else is done meanwhile."""

INTEGERS: Final = range(-(2**63), 2**64)
"""What MessagePack, in which LangGraph stores its state, can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """A parsed body. With a `fault`, `value` is as much of it as could be read, or None."""

    value: Any = None
    fault: Refusal | None = None


def parse(body: bytes) -> Payload:
    """Reads a body; never raises."""
    reader = _Reader()
    try:
        value = reader.read(body)
    except RecursionError:
        return Payload(fault=ParseError("The body nests too deeply."))
    except ValueError:
        return Payload(fault=ParseError("The body is not JSON in UTF-8."))
    return Payload(value=value, fault=reader.fault or _shape_fault(value, body))


@dataclass(slots=True)
class _Reader:
    """Reads once; the first fault that leaves a value is kept instead of raised."""

    fault: Refusal | None = field(default=None)

    def read(self, body: bytes) -> Any:
        return json.loads(
            body.decode("utf-8"),
            object_pairs_hook=self._object,
            parse_int=self._integer,
            parse_float=self._float,
            parse_constant=self._constant,
        )

    def _note(self, fault: Refusal) -> None:
        self.fault = self.fault or fault

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            self._note(InvalidRequest("An object in the body repeats a key."))
        return result

    def _integer(self, digits: str) -> int | None:
        # No integer of 64 bits has more than 20 characters; int() takes quadratic time.
        if len(digits) <= 20 and (number := int(digits)) in INTEGERS:
            return number
        self._note(InvalidParams("An integer in the body does not fit in 64 bits."))
        return None

    def _float(self, digits: str) -> float | None:
        number = float(digits)
        if math.isfinite(number):
            return number
        self._note(InvalidParams("A number in the body is beyond the range of a double."))
        return None

    def _constant(self, name: str) -> Never:
        raise ValueError(f"{name} is not JSON")


def _shape_fault(value: Any, body: bytes) -> Refusal | None:
    containers = body.count(b"{") + body.count(b"[")
    if containers > MAX_DEPTH and _deeper(value, MAX_DEPTH):
        return InvalidRequest(f"The body nests more than {MAX_DEPTH} levels deep.")
    # Each value but the outermost follows a comma or is the first in its container.
    if containers + body.count(b",") >= MAX_VALUES and _more(value, MAX_VALUES):
        return InvalidRequest(f"The body holds more than {MAX_VALUES} values.")
    # Strict UTF-8 has no surrogates: only an escape can bring one in.
    if (b"\\ud" in body or b"\\uD" in body) and not encodable(value):
        return InvalidRequest("A string in the body holds half of a surrogate pair.")
    return None


def _more(value: Any, limit: int) -> bool:
    """Whether there are more values than the limit; level by level."""
    level, count = [value], 0
    while level and count <= limit:
        count += len(level)
        level = [child for each in level for child in _children(each)]
    return count > limit


def _deeper(value: Any, limit: int) -> bool:
    """Whether containers nest deeper than the limit; level by level, so without recursion."""
    level = [value]
    for _ in range(limit):
        level = [child for each in level for child in _children(each)]
        if not level:
            return False
    return any(isinstance(each, (dict, list)) for each in level)


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def encodable(value: Any) -> bool:
    """Whether a JSON value can be sent: no string in it holds half of a surrogate pair."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
