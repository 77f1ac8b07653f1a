"""The filters that LangGraph's auth handlers return, matched against a thread's metadata.

    {"owner": "ada"}                        equal
    {"owner": {"$eq": "ada"}}               equal
    {"team": {"$contains": "ada"}}          a list that holds it
    {"team": {"$contains": ["ada", "b"]}}   a list that holds each of them
    {"$or": [{…}, {…}]}, {"$and": [{…}, {…}]}

Pure module. Members of a filter hold together. What is not such a filter is an error and matches
nothing: passing over an operator that is not known would let people in.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

Filter: TypeAlias = Mapping[str, Any]

DEEPEST: Final = 3
"""Levels of `$or` and `$and`."""


def matches(metadata: Mapping[str, Any], wanted: Filter, *, depth: int = 0) -> bool:
    """Whether a thread with this metadata is one of those that a filter means.

    Raises:
        ValueError: it is no filter.
    """
    if depth > DEEPEST:
        raise ValueError("a filter is nested too deep")
    found = [_member(metadata, key, value, depth) for key, value in wanted.items()]
    return all(found)  # of a list: a filter is wrong or right whatever it meets


def fixed(wanted: Filter) -> dict[str, Any]:
    """What a filter says about the metadata of whatever matches it, in equalities."""
    return {
        key: cast("dict[str, Any]", value)["$eq"] if isinstance(value, dict) else value
        for key, value in wanted.items()
        if not key.startswith("$") and (not isinstance(value, dict) or "$eq" in value)
    }


def _member(metadata: Mapping[str, Any], key: str, value: Any, depth: int) -> bool:
    if key in ("$or", "$and"):
        found = [matches(metadata, each, depth=depth + 1) for each in _groups(key, value)]
        return any(found) if key == "$or" else all(found)
    if key.startswith("$"):
        raise ValueError("a filter has an unknown operator")
    if not isinstance(value, dict):
        return key in metadata and metadata[key] == value
    return _operator(metadata.get(key), cast("dict[str, Any]", value), present=key in metadata)


def _operator(found: Any, operation: Mapping[str, Any], *, present: bool) -> bool:
    match list(operation.items()):
        case [("$eq", operand)]:
            return present and found == operand
        case [("$contains", operand)]:
            wanted = cast("list[Any]", operand) if isinstance(operand, list) else [operand]
            return isinstance(found, list) and all(each in found for each in wanted)
        case _:
            raise ValueError("a filter has an unknown operator")


def _groups(key: str, value: Any) -> list[Filter]:
    groups = cast("list[Any]", value) if isinstance(value, list) else []
    if len(groups) < 2 or not all(isinstance(each, dict) for each in groups):
        raise ValueError(f"{key} in a filter takes a list of two filters or more")
    return groups
