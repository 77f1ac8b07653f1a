"""An agent: a LangGraph graph, opened for one run at a time, and what it looks like as a tool.

This module imports LangGraph. Only what runs or describes an agent imports it; the catalogue does
so inside the function that needs it.
"""

import copy
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, Self, TypeAlias, cast

from langchain_core.runnables import RunnableConfig, ensure_config
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import StateGraph
from langgraph.store.base import BaseStore
from pydantic import PydanticUserError, SecretBytes, SecretStr, TypeAdapter, ValidationError
from typing_extensions import is_typeddict

from core import schemas
from core.declared import declared_classes, is_found, tell_undeclared
from core.entrypoints import entrypoint_of
from core.errors import InvalidParams
from core.factories import Builder, Graph, Occasion, Unfit, graph_of, load
from core.late_store import LateStore
from core.project import Project, Serde, Source
from core.results import CONTENT_KEY
from core.tools import Tool
from core.validation import Check, Unusable

OpenStore: TypeAlias = Callable[[], BaseStore | Awaitable[BaseStore]]

tell_undeclared()

_log: Final = logging.getLogger(__name__)

_UNNAMED: Final = "LangGraph"
"""The name of every graph that was not given one."""

_SECRETS: Final = frozenset((kind.__module__, kind.__name__) for kind in (SecretBytes, SecretStr))
"""As plain data they would be told to whoever called."""

_NO_SCHEMA: Final = (PydanticUserError, TypeError, NameError)
"""What Pydantic raises for a type that has no JSON Schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A loaded agent.

    Attributes:
        made: what langgraph.json names: a graph, or a function that makes one.
        tool: the agent as MCP shows it.
        input_type: what an entrypoint's parameter asks for.
        wrapped: the one argument that is the whole input, for an agent that takes no object.
        classes: `(module, name)` of every class that its state, inputs and outputs declare: what
            a checkpoint may bring back to life.
    """

    source: Source
    serde: Serde
    made: Any
    tool: Tool
    input_type: Any
    context_type: Any
    wrapped: str | None
    classes: frozenset[tuple[str, str]]

    @classmethod
    async def load(cls, source: Source, project: Project) -> Self:
        """Import an agent and look at its graph; a factory is called once for that.

        Raises:
            Unfit: it can't be imported or served. `__cause__` is what its own code raised.
        """
        try:
            module, made = load(source, project)
            async with graph_of(made, source, Occasion) as graph:
                _check_subgraphs(graph)
                entrypoint = entrypoint_of(graph)
                given = source.input_schema
                input_schema, wrapped = (given, None) if given else _input_schema(graph)
                tool = Tool(
                    name=source.name,
                    agent=source.name,
                    description=source.description or _doc(source.name, made, graph, module),
                    input_schema=input_schema,
                    output_schema=_output_schema(graph),
                )
                _check_schemas(tool)
                classes = declared_classes(graph)
                for lost in sorted(each.__qualname__ for each in classes if not is_found(each)):
                    _log.warning(
                        "agent %s: after a pause a %s is plain data, because its module has no"
                        " class of that name: define it at the top of the module",
                        source.name,
                        lost,
                    )
                return cls(
                    source=source,
                    serde=project.serde,
                    made=made,
                    tool=tool,
                    input_type=entrypoint.type if entrypoint else None,
                    context_type=graph.context_schema,
                    wrapped=wrapped,
                    classes=frozenset((each.__module__, each.__name__) for each in classes),
                )
        except Unfit:
            raise
        except Exception as error:  # a factory is the agent's code
            why = f"{type(error).__name__}: {error}"
            raise Unfit(f"{source.reference}: making its graph failed: {why}") from error

    @asynccontextmanager
    async def open(
        self,
        config: RunnableConfig,
        *,
        saver: BaseCheckpointSaver[Any] | None,
        store: OpenStore | None = None,
        context: Any = None,
    ) -> AsyncGenerator[Graph]:
        """The graph for one run, with this checkpointer in place of any that it was compiled with.

        A factory makes its graph anew. The store is opened when the agent first uses it; without
        one the agent keeps what it was compiled with.

        Args:
            config: the run's; a factory may ask for it.
            context: what `context` made of the run's runtime context; a factory may ask for it.

        Raises:
            Unfit: the factory did not make a graph.
        """
        late = LateStore(store) if store else None

        def occasion() -> Occasion:
            return Occasion(run=True, config=ensure_config(config), context=context, store=late)

        async with graph_of(self.made, self.source, occasion) as graph:
            # A shallow copy, because Pregel.copy forgets which classes a strict checkpoint may
            # hold and checks the whole graph again.
            run = copy.copy(graph)
            run.checkpointer = saver
            run.store = late or graph.store
            if run.name == _UNNAMED:
                run.name = self.source.name
            yield run

    def input(self, arguments: dict[str, Any]) -> Any:
        """What the graph is invoked with.

        An entrypoint whose parameter is a class gets an instance of it; a state graph makes its
        own.

        Raises:
            InvalidParams: the class refuses the arguments.
        """
        value: Any = arguments if self.wrapped is None else arguments.get(self.wrapped)
        if not inspect.isclass(self.input_type) or is_typeddict(self.input_type):
            return value
        return _validated(self.input_type, value, "arguments")

    def context(self, context: dict[str, Any] | None) -> Any:
        """The runtime context, as an instance of the agent's context schema when it has one.

        Raises:
            InvalidParams: the schema refuses it.
        """
        if context is None or self.context_type is None:
            return context
        return _validated(self.context_type, context, "context")

    def serializer(self) -> JsonPlusSerializer:
        """What reads and writes this agent's checkpoints.

        It revives no class that the graph does not declare and langgraph.json does not allow. The
        agent's modules are loaded by now, so its classes are found by name.
        """
        allowed, old = self.serde.msgpack, self.serde.json
        classes = {*_SECRETS, *self.classes, *(() if isinstance(allowed, bool) else allowed)}
        return JsonPlusSerializer(
            pickle_fallback=self.serde.pickle,
            allowed_json_modules=True if old is True else (old or None),
            allowed_msgpack_modules=True if allowed is True else classes,
        )


