"""Any Python value that an agent may return, as JSON.

| value | JSON |
|---|---|
| None, bool, str, int (of any size), float | itself; NaN and the infinities are null |
| dict and other mappings | an object; keys that are not strings become their JSON text |
| list, tuple, named tuple, deque | an array |
| set, frozenset | an array in a fixed order |
| Pydantic model, LangChain message | its `model_dump`, by alias |
| dataclass | an object of its fields |
| Enum | its value |
| datetime, date, time | ISO 8601 |
| timedelta | an ISO 8601 duration |
| Decimal, UUID, Path, IP address, URL | its text |
| SecretStr, SecretBytes | asterisks |
| bytes | Base64 |

Pure module: nothing else is guessed at. A class that is not named here is refused with the key that
holds it, because its repr is nothing that a client could read.
"""

import base64
import dataclasses
import datetime
import decimal
import enum
import math
import numbers
import os
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from core.plain import dumps

DEEPEST: Final = 100
"""Levels of nesting: more than any output needs, fewer than exhaust a stack or a JSON reader."""


_SHOWN: Final = 100
"""Characters of a key's path that a text names."""


class NotJson(Exception):
    """A value has no JSON form; the text names the key that holds it and its type."""


def encode(value: Any) -> Any:
    """The value with nothing but JSON in it.

    Raises:
        NotJson: a class that is not in the table, a cycle, or nesting deeper than `DEEPEST`.
    """
    return _Encoder().encode(value, "")


class _Encoder:
    def __init__(self) -> None:
        self._open: set[int] = set()

    def encode(self, value: Any, path: str) -> Any:
        if value is None or type(value) in _ITSELF:
            return value
        if type(value) is str:
            return _text(value)
        if type(value) not in _CONTAINERS:  # hardly anything is left, and what follows is dear
            if isinstance(value, enum.Enum):
                return self.encode(value.value, path)
            plain = _plain(value)
            if plain is not _NOT_PLAIN:
                return plain
        if id(value) in self._open or len(self._open) >= DEEPEST:
            why = "refers back to itself" if id(value) in self._open else "is nested too deeply"
            raise NotJson(f"{_at(path)} {why}")
        self._open.add(id(value))
        try:
            return self._container(value, path)
        finally:
            self._open.discard(id(value))

    def _container(self, value: Any, path: str) -> Any:
        if isinstance(value, dict | Mapping):
            return self._object(cast("Mapping[Any, Any]", value).items(), path)
        if isinstance(value, list | tuple | deque):
            return self._array(cast("Iterable[Any]", value), path)
        if isinstance(value, set | frozenset):
            return _sorted(self._array(cast("Iterable[Any]", value), path))
        if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
            return self.encode(_dumped(dump, value, path), path)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            return self._object(((each.name, getattr(value, each.name)) for each in fields), path)
        raise NotJson(f"{_at(path)} is a {_type_name(cast('object', value))}")

    def _object(self, items: Iterable[tuple[Any, Any]], path: str) -> dict[str, Any]:
        encoded: dict[str, Any] = {}
        for key, value in items:
            name = _key(key, path)
            if name in encoded:
                raise NotJson(f"{_at(path)} has two keys that are {name!r} in JSON")
            encoded[name] = self.encode(value, f"{path}.{name}" if path else name)
        return encoded

    def _array(self, items: Iterable[Any], path: str) -> list[Any]:
        return [self.encode(item, f"{path}[{index}]") for index, item in enumerate(items)]


def _sorted(items: list[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:  # of several kinds
        return sorted(items, key=dumps)


_ITSELF: Final = (bool, int)

_CONTAINERS: Final = (dict, list)

_NOT_PLAIN: Final = object()


def _plain(value: Any) -> Any:
    """The JSON form of a value that holds no others, or `_NOT_PLAIN`."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | numbers.Integral):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    for kinds, written in _WRITTEN:
        if isinstance(value, kinds):
            return written(value)
    return str(value) if _is_text_like(cast("object", value)) else _NOT_PLAIN


def _duration(value: datetime.timedelta) -> str:
    sign = "-" if value < datetime.timedelta(0) else ""
    value = abs(value)
    seconds = f"{value.seconds + value.microseconds / 1_000_000:.6f}".rstrip("0").rstrip(".")
    return f"{sign}P{value.days}DT{seconds}S"


def _base64(value: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(value).decode()


def _isoformat(value: datetime.date | datetime.time) -> str:
    return value.isoformat()


_WRITTEN: Final[tuple[tuple[tuple[type, ...], Callable[[Any], str]], ...]] = (
    ((datetime.date, datetime.time), _isoformat),
    ((datetime.timedelta,), _duration),
    ((decimal.Decimal, uuid.UUID), str),
    ((bytes, bytearray, memoryview), _base64),
    ((os.PathLike,), os.fspath),
)


def _is_text_like(value: object) -> bool:
    """IP addresses, URLs and secrets: known by where they come from, so as not to import them."""
    kind = type(value)
    names = map(_qualified, kind.__mro__)
    return kind.__module__ == "ipaddress" or not _TEXT_LIKE.isdisjoint(names)


_TEXT_LIKE: Final = frozenset(
    {
        "pydantic.networks._BaseMultiHostUrl",
        "pydantic.networks._BaseUrl",
        "pydantic.types._SecretBase",
        "pydantic_core._pydantic_core.MultiHostUrl",
        "pydantic_core._pydantic_core.Url",
    }
)


def _text(value: str) -> str:
    """The text with each lone surrogate, which UTF-8 has no form for, replaced by U+FFFD."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return str(value)


def _key(key: Any, path: str) -> str:
    if type(key) is str:
        return _text(key)
    if isinstance(key, enum.Enum):
        key = key.value
    if key is None or isinstance(key, bool):
        return dumps(key)
    plain = _plain(key)
    if plain is _NOT_PLAIN:
        raise NotJson(f"{_at(path)} has a key that is a {_type_name(key)}")
    return plain if isinstance(plain, str) else dumps(plain)


def _dumped(dump: Callable[..., Any], model: object, path: str) -> Any:
    try:
        return dump(by_alias=True, warnings=False)
    except Exception as error:  # its serializers are the agent's code, and so is its message
        what = f"{_at(path)} is a {_type_name(model)} that can't be dumped"
        raise NotJson(f"{what}: {type(error).__name__}") from error


def _at(path: str) -> str:
    shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…"
    return f'"{shown}"' if path else "the output"


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else _qualified(kind)


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
