"""The classes that a graph declares: in its state, inputs, outputs, context and tasks.

A checkpoint may bring these back to life and no others, so that a row which somebody else wrote
can't name a class of their choice. LangGraph has such a list only when an environment variable
asks for it.
"""

import dataclasses
import inspect
import sys
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any, cast

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from pydantic import BaseModel

Named = tuple[str, str]


def declared_classes(graph: "Pregel[Any, Any, Any, Any]") -> frozenset[Named]:
    """`(module, name)` of each class of data that a graph or a subgraph of it declares."""
    found: set[type] = set()
    seen: set[int] = set()
    for each in (graph, *(sub for _, sub in graph.get_subgraphs(recurse=True))):
        if isinstance(each, Pregel):
            for declared in _declarations(cast("Pregel[Any, Any, Any, Any]", each)):
                _collect(declared, found, seen)
    return frozenset((each.__module__, each.__name__) for each in found)


def _declarations(graph: "Pregel[Any, Any, Any, Any]") -> Iterator[Any]:
    yield graph.context_schema
    for channel in graph.channels.values():
        yield getattr(channel, "ValueType", None)
        yield getattr(channel, "UpdateType", None)
    builder = getattr(graph, "builder", None)
    if isinstance(builder, StateGraph):
        builder = cast("StateGraph[Any, Any, Any, Any]", builder)
        yield from (builder.state_schema, builder.input_schema, builder.output_schema)
        yield from (node.input_schema for node in builder.nodes.values())
    for node in graph.nodes.values():
        yield from _task_results(getattr(node.bound, "func", None))
        yield from _task_results(getattr(node.bound, "afunc", None))


def _task_results(function: Any) -> Iterator[Any]:
    """What the `@task` functions that a function names say they return: each result is stored."""
    function = inspect.unwrap(function) if callable(function) else None
    if not inspect.isfunction(function):
        return
    names = inspect.getclosurevars(function)
    for value in (*names.globals.values(), *names.nonlocals.values()):
        task = getattr(value, "func", None)
        if type(value).__module__ == "langgraph.func" and inspect.isfunction(task):
            yield _hints(task).get("return")


def _collect(declared: Any, found: set[type], seen: set[int]) -> None:
    if declared is None or id(declared) in seen:
        return
    seen.add(id(declared))
    for argument in typing.get_args(declared):
        _collect(argument, found, seen)
    if not isinstance(declared, type):
        _collect(getattr(declared, "__supertype__", None), found, seen)  # NewType
        _collect(getattr(declared, "__value__", None), found, seen)  # type X = …
        return
    if _is_data(declared):
        found.add(declared)
    if _is_data(declared) or typing.is_typeddict(declared):
        for hint in _hints(declared).values():
            _collect(hint, found, seen)


def _is_data(declared: type) -> bool:
    return (
        issubclass(declared, BaseModel | Enum)
        or dataclasses.is_dataclass(declared)
        or (issubclass(declared, tuple) and hasattr(declared, "_fields"))
    )


def _hints(declared: Any) -> dict[str, Any]:
    module = sys.modules.get(declared.__module__)
    try:
        return typing.get_type_hints(declared, vars(module) if module else None)
    except (NameError, TypeError, AttributeError):  # a name that exists for type checkers alone
        return {}