def _check_subgraphs(graph: Graph) -> None:
    for name, subgraph in cast("Iterator[tuple[str, Any]]", graph.get_subgraphs(recurse=True)):
        if isinstance(subgraph.checkpointer, BaseCheckpointSaver):
            raise Unfit(
                f"its subgraph {name!r} was compiled with a checkpointer of its own, which would"
                " keep a pause where no other process finds it: compile the subgraph without one"
            )


def _check_schemas(tool: Tool) -> None:
    for side, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        try:
            Check(schema or {})
        except Unusable as error:
            raise Unfit(f"its {side} schema can't be published: {error}") from error
    if problem := schemas.header_problem(tool.input_schema):
        raise Unfit(f"clients would drop it for its input schema: {problem}")


def _input_schema(graph: Graph) -> tuple[dict[str, Any], str | None]:
    """The input schema, and the property put around one that is no object: an entrypoint's own
    parameter where there is one."""
    entrypoint = entrypoint_of(graph)
    try:
        if entrypoint:
            schema = TypeAdapter(entrypoint.type).json_schema()
        else:
            schema = _without_managed(graph, graph.get_input_jsonschema())
    except _NO_SCHEMA as error:
        raise Unfit(
            f"its input has no JSON Schema ({type(error).__name__}: {error}): give the graph an"
            " input_schema of plain types"
        ) from error
    name = entrypoint.parameter if entrypoint else "input"
    root = schemas.object_root(schemas.short_messages(schema))
    return (root, None) if root.get("type") == "object" else (schemas.wrapped(root, name), name)


def _output_schema(graph: Graph) -> dict[str, Any] | None:
    """The schema of an output that was declared apart from the state.

    None when it holds messages: LangChain's own schema for them refuses what it writes itself. None
    when the graph stops at breakpoints, where its state is the output.
    """
    builder = getattr(graph, "builder", None)
    if not isinstance(builder, StateGraph):
        return None
    if graph.interrupt_before_nodes or graph.interrupt_after_nodes:
        return None
    declared = cast("Builder", builder)
    if declared.output_schema is declared.state_schema:
        return None
    try:
        schema = _without_managed(graph, graph.get_output_jsonschema())
    except _NO_SCHEMA:
        return None
    if schemas.mentions_messages(schema):
        return None
    root = schemas.kept(schemas.object_root(schema))
    if CONTENT_KEY not in root.get("properties", {}):
        return root
    rest = schemas.without_property(root, CONTENT_KEY)
    return rest if rest["properties"] else None


def _without_managed(graph: Graph, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the values that LangGraph itself provides, such as the steps left."""
    for name in getattr(getattr(graph, "builder", None), "managed", ()):
        schema = schemas.without_property(schema, name)
    return schema


def _doc(name: str, made: Any, graph: Graph, module: ModuleType) -> str:
    """The first paragraph of the docstring nearest to the graph, or a sentence that is never
    empty."""
    maker = made if inspect.isroutine(made) else None
    entrypoint = entrypoint_of(graph)
    for candidate in (maker, entrypoint and entrypoint.function, module):
        text = inspect.cleandoc(getattr(candidate, "__doc__", None) or "")
        if text:
            return " ".join(text.split("\n\n")[0].split())
    return f"Run the {name if graph.name == _UNNAMED else graph.name} agent."


def _validated(wanted: Any, value: Any, what: str) -> Any:
    try:
        return TypeAdapter[Any](wanted).validate_python(value)
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(str(part) for part in each['loc']) or what}: {each['msg']}"
            for each in error.errors(include_input=False, include_url=False)[:10]
        )
        raise InvalidParams(f"Invalid {what}: {told}") from error
