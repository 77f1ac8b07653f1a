"""The classes that a graph declares: in its state, inputs, outputs, context and tasks.

A checkpoint may bring these back to life and no others, so that a row which somebody else wrote
can't name a class of their choice. LangGraph has such a list only when an environment variable
asks for it.
"""

import inspect
import sys
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, TypeAlias, cast

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from pydantic import BaseModel

Graph: TypeAlias = Pregel[Any, Any, Any, Any]
Named: TypeAlias = tuple[str, str]


def declared_classes(graph: Graph) -> frozenset[Named]:
    """`(module, name)` of each class of data that a graph or a subgraph of it declares."""
    found: set[type] = set()
    seen: set[int] = set()
    subgraphs = cast("Iterator[tuple[str, Any]]", graph.get_subgraphs(recurse=True))
    for each in (graph, *(subgraph for _, subgraph in subgraphs)):
        if isinstance(each, Pregel):
            for declared in _declarations(cast("Graph", each)):
                _collect(declared, found, seen)
    return frozenset((each.__module__, each.__name__) for each in found)


def parameter(graph: Graph) -> tuple[str, Any] | None:
    """The name and type of an entrypoint's parameter; None for a state graph.

    LangGraph keeps the annotation as written, which may be a string.
    """
    if hasattr(graph, "builder") or len(graph.nodes) != 1:
        return None
    function = _function(next(iter(graph.nodes.values())))
    if function is None:
        return None
    name = next(iter(inspect.signature(function).parameters))
    return name, _hints(function).get(name, Any)


def _declarations(graph: Graph) -> Iterator[Any]:
    yield graph.context_schema
    for channel in cast("dict[str, Any]", graph.channels).values():
        yield getattr(channel, "ValueType", None)
        yield getattr(channel, "UpdateType", None)
    builder = getattr(graph, "builder", None)
    if isinstance(builder, StateGraph):
        declared = cast("StateGraph[Any, Any, Any, Any]", builder)
        yield from (declared.state_schema, declared.input_schema, declared.output_schema)
        yield from (node.input_schema for node in declared.nodes.values())
    for node in graph.nodes.values():
        function = _function(node)
        if function is not None:
            yield from _hints(function).values()
            yield from _task_results(function)


def _function(node: Any) -> Any:
    bound = node.bound
    function = getattr(bound, "func", None) or getattr(bound, "afunc", None)
    function = inspect.unwrap(function) if callable(function) else None
    return function if inspect.isfunction(function) else None


def _task_results(function: Any) -> Iterator[Any]:
    """What the `@task` functions that a function names say they return: each result is stored."""
    names = inspect.getclosurevars(function)
    for value in (*names.globals.values(), *names.nonlocals.values()):
        if type(value).__module__ == "langgraph.func" and inspect.isfunction(value.func):
            yield _hints(value.func).get("return")


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
    kind: Any = declared
    named_tuple = tuple in declared.__mro__ and hasattr(kind, "_fields")
    return named_tuple or issubclass(declared, BaseModel | Enum) or is_dataclass(kind)


def _hints(declared: Any) -> dict[str, Any]:
    module = sys.modules.get(declared.__module__)
    try:
        return typing.get_type_hints(declared, vars(module) if module else None)
    except (NameError, TypeError, AttributeError):  # a name that exists for type checkers alone
        return {}
