"""An agent: a LangGraph graph, or what makes one, opened for one run at a time.

This module imports LangGraph. Only what runs or describes an agent imports it; the catalogue does
so inside the functions that need it.
"""

import copy
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, is_dataclass
from types import ModuleType
from typing import Any, Final, Self, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore
from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError

from core import modules, schemas
from core.declared import declared_classes
from core.errors import InvalidParams
from core.late_store import LateStore
from core.project import Project, Serde, Source
from core.tools import Tool, closest, validator

Graph = Pregel[Any, Any, Any, Any]
Builder = StateGraph[Any, Any, Any, Any]
OpenStore = Callable[[], BaseStore | Awaitable[BaseStore]]

_UNNAMED: Final = "LangGraph"
"""The name of every graph that was not given one."""


class Unfit(Exception):
    """An agent can't be served; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A loaded agent.

    Attributes:
        classes: `(module, name)` of every class that its state, inputs and outputs declare: what
            a checkpoint may bring back to life.
    """

    source: Source
    serde: Serde
    made: Any
    graph: Graph
    doc: str
    wrapped: bool
    input_schema: dict[str, Any]
    classes: frozenset[tuple[str, str]]

    @classmethod
    async def load(cls, source: Source, project: Project) -> Self:
        """Import an agent and look at its graph; a factory is called once for that.

        Raises:
            Unfit: it can't be imported or served. `__cause__` is what its own code raised.
        """
        module = _module(source, project)
        made = _attribute(module, source)
        async with _graph_of(made, source, config={}, store=None, context=None) as graph:
            _check_subgraphs(graph)
            schema, wrapped = _input_schema(graph)
            return cls(
                source=source,
                serde=project.serde,
                made=made,
                graph=graph,
                doc=_doc(made, graph, module),
                wrapped=wrapped,
                input_schema=schema,
                classes=declared_classes(graph),
            )

    @property
    def tool(self) -> Tool:
        """The agent as MCP shows it.

        Raises:
            Unfit: a schema of it is not JSON Schema.
        """
        name = self.source.name
        tool = Tool(
            name=name,
            agent=name,
            description=self.source.description or self.doc or f"Run the {name} agent.",
            input_schema=self.source.input_schema or self.input_schema,
            output_schema=_output_schema(self.graph),
        )
        for schema in (tool.input_schema, tool.output_schema):
            try:
                validator(schema or {})
            except ValueError as error:
                raise Unfit(f"its schema can't be published: {error}") from error
        return tool

    @asynccontextmanager
    async def open(
        self,
        config: RunnableConfig,
        *,
        saver: BaseCheckpointSaver[Any] | bool | None,
        store: OpenStore | None = None,
        context: Any = None,
    ) -> AsyncGenerator[Graph]:
        """The graph for one run, with this checkpointer in place of any that it was compiled with.

        A factory makes its graph anew. The store is opened when the agent first uses it; without
        one the agent keeps what it was compiled with.

        Args:
            config: the run's; a factory may ask for it.
            context: the run's runtime context, for a factory that asks for LangGraph's runtime.

        Raises:
            Unfit: the factory did not make a graph.
        """
        late = LateStore(store) if store else None
        making = _graph_of(self.made, self.source, config=config, store=late, context=context)
        async with making as graph:
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

        A model or dataclass that an entrypoint's parameter asks for is built from the arguments;
        a state graph does that itself.

        Raises:
            InvalidParams: the parameter's own validation refuses the arguments.
        """
        value: Any = arguments[schemas.WRAPPED] if self.wrapped else arguments
        wanted = None if isinstance(_builder(self.graph), StateGraph) else self.graph.InputType
        if wanted is None or isinstance(value, dict) and not _is_model(wanted):
            return value
        return _validated(wanted, value, "arguments")

    def context(self, context: dict[str, Any] | None) -> Any:
        """The runtime context, as an instance of the agent's context schema when it has one.

        Raises:
            InvalidParams: the schema refuses it.
        """
        schema = self.graph.context_schema
        if context is None or schema is None:
            return context
        return _validated(schema, context, "context")

    def serializer(self) -> JsonPlusSerializer:
        """What reads and writes this agent's checkpoints: it revives no class that the graph does
        not declare and langgraph.json does not allow. Its modules are loaded by now, so their
        classes are found by name."""
        allowed, old = self.serde.msgpack, self.serde.json
        return JsonPlusSerializer(
            pickle_fallback=self.serde.pickle,
            allowed_json_modules=True if old is True else (old or None),
            allowed_msgpack_modules=True if allowed is True else [*self.classes, *(allowed or ())],
        )


def _module(source: Source, project: Project) -> ModuleType:
    try:
        if source.file is not None:
            return modules.load_file(source.file, project.root)
        return modules.load_module(source.module or "")
    except (Exception, SystemExit) as error:
        raise Unfit(
            f"{source.reference}: importing it failed: {type(error).__name__}: {error}"
        ) from error


def _attribute(module: ModuleType, source: Source) -> Any:
    members = vars(module)
    if source.attribute in members:
        return members[source.attribute]
    graphs = [name for name, value in members.items() if isinstance(value, Pregel | StateGraph)]
    near = closest(source.attribute, graphs) or (f" (it has {', '.join(graphs)})" if graphs else "")
    raise Unfit(f"{source.reference}: it has no attribute {source.attribute!r}{near}")


@asynccontextmanager
async def _graph_of(
    made: Any,
    source: Source,
    *,
    config: RunnableConfig,
    store: BaseStore | None,
    context: Any,
) -> AsyncGenerator[Graph]:
    """The compiled graph that an attribute is or makes, while the block lasts."""
    if callable(made) and not isinstance(made, Pregel | StateGraph):
        made = _call(made, source, config, store, context)
    if inspect.isawaitable(made):
        made = await made
    if hasattr(made, "__aenter__"):
        async with made as inner:
            yield _compiled(inner, source)
    elif hasattr(made, "__enter__"):
        with made as inner:
            yield _compiled(inner, source)
    else:
        yield _compiled(made, source)


def _compiled(value: Any, source: Source) -> Graph:
    if isinstance(value, StateGraph):
        return cast("Builder", value).compile()
    if isinstance(value, Pregel):
        return cast("Graph", value)
    raise Unfit(
        f"{source.reference}: it is no LangGraph graph but a {type(value).__name__}; name a"
        " StateGraph, a compiled graph, an entrypoint, or a function that makes one"
    )


def _call(
    factory: Callable[..., Any],
    source: Source,
    config: RunnableConfig,
    store: BaseStore | None,
    context: Any,
) -> Any:
    """Call a factory with what its parameters ask for: a config, LangGraph's runtime, both, or
    nothing. A single parameter that says nothing is a config, as it always was."""
    given: dict[str, Any] = {}
    positional: list[Any] = []
    parameters = [
        each
        for each in inspect.signature(factory).parameters.values()
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    for parameter in parameters:
        said = str(parameter.annotation)
        if "Runtime" in said or parameter.name == "runtime":
            value: Any = _runtime(config, store, context)
        elif "RunnableConfig" in said or parameter.name == "config" or len(parameters) == 1:
            value = config
        elif parameter.default is not parameter.empty:
            continue
        else:
            raise Unfit(
                f"{source.reference}: a function that makes a graph is given a config and a"
                f" runtime; nothing is known for its parameter {parameter.name!r}"
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            given[parameter.name] = value
    return factory(*positional, **given)


def _runtime(config: RunnableConfig, store: BaseStore | None, context: Any) -> Any:
    """LangGraph's `ServerRuntime`: for a run when there is a config, else for a look at the graph.

    Its SDK has no public way to make one.
    """
    from langgraph_sdk import runtime

    user = config.get("configurable", {}).get("langgraph_auth_user")
    shared: dict[str, Any] = {"user": user, "store": store or LateStore(_no_store)}
    if not config:
        return runtime._ReadRuntime(access_context="assistants.read", **shared)
    return runtime._ExecutionRuntime(access_context="threads.create_run", context=context, **shared)


def _no_store() -> BaseStore:
    raise RuntimeError("no store can be used while an agent is only looked at")


def _check_subgraphs(graph: Graph) -> None:
    for name, subgraph in graph.get_subgraphs(recurse=True):
        if isinstance(getattr(subgraph, "checkpointer", None), BaseCheckpointSaver):
            raise Unfit(
                f"its subgraph {name!r} was compiled with a checkpointer of its own, which would"
                " keep a pause where no other process finds it: compile the subgraph without one"
            )


def _input_schema(graph: Graph) -> tuple[dict[str, Any], bool]:
    try:
        schema = graph.get_input_jsonschema()
    except (PydanticUserError, TypeError, NameError) as error:
        raise Unfit(
            f"its input has no JSON Schema ({type(error).__name__}: {error}): give the graph an"
            " input_schema of plain types"
        ) from error
    return schemas.object_root(schemas.short_messages(schema))


def _output_schema(graph: Graph) -> dict[str, Any] | None:
    """The schema of an output that was declared apart from the state.

    None when it holds messages: LangChain's own schema for them refuses what it writes itself.
    """
    builder = _builder(graph)
    if not isinstance(builder, StateGraph):
        return None
    state, output = cast("Builder", builder).state_schema, cast("Builder", builder).output_schema
    if output is state:
        return None
    try:
        schema = graph.get_output_jsonschema()
    except (PydanticUserError, TypeError, NameError):
        return None
    if schemas.mentions_messages(schema):
        return None
    if "mcp_content" not in schema.get("properties", {}):
        return schema
    rest = schemas.without_property(schema, "mcp_content")
    return rest if rest["properties"] else None


def _doc(made: Any, graph: Graph, module: ModuleType) -> str:
    """The first paragraph of the docstring nearest to the graph."""
    functions = [getattr(node.bound, "func", None) for node in graph.nodes.values()]
    entrypoint = functions[0] if len(functions) == 1 and not _builder(graph) else None
    for candidate in (made if inspect.isfunction(made) else None, entrypoint, module):
        text = inspect.cleandoc(getattr(candidate, "__doc__", None) or "")
        if text:
            return " ".join(text.split("\n\n")[0].split())
    return f"Run {graph.name}." if graph.name != _UNNAMED else ""


def _builder(graph: Graph) -> Any:
    return getattr(graph, "builder", None)


def _is_model(wanted: Any) -> bool:
    return inspect.isclass(wanted) and (issubclass(wanted, BaseModel) or is_dataclass(wanted))


def _validated(wanted: Any, value: Any, what: str) -> Any:
    try:
        return TypeAdapter(wanted).validate_python(value)
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(str(part) for part in each['loc']) or what}: {each['msg']}"
            for each in error.errors(include_input=False, include_url=False)[:10]
        )
        raise InvalidParams(f"Invalid {what}: {told}") from error
