"""`Mcp-Param-*` headers against the arguments they mirror (rung 12 of `handler.request`).

Pure module. A property of a tool's input schema that carries `x-mcp-header: Region` is mirrored by
the client into `Mcp-Param-Region` (2026-07-28, Streamable HTTP, "Custom Headers from Tool
Parameters"). Something on the way may have routed or allowed the call by that header, so that a
header which disagrees with the arguments is refused before anything runs.

An annotation counts only on a string, integer or boolean that is reached from the root through
`properties` alone; clients drop a tool with any other, so there is nothing to compare with it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from core.errors import HeaderMismatch
from handler.headers import Headers

ANNOTATION: Final = "x-mcp-header"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_INTEGER: Final = re.compile(r"(-?[0-9]{1,20})(\.0+)?")


def check_param_headers(
    headers: Headers, schema: Mapping[str, Any], arguments: Mapping[str, Any]
) -> None:
    """Passes when every annotated argument and its header agree, or are both absent.

    Raises:
        HeaderMismatch: a header is missing, unasked for, repeated, malformed, or differs.
    """
    for path, name, kind in _annotated(schema, ()):
        value = _at(arguments, path)
        header = headers.decoded(name)
        where = ".".join(path)
        if value is None:
            if header is not None:
                raise HeaderMismatch(
                    f"Header mismatch: the {name} header has no argument '{where}' beside it"
                )
        elif not _is_kind(value, kind):
            continue  # the input schema refuses the call; there is no value to compare
        elif header is None:
            raise HeaderMismatch(
                f"Header mismatch: the {name} header is missing beside the argument '{where}'"
            )
        elif not _same(header, value):
            raise HeaderMismatch(
                f"Header mismatch: the {name} header does not match the argument '{where}'"
            )


def _annotated(
    schema: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Path, header name and type of every annotated property, outermost first."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for key, value in cast("dict[str, Any]", properties).items():
        if not isinstance(value, dict):
            continue
        inner = cast("dict[str, Any]", value)
        token, kind = inner.get(ANNOTATION), inner.get("type")
        marked = isinstance(token, str) and _TOKEN.fullmatch(token) is not None
        if marked and isinstance(kind, str) and kind in _KINDS:
            yield (*path, key), f"Mcp-Param-{token}", kind
        yield from _annotated(inner, (*path, key))


_KINDS: Final[Mapping[str, type]] = {"string": str, "integer": int, "boolean": bool}


def _at(arguments: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The value at a path; None where it ends early."""
    value: Any = arguments
    for key in path:
        if not isinstance(value, dict):
            return None
        value = cast("dict[str, Any]", value).get(key)
    return value


def _is_kind(value: object, kind: str) -> bool:
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS[kind]) and isinstance(value, bool) == (kind == "boolean")


def _same(header: str, value: str | int | float | bool) -> bool:
    """Whether the header spells the value; integers compare as numbers, so 42.0 is 42."""
    if isinstance(value, bool):
        return header == ("true" if value else "false")
    if isinstance(value, str):
        return header == value
    number = _INTEGER.fullmatch(header)
    return number is not None and int(number[1]) == int(value)
