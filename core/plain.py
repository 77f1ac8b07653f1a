"""Plain JSON: what the wire, a digest and a checkpoint all carry unchanged.

Pure module. Plain is what a JSON reader gives, less four things that get lost further on: a number
that JSON has no literal for, an integer of more than 64 bits (a checkpoint holds none), a lone
surrogate (it has no UTF-8), and nesting deeper than `DEPTH`. NUL is a character like any other.
"""

import json
import math
import re
from typing import Any, Final, cast

DEPTH: Final = 100
"""Levels of nesting: far more than a question has, far fewer than exhaust a stack."""

_SMALLEST: Final = -(2**63)
_LARGEST: Final = 2**64 - 1

# What changes or hides the text around it: C1 controls, zero width characters (but not the joiners
# that emoji and Indic scripts need), bidirectional controls, line separators, tags.
_UNSEEN: Final = re.compile(
    "[\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class NotPlain(Exception):
    """A JSON value that would not arrive as it is; the text says why and quotes nothing of it."""


def check(value: Any, *, depth: int = 0) -> None:
    """Let a plain value pass.

    Raises:
        NotPlain: it is not plain.
    """
    if depth > DEPTH:
        raise NotPlain(f"it is nested more than {DEPTH} deep")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise NotPlain("JSON has no such number")
    elif isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        raise NotPlain("the integer has more than 64 bits")
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            _check_text(key)
            check(item, depth=depth + 1)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            check(item, depth=depth + 1)


def parse(text: str) -> Any:
    """The plain value that a JSON text stands for.

    Raises:
        NotPlain: not JSON, not plain, or an object names a key twice (which of the two would run?).
    """
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise NotPlain(f"it is nested more than {DEPTH} deep") from None
    except ValueError:  # an integer of thousands of digits is one too
        raise NotPlain("it is not JSON") from None
    check(value)
    return value


def dumps(value: Any) -> str:
    """Plain JSON as compact text; non-ASCII characters stay readable, keys keep their order.

    Raises:
        ValueError: a float without a JSON literal.
    """
    return _ENCODER.encode(value)


def shown(value: Any) -> str:
    """The same text for a person to judge: what can hide in it is escaped."""
    return _UNSEEN.sub(lambda match: json.dumps(match[0])[1:-1], dumps(value))


def size(value: Any) -> int:
    """The bytes of a plain value on the wire."""
    return len(dumps(value).encode())


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotPlain("a text holds a lone surrogate") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise NotPlain("an object names a key twice")
    return read
