"""From an attribute that langgraph.json names to a compiled graph, as LangGraph's server does it.

The attribute is a compiled graph, a `StateGraph`, an entrypoint, or a function that makes one of
these: plain, a coroutine function, or one that returns a context manager of either kind. This
module imports LangGraph.
"""

import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final, TypeAlias, cast

from langchain_core.runnables import RunnableConfig, ensure_config
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore

from core import modules
from core.entrypoints import Graph
from core.late_store import LateStore
from core.project import Project, Source
from core.tools import closest

Builder: TypeAlias = StateGraph[Any, Any, Any, Any]


_INSTALL: Final = (
    " (install it where the server runs, or name the folder that holds it in dependencies)"
)


class Unfit(Exception):
    """An agent can't be served; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """What a graph is wanted for: a run, or a look at its schemas.

    Attributes:
        run: whether nodes will be executed. A factory may then open what they need.
        user: who calls, when LangGraph's custom auth knows.
    """

    run: bool = False
    config: RunnableConfig = field(default_factory=ensure_config)
    context: Any = None
    store: BaseStore | None = None

    def as_server_runtime(self) -> Any:
        """The occasion as LangGraph's `ServerRuntime`."""
        # The SDK has no public way to make one, and costs an HTTP client: few agents ask for it.
        from langgraph_sdk import runtime

        executing: Any = vars(runtime)["_ExecutionRuntime"]
        looking: Any = vars(runtime)["_ReadRuntime"]
        shared: dict[str, Any] = {
            "user": self.config.get("configurable", {}).get("langgraph_auth_user"),
            "store": self.store or LateStore(_no_store),
        }
        if self.run:
            return executing(access_context="threads.create_run", context=self.context, **shared)
        return looking(access_context="assistants.read", **shared)


def load(source: Source, project: Project) -> tuple[ModuleType, Any]:
    """Import the module that a source names, and find the attribute in it; a graph is compiled.

    Raises:
        Unfit: either failed. `__cause__` is what the module's own code raised.
    """
    try:
        if source.file is not None:
            module = modules.load_file(source.file, project.root)
        else:
            module = modules.load_module(source.module or "")
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {error}"
        fix = _INSTALL if isinstance(error, ModuleNotFoundError) else ""
        raise Unfit(f"{source.reference}: importing it failed: {why}{fix}") from error
    members = vars(module)
    if source.attribute not in members:
        graphs = [name for name, value in members.items() if isinstance(value, Pregel | StateGraph)]
        has = f" (it has {', '.join(graphs)})" if graphs else ""
        near = closest(source.attribute, graphs) or has
        raise Unfit(f"{source.reference}: it has no attribute {source.attribute!r}{near}")
    made = members[source.attribute]
    return module, cast("Builder", made).compile() if isinstance(made, StateGraph) else made


@asynccontextmanager
async def graph_of(
    made: Any, source: Source, occasion: Callable[[], Occasion]
) -> AsyncGenerator[Graph]:
    """The compiled graph that an attribute is or makes, for as long as the block lasts.

    Args:
        occasion: what it is wanted for, when it has to be made.

    Raises:
        Unfit: it is no graph and makes none.
    """
    if not _is_factory(made):
        yield _compiled(made, source)
        return
    value: Any = _call(made, source, occasion())
    if inspect.isawaitable(value):
        value = await value
    if hasattr(value, "__aenter__"):
        async with value as inner:
            yield _compiled(inner, source)
    elif hasattr(value, "__enter__"):
        with value as inner:
            yield _compiled(inner, source)
    else:
        yield _compiled(value, source)


def _is_factory(made: object) -> bool:
    return callable(made) and not isinstance(made, Pregel | StateGraph)


def _compiled(value: object, source: Source) -> Graph:
    if isinstance(value, StateGraph):
        return cast("Builder", value).compile()
    if isinstance(value, Pregel):
        return cast("Graph", value)
    raise Unfit(
        f"{source.reference}: it is no LangGraph graph but a {type(value).__name__}; name a"
        " StateGraph, a compiled graph, an entrypoint, or a function that makes one"
    )


def _call(factory: Callable[..., Any], source: Source, occasion: Occasion) -> Any:
    """Call a factory with what its parameters ask for: a config, LangGraph's runtime, both, or
    nothing. A single parameter that says nothing is a config, as it always was."""
    named: dict[str, Any] = {}
    positional: list[Any] = []
    parameters = [
        each
        for each in inspect.signature(factory).parameters.values()
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    for parameter in parameters:
        wanted = _wanted(parameter, alone=len(parameters) == 1)
        if wanted is None and parameter.default is not parameter.empty:
            continue
        if wanted is None:
            raise Unfit(
                f"{source.reference}: a function that makes a graph is given a config and a"
                f" runtime; nothing is known for its parameter {parameter.name!r}"
            )
        value: Any = occasion.config if wanted == "config" else occasion.as_server_runtime()
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named[parameter.name] = value
    return factory(*positional, **named)


def _wanted(parameter: inspect.Parameter, *, alone: bool) -> str | None:
    annotation = str(parameter.annotation)
    if "Runtime" in annotation or parameter.name == "runtime":
        return "runtime"
    if "RunnableConfig" in annotation or parameter.name == "config":
        return "config"
    return "config" if alone and parameter.default is parameter.empty else None


def _no_store() -> BaseStore:
    raise RuntimeError("an agent that is only looked at has no store")
