"""The classes that a graph declares: in its state, inputs, outputs, context and tasks.

A checkpoint may bring these back to life and no others, so that a row which somebody else wrote
can't name a class of their choice. LangGraph has such a list only when an environment variable
asks for it. This module imports LangGraph.
"""

import inspect
import logging
import sys
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final, cast

from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from pydantic import BaseModel
from typing_extensions import is_typeddict

from core.entrypoints import Graph, function_of, hints

log: Final = logging.getLogger(__name__)


def tell_undeclared() -> None:
    """Log each class that a checkpoint names and that stays plain data, once."""
    register_serde_event_listener(_told)


def _told(event: SerdeEvent) -> None:
    if event["kind"] == "msgpack_blocked":
        _tell(event["module"], event["name"])


@lru_cache(maxsize=1000)
def _tell(module: str, name: str) -> None:
    log.warning(
        "after a pause a %s.%s is plain data, because no state of the agent declares it: declare it"
        " or list it in langgraph.json under checkpointer.serde.allowed_msgpack_modules",
        module[:200],
        name[:200],
    )


def declared_classes(graph: Graph) -> frozenset[type]:
    """Each class of data that a graph or a subgraph of it declares."""
    found: set[type] = set()
    seen: set[int] = set()
    subgraphs = cast("Iterator[tuple[str, Any]]", graph.get_subgraphs(recurse=True))
    for each in (graph, *(subgraph for _, subgraph in subgraphs)):
        if isinstance(each, Pregel):
            for declared in _declarations(cast("Graph", each)):
                _collect(declared, found, seen)
    return frozenset(found)


def is_found(declared: type) -> bool:
    """Whether a checkpoint finds the class by the name of its module and its own."""
    return getattr(sys.modules.get(declared.__module__), declared.__name__, None) is declared


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
    if issubclass(declared, BaseModel):
        members: list[Any] = [each.annotation for each in declared.model_fields.values()]
    else:
        members = _members(declared)
    for member in members:
        _collect(member, found, seen)


def _members(declared: Any) -> list[Any]:
    structured = is_typeddict(declared) or (_is_data(declared) and not issubclass(declared, Enum))
    return list(hints(declared).values()) if structured else []


def _is_data(declared: type) -> bool:
    kind: Any = declared
    named_tuple = tuple in declared.__mro__ and hasattr(kind, "_fields")
    return named_tuple or issubclass(declared, BaseModel | Enum) or is_dataclass(kind)
