"""What LangGraph's functional API keeps of a function: its name, its parameter, their types.

A graph made by `@entrypoint` is one node around a function. LangGraph keeps the annotations as
they are written, which under `from __future__ import annotations` are strings. This module imports
LangGraph.
"""

import inspect
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from langgraph.pregel import Pregel

Graph: TypeAlias = Pregel[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrypoint:
    """The function of an entrypoint, and the parameter that takes the whole input."""

    function: Callable[..., Any]
    parameter: str
    type: Any


def entrypoint_of(graph: Graph) -> Entrypoint | None:
    """The entrypoint that a graph was made from; None for a state graph."""
    if hasattr(graph, "builder") or len(graph.nodes) != 1:
        return None
    function = function_of(next(iter(graph.nodes.values())))
    if function is None:
        return None
    parameter = next(iter(inspect.signature(function).parameters))
    wanted = hints(function).get(parameter, Any)
    return Entrypoint(function=function, parameter=parameter, type=wanted)


def function_of(node: Any) -> Any:
    """The Python function that a node runs, below its decorators; None when it runs none."""
    function = getattr(node.bound, "func", None) or getattr(node.bound, "afunc", None)
    function = inspect.unwrap(function) if callable(function) else None
    return function if inspect.isfunction(function) else None


def hints(declared: Any) -> dict[str, Any]:
    """The resolved annotations of a class or function; none when one can't be resolved."""
    module = sys.modules.get(declared.__module__)
    try:
        return typing.get_type_hints(declared, vars(module) if module else None)
    except (NameError, TypeError, AttributeError):  # a name that exists for type checkers alone
        return {}
