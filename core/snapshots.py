"""A snapshot of a state: what it holds now, whatever a node does to it later.

Pure module. Lists, dicts and sets are copied, at any depth; what else they hold is shared. To
serialize the state instead would settle it whole, but most calls end without ever being stored.
"""

from collections.abc import Iterable
from typing import Any, Final, cast

_COPIED: Final = (list, dict, set)


def snapshot(values: dict[str, Any]) -> dict[str, Any]:
    """The values as they are now. Nesting that exhausts the stack is shared as it is."""
    try:
        return _copy(values, {})
    except RecursionError:
        return dict(values)


def _copy(value: Any, copies: dict[int, Any]) -> Any:
    if id(value) in copies:  # one object in two places, or in itself
        return copies[id(value)]
    # The first copy is one step: a node in another thread may be changing the original.
    copy: Any = value.copy()
    copies[id(value)] = copy
    for place, each in _members(copy):
        if type(each) in _COPIED:
            copy[place] = _copy(each, copies)
    return copy


def _members(value: Any) -> Iterable[tuple[Any, Any]]:
    """What a list or dict holds, by its place; a set holds nothing that is copied."""
    if isinstance(value, list):
        return enumerate(cast("list[Any]", value))
    return cast("dict[Any, Any]", value).items() if isinstance(value, dict) else ()
