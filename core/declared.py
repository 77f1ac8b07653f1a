"""The classes that a graph declares: in its state, inputs, outputs, context and tasks.

A checkpoint may bring these back to life and no others, so that a row which somebody else wrote
can't name a class of their choice. LangGraph has such a list only when an environment variable
asks for it. This module imports
LangGraph.
"""

import inspect
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, TypeAlias, cast

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from pydantic import BaseModel

from core.entrypoints import Graph, function_of, hints

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
        function = function_of(node)
        if function is not None:
            yield from hints(function).values()
            yield from _task_results(function)


def _task_results(function: Any) -> Iterator[Any]:
    """What the `@task` functions that a function names say they return: each result is stored."""
    names = inspect.getclosurevars(function)
    for value in (*names.globals.values(), *names.nonlocals.values()):
        if type(value).__module__ == "langgraph.func" and inspect.isfunction(value.func):
            yield hints(value.func).get("return")


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
        for hint in hints(declared).values():
            _collect(hint, found, seen)


def _is_data(declared: type) -> bool:
    kind: Any = declared
    named_tuple = tuple in declared.__mro__ and hasattr(kind, "_fields")
    return named_tuple or issubclass(declared, BaseModel | Enum) or is_dataclass(kind)
