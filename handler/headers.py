"""Header fields as MCP reads them: names without case, values without blanks around them.

Pure module. `Mcp-Name` and `Mcp-Param-*` may carry a value as `=?base64?…?=` (2026-07-28,
Streamable HTTP, "Value Encoding"); the markers are exact, and anything else is literal.
"""

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Final

from core.errors import HeaderMismatch

_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="
_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
"""What RFC 9110 (5.5) lets a field value hold, less the obsolete bytes above ASCII."""


class Headers:
    """The fields of one request, in the order they came."""

    def __init__(self, fields: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in fields:
            # Some servers leave blanks around a value, which RFC 9110 does not count as part of it.
            text = value.decode("latin-1").strip(" \t")
            self._values.setdefault(name.decode("latin-1").lower(), []).append(text)

    def all(self, name: str) -> list[str]:
        """Every value of a field, one per line that carried it."""
        return self._values.get(name.lower(), [])

    def first(self, name: str) -> str:
        """The value of a field whose repetition harms nobody, or the empty string."""
        return next(iter(self.all(name)), "")

    def one(self, name: str) -> str | None:
        """The value of a field that something on the way may have routed by.

        Raises:
            HeaderMismatch: the field is repeated, so that two readers could take two values, or
                it holds a character that no field may hold.
        """
        values = self.all(name)
        if not values:
            return None
        if len(values) > 1:
            raise HeaderMismatch(f"Header mismatch: the {name} header appears more than once")
        if not _VALUE.fullmatch(values[0]):
            raise HeaderMismatch(f"Header mismatch: the {name} header holds invalid characters")
        return values[0]

    def decoded(self, name: str) -> str | None:
        """The value of a field that may be encoded, decoded.

        Raises:
            HeaderMismatch: as `one`, or the markers hold something that is not canonical base64
                of UTF-8.
        """
        value = self.one(name)
        if value is None or not _is_encoded(value):
            return value
        try:
            return _decode(value[len(_PREFIX) : -len(_SUFFIX)])
        except ValueError:
            raise HeaderMismatch(
                f"Header mismatch: the {name} header is not valid base64 of UTF-8"
            ) from None


def _is_encoded(value: str) -> bool:
    # `=?base64?=` has both markers only by letting them share a character.
    long_enough = len(value) >= len(_PREFIX) + len(_SUFFIX)
    return long_enough and value.startswith(_PREFIX) and value.endswith(_SUFFIX)


def _decode(payload: str) -> str:
    try:
        raw = base64.b64decode(payload, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    # Bits that a lax decoder drops would give one value two spellings.
    if base64.b64encode(raw).decode() != payload:
        raise ValueError("not canonical base64")
    return raw.decode("utf-8")
