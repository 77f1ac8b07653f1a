"""A langgraph.json as tools and agents: what is served, what is refused, and with which words."""

import asyncio
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from core.catalog import BUILT, Catalog, CatalogError, build
from core.errors import InvalidParams
from core.tools import Tool, name_problem

pytestmark = pytest.mark.anyio

Write = Callable[..., Path]

CHECKOUT = Path(__file__).parent.parent

GRAPH = """
    from langgraph.graph import START, StateGraph
    from typing_extensions import TypedDict

    class State(TypedDict, total=False):
        word: str

    def shout(state: State) -> State:
        return {"word": state["word"].upper()}

    builder = StateGraph(State).add_node(shout).add_edge(START, "shout")
    graph = builder.compile()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a project: langgraph.json's members, or its graphs alone, and files by path."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(files: Mapping[str, str], graphs: Any = None, /, **members: Any) -> Path:
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text))
        config = tmp_path / "langgraph.json"
        named = graphs if graphs is not None else {"shout": "./agent.py:graph"}
        config.write_text(json.dumps({"graphs": named, **members}))
        return config

    yield write
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and file.startswith(str(tmp_path)):
            del sys.modules[name]


def problems(path: Path) -> str:
    with pytest.raises(CatalogError) as caught:
        Catalog.read(path)
    return str(caught.value)


async def load_problems(path: Path) -> CatalogError:
    with pytest.raises(CatalogError) as caught:
        await Catalog.read(path).tools()
    return caught.value


async def run(path: Path, name: str, arguments: dict[str, Any], **opening: Any) -> Any:
    agent = await Catalog.read(path).agent(name)
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    async with agent.open(config, saver=InMemorySaver(), **opening) as graph:
        return await graph.ainvoke(agent.input(arguments), config)


async def only_tool(path: Path) -> Tool:
    (tool,) = await Catalog.read(path).tools()
    return tool


class TestWhatIsServed:
    @pytest.mark.parametrize("attribute", ["graph", "builder"])
    async def test_a_graph_is_served_compiled_or_not(self, project: Write, attribute: str) -> None:
        path = project({"agent.py": GRAPH}, {"shout": f"./agent.py:{attribute}"})
        assert await run(path, "shout", {"word": "hey"}) == {"word": "HEY"}

    @pytest.mark.parametrize(
        "factory",
        [
            "def make(): return builder",
            "def make(): return graph",
            "def make(config): return graph",
            "def make(config: RunnableConfig): return graph",
            "def make(settings: RunnableConfig): return graph",
            "def make(anything): return graph",
            "def make(config: RunnableConfig, runtime: ServerRuntime): return graph",
            "def make(runtime: ServerRuntime[int]): return graph",
            "def make(runtime, /): return graph",
            "def make(tenant='x', *rest, **more): return graph",
            "async def make(): return builder",
            "async def make(config): return graph",
            "@asynccontextmanager\nasync def make(): yield graph",
            "@asynccontextmanager\nasync def make(config): yield builder",
            "@contextmanager\ndef make(runtime: ServerRuntime): yield graph",
            "class Maker:\n    def __call__(self, config): return graph\nmake = Maker()",
        ],
    )
    async def test_a_function_that_makes_a_graph_is_given_what_its_parameters_ask_for(
        self, project: Write, factory: str
    ) -> None:
        code = textwrap.dedent(GRAPH) + (
            "from contextlib import asynccontextmanager, contextmanager\n"
            "from langchain_core.runnables import RunnableConfig\n"
            "from langgraph_sdk.runtime import ServerRuntime\n" + factory
        )
        path = project({"agent.py": code}, {"shout": "./agent.py:make"})
        assert await run(path, "shout", {"word": "hey"}) == {"word": "HEY"}

    async def test_a_factory_sees_the_run_and_is_closed_after_it(self, project: Write) -> None:
        code = textwrap.dedent(GRAPH) + textwrap.dedent(
            """
            from contextlib import asynccontextmanager
            from langgraph_sdk.runtime import ServerRuntime
            seen = []

            @asynccontextmanager
            async def make(config, runtime: ServerRuntime):
                running = runtime.execution_runtime
                seen.append((config.get("configurable"), running and running.context))
                yield graph
                seen.append("closed")
            """
        )
        path = project({"agent.py": code}, {"shout": "./agent.py:make"})
        agent = await Catalog.read(path).agent("shout")
        config: RunnableConfig = {"configurable": {"thread_id": "1"}}
        async with agent.open(config, saver=None, context="who") as graph:
            await graph.ainvoke({"word": "hey"}, config)
        seen = agent.made.__wrapped__.__globals__["seen"]
        assert seen == [(None, None), "closed", ({"thread_id": "1"}, "who"), "closed"]

    async def test_an_importable_module_is_named_with_dots(self, project: Write) -> None:
        path = project(
            {"shouting/__init__.py": "", "shouting/loud.py": GRAPH},
            {"shout": "shouting.loud:graph"},
            dependencies=["."],
        )
        assert await run(path, "shout", {"word": "hey"}) == {"word": "HEY"}

    async def test_a_file_needs_no_folder_before_it(self, project: Write) -> None:
        path = project({"agent.py": GRAPH}, {"shout": "agent.py:graph"})
        assert await run(path, "shout", {"word": "hey"}) == {"word": "HEY"}

    async def test_local_dependencies_can_be_imported(self, project: Write) -> None:
        path = project(
            {
                "words/loudness.py": "LOUD = '!'",
                "lib/src/manners.py": "POLITE = 'please'",
                "agents/agent.py": textwrap.dedent(GRAPH)
                + "from loudness import LOUD\nfrom manners import POLITE\n",
            },
            {"shout": "./agents/agent.py:graph"},
            dependencies=["langchain_openai", "./words", "./lib"],
        )
        assert await run(path, "shout", {"word": "hey"}) == {"word": "HEY"}

    async def test_a_project_never_shadows_an_installed_package(self, project: Write) -> None:
        path = project({"agent.py": GRAPH, "json.py": "raise RuntimeError"}, dependencies=["."])
        await Catalog.read(path).tools()
        assert sys.path[-1] == str(path.parent)

    async def test_an_entrypoint_is_an_agent(self, project: Write) -> None:
        code = '''
            from langgraph.func import entrypoint

            @entrypoint()
            async def double(count: int) -> int:
                """Doubles a number.

                And more.
                """
                return count * 2
        '''
        path = project({"agent.py": code}, {"double": "./agent.py:double"})
        tool = await only_tool(path)
        assert tool.description == "Doubles a number."
        assert tool.input_schema == {
            "type": "object",
            "properties": {"count": {"type": "integer"}},
            "required": ["count"],
        }
        assert tool.output_schema is None
        assert await run(path, "double", {"count": 4}) == 8

    async def test_an_entrypoint_gets_an_instance_of_the_class_it_asks_for(
        self, project: Write
    ) -> None:
        code = """
            from __future__ import annotations
            from langgraph.func import entrypoint
            from pydantic import BaseModel

            class Order(BaseModel):
                count: int
                next: Order | None = None

            @entrypoint()
            def total(order: Order) -> int:
                return order.count + (order.next.count if order.next else 0)
        """
        path = project({"agent.py": code}, {"total": "./agent.py:total"})
        tool = await only_tool(path)
        assert tool.input_schema["type"] == "object"
        assert list(tool.input_schema["properties"]) == ["count", "next"]
        assert await run(path, "total", {"count": 1, "next": {"count": 2}}) == 3

    async def test_a_compiled_in_checkpointer_is_replaced(self, project: Write) -> None:
        code = textwrap.dedent(GRAPH) + (
            "from langgraph.checkpoint.memory import InMemorySaver\n"
            "graph = builder.compile(checkpointer=InMemorySaver())\n"
        )
        agent = await Catalog.read(project({"agent.py": code})).agent("shout")
        saver = InMemorySaver()
        async with agent.open({}, saver=saver) as graph:
            assert graph.checkpointer is saver
            assert graph.name == "shout"
        assert agent.made.checkpointer is not saver
        assert agent.made.name == "LangGraph"

    async def test_agents_are_listed_in_the_order_of_the_file(self, project: Write) -> None:
        names = ["zebra", "apple", "Mango", "b-1", "_"]
        path = project({"agent.py": GRAPH}, dict.fromkeys(names, "./agent.py:graph"))
        assert [tool.name for tool in await Catalog.read(path).tools()] == names

    async def test_a_tool_that_nobody_named_is_none(self, project: Write) -> None:
        catalog = Catalog.read(project({"agent.py": "raise RuntimeError"}))
        assert await catalog.tool("other") is None
        with pytest.raises(LookupError, match="'other'"):
            await catalog.agent("other")

    async def test_twenty_first_loads_at_once_import_once(self, project: Write) -> None:
        code = textwrap.dedent(GRAPH) + (
            "import builtins\n"
            "builtins.times = getattr(builtins, 'times', 0) + 1\n"
            "async def make():\n"
            "    import asyncio\n"
            "    await asyncio.sleep(0)\n"
            "    builtins.made = getattr(builtins, 'made', 0) + 1\n"
            "    return graph\n"
        )
        catalog = Catalog.read(project({"agent.py": code}, {"shout": "./agent.py:make"}))
        agents = await asyncio.gather(*(catalog.agent("shout") for _ in range(20)))
        assert len({id(agent) for agent in agents}) == 1
        counts = vars(sys.modules["builtins"])
        assert (counts.pop("times"), counts.pop("made")) == (1, 1)

    def test_a_catalogue_serves_one_event_loop_after_another(self, project: Write) -> None:
        path = project({"agent.py": GRAPH}, {"a": "./agent.py:graph", "b": "./agent.py:graph"})
        catalog = Catalog.read(path)
        for name in ("a", "b", "a"):

            async def both(name: str = name) -> None:
                await asyncio.gather(catalog.agent(name), catalog.agent(name))

            asyncio.run(both())


class TestDescriptions:
    async def test_the_configured_one_wins(self, project: Write) -> None:
        entry = {"path": "./agent.py:graph", "description": "  Says it loudly. "}
        path = project({"agent.py": f'"""Doc."""\n{textwrap.dedent(GRAPH)}'}, {"shout": entry})
        assert (await only_tool(path)).description == "Says it loudly."

    async def test_else_it_is_the_docstring_of_the_function_that_makes_the_graph(
        self, project: Write
    ) -> None:
        code = (
            textwrap.dedent(GRAPH) + 'def make():\n    """Makes\n    noise."""\n    return graph\n'
        )
        path = project({"agent.py": code}, {"shout": "./agent.py:make"})
        assert (await only_tool(path)).description == "Makes noise."

    async def test_else_it_is_the_docstring_of_the_file(self, project: Write) -> None:
        path = project({"agent.py": f'"""Shouts.\n\nMore."""\n{textwrap.dedent(GRAPH)}'})
        assert (await only_tool(path)).description == "Shouts."

    async def test_else_it_is_a_sentence_that_is_never_empty(self, project: Write) -> None:
        assert (await only_tool(project({"agent.py": GRAPH}))).description == "Run this agent."
        named = textwrap.dedent(GRAPH) + 'named = builder.compile(name="Shouter")\n'
        path = project({"named.py": named}, {"shout": "./named.py:named"})
        assert (await only_tool(path)).description == "Run the agent Shouter."


class TestSchemas:
    async def test_a_recursive_model_has_an_object_at_its_root_and_keeps_its_definitions(
        self, project: Write
    ) -> None:
        code = """
            from __future__ import annotations
            from langgraph.graph import START, StateGraph
            from pydantic import BaseModel

            class Node(BaseModel):
                name: str
                children: list[Node] = []

            graph = StateGraph(Node).add_node("n", lambda s: {}).add_edge(START, "n")
        """
        tool = await only_tool(project({"agent.py": code}))
        assert tool.input_schema["type"] == "object"
        assert list(tool.input_schema["$defs"]) == ["Node"]
        assert tool.problem({"name": "a", "children": [{"name": "b"}]}) is None
        misfit = tool.problem({"name": "a", "children": [{"name": 3}]})
        assert misfit == 'Invalid arguments for shout: children: 3 is not of type "string"'

    async def test_a_missing_argument_is_named(self, project: Write) -> None:
        code = GRAPH.replace(", total=False", "")
        tool = await only_tool(project({"agent.py": code}))
        assert tool.problem({}) == 'Invalid arguments for shout: "word" is a required property'

    async def test_the_input_schema_alone_is_published(self, project: Write) -> None:
        code = """
            import operator
            from typing import Annotated
            from langgraph.graph import START, StateGraph
            from typing_extensions import TypedDict

            class Asked(TypedDict):
                question: str

            class Answered(TypedDict):
                answer: str

            class State(Asked, Answered):
                log: Annotated[list[str], operator.add]

            def node(state: State) -> dict:
                return {"answer": state["question"], "log": ["x"]}

            graph = StateGraph(State, input_schema=Asked, output_schema=Answered)
            graph.add_node(node).add_edge(START, "node")
        """
        tool = await only_tool(project({"agent.py": code}))
        assert list(tool.input_schema["properties"]) == ["question"]
        assert tool.output_schema is not None
        assert list(tool.output_schema["properties"]) == ["answer"]
        assert tool.listed()["outputSchema"] == tool.output_schema

    async def test_no_output_schema_is_published_for_the_state_itself(self, project: Write) -> None:
        tool = await only_tool(project({"agent.py": GRAPH}))
        assert tool.output_schema is None
        assert set(tool.listed()) == {"name", "description", "inputSchema"}

    async def test_older_revisions_list_an_output_schema_only_when_it_is_an_object(self) -> None:
        listed = {"type": "array"}, {"type": "object"}
        any_output, object_output = (
            Tool(name="t", agent="t", description="d", input_schema={}, output_schema=schema)
            for schema in listed
        )
        assert "outputSchema" in any_output.listed()
        assert "outputSchema" not in any_output.listed(any_output=False)
        assert "outputSchema" in object_output.listed(any_output=False)

    async def test_messages_are_published_in_short_and_taken_by_role(self, project: Write) -> None:
        code = """
            from langgraph.graph import START, MessagesState, StateGraph

            def reply(state: MessagesState) -> dict:
                return {"messages": [("ai", state["messages"][0].content.upper())]}

            graph = StateGraph(MessagesState).add_node(reply).add_edge(START, "reply")
        """
        path = project({"agent.py": code})
        tool = await only_tool(path)
        assert len(json.dumps(tool.input_schema)) < 1_000
        assert list(tool.input_schema["$defs"]) == ["Message"]
        for message in ({"role": "user", "content": "hi"}, {"type": "human", "content": "hi"}):
            arguments = {"messages": [message]}
            assert tool.problem(arguments) is None
            output = await run(path, "shout", arguments)
            assert output["messages"][-1].content == "HI"

    async def test_what_a_field_says_of_itself_survives(self, project: Write) -> None:
        code = """
            from typing import Annotated
            from langgraph.graph import START, StateGraph
            from pydantic import BaseModel, ConfigDict, Field
            from typing_extensions import TypedDict

            Region = Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]

            class Asked(TypedDict, total=False):
                region: Region

            class Model(BaseModel):
                model_config = ConfigDict(json_schema_extra={"$comment": "as is"})
                region: Region = "eu"

            asked = StateGraph(Asked).add_node("n", lambda s: {}).add_edge(START, "n")
            model = StateGraph(Model).add_node("n", lambda s: {}).add_edge(START, "n")
        """
        path = project(
            {"agent.py": code}, {"asked": "./agent.py:asked", "model": "./agent.py:model"}
        )
        asked, model = await Catalog.read(path).tools()
        for tool in (asked, model):
            assert tool.input_schema["properties"]["region"]["x-mcp-header"] == "Region"
        assert model.input_schema["$comment"] == "as is"

    async def test_a_schema_beside_the_path_is_published_to_the_letter(
        self, project: Write
    ) -> None:
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {"$anchor": "addr", "type": "object"}, "unused": {}},
            "properties": {"word": {"type": "string", "x-mcp-header": "Word"}},
            "allOf": [{"anyOf": [{"required": ["word"]}]}],
            "if": {"required": ["x"]},
            "then": {"required": ["y"]},
            "else": {},
            "additionalProperties": False,
        }
        entry = {"path": "./agent.py:graph", "input_schema": schema}
        path = project({"agent.py": GRAPH}, {"shout": entry})
        tool = await only_tool(path)
        assert json.dumps(tool.listed()["inputSchema"]) == json.dumps(schema)
        assert tool.problem({"word": "a", "other": 1}) is not None
        assert await run(path, "shout", {"word": "hey"}) == {"word": "HEY"}

    async def test_a_schema_that_is_none_is_refused(self, project: Write) -> None:
        schemas = {"type": "object", "required": 3}, {"type": "object", "$ref": "https://a.example"}
        for schema in schemas:
            entry = {"path": "./agent.py:graph", "input_schema": schema}
            error = await load_problems(project({"agent.py": GRAPH}, {"shout": entry}))
            assert "its input schema can't be published" in str(error)

    async def test_an_input_without_a_schema_says_what_to_do(self, project: Write) -> None:
        code = """
            from langgraph.graph import START, StateGraph
            from typing_extensions import TypedDict

            class Client: ...

            class State(TypedDict):
                client: Client

            graph = StateGraph(State).add_node("n", lambda s: {}).add_edge(START, "n")
        """
        error = await load_problems(project({"agent.py": code}))
        assert "its input has no JSON Schema" in str(error)
        assert "give the graph an input_schema of plain types" in str(error)


class TestContext:
    CODE = """
        from dataclasses import dataclass
        from langgraph.graph import START, StateGraph
        from pydantic import BaseModel
        from typing_extensions import TypedDict

        @dataclass
        class Data:
            user: str
            age: int = 0

        class Model(BaseModel):
            user: str

        class Dict(TypedDict):
            user: str

        class State(TypedDict):
            word: str

        def make(context=None):
            return StateGraph(State, context).add_node("n", lambda s: {}).add_edge(START, "n")

        data, model, typed, none = make(Data), make(Model), make(Dict), make()
    """

    async def test_it_becomes_what_the_agent_declared(self, project: Write) -> None:
        names = ["data", "model", "typed", "none"]
        path = project({"agent.py": self.CODE}, {name: f"./agent.py:{name}" for name in names})
        catalog = Catalog.read(path)
        data, model, typed, none = [await catalog.agent(name) for name in names]
        assert data.context({"user": "a"}).user == "a"
        assert model.context({"user": "a"}).user == "a"
        assert typed.context({"user": "a"}) == {"user": "a"}
        assert none.context({"anything": 1}) == {"anything": 1}
        assert data.context(None) is None

    async def test_what_the_schema_refuses_is_invalid_and_not_repeated(
        self, project: Write
    ) -> None:
        path = project({"agent.py": self.CODE}, {"data": "./agent.py:data"})
        agent = await Catalog.read(path).agent("data")
        with pytest.raises(InvalidParams) as caught:
            agent.context({"user": 7_777, "age": "secret"})
        assert caught.value.message.startswith("Invalid context: user: ")
        assert "secret" not in caught.value.message
        assert "7777" not in caught.value.message


class TestStore:
    CODE = """
        from langgraph.config import get_store
        from langgraph.graph import START, StateGraph
        from langgraph.runtime import Runtime
        from langgraph.store.base import BaseStore
        from langgraph.store.memory import InMemoryStore
        from typing_extensions import TypedDict

        class State(TypedDict, total=False):
            word: str

        async def parameter(state, *, store: BaseStore):
            await store.aput(("n",), "k", {"word": "kept"})
            return {"word": (await store.aget(("n",), "k")).value["word"]}

        def plain(state, *, store: BaseStore):
            store.put(("n",), "k", {"word": "kept"})
            return {"word": store.get(("n",), "k").value["word"]}

        async def runtime(state, runtime: Runtime):
            return await parameter(state, store=runtime.store)

        async def configured(state):
            return await parameter(state, store=get_store())

        async def waits_for_itself(state, *, store: BaseStore):
            store.get(("n",), "k")

        def unused(state, *, store: BaseStore):
            return {"word": "none"}

        def make(node):
            return StateGraph(State).add_node("n", node).add_edge(START, "n").compile(
                store=InMemoryStore()
            )
    """

    async def run(self, project: Write, node: str, open_store: Callable[[], Any]) -> Any:
        code = textwrap.dedent(self.CODE) + f"graph = make({node})\n"
        return await run(project({"agent.py": code}), "shout", {}, store=open_store)

    @pytest.mark.parametrize("node", ["parameter", "plain", "runtime", "configured"])
    async def test_an_agent_that_asks_for_the_store_gets_ours(
        self, project: Write, node: str
    ) -> None:
        ours = InMemoryStore()
        opened: list[BaseStore] = []

        def open_store() -> BaseStore:
            opened.append(ours)
            return ours

        assert await self.run(project, node, open_store) == {"word": "kept"}
        assert len(opened) == 1
        item = await ours.aget(("n",), "k")
        assert item is not None

    async def test_opening_it_may_take_an_await(self, project: Write) -> None:
        async def open_store() -> BaseStore:
            return InMemoryStore()

        assert await self.run(project, "plain", open_store) == {"word": "kept"}

    async def test_it_is_opened_by_the_first_use_only(self, project: Write) -> None:
        def never() -> BaseStore:
            raise AssertionError

        assert await self.run(project, "unused", never) == {"word": "none"}

    async def test_an_async_node_that_would_wait_for_itself_is_told(self, project: Write) -> None:
        with pytest.raises(RuntimeError, match="async methods"):
            await self.run(project, "waits_for_itself", InMemoryStore)

    async def test_without_one_an_agent_keeps_its_own(self, project: Write) -> None:
        code = textwrap.dedent(self.CODE) + "graph = make(parameter)\n"
        assert await run(project({"agent.py": code}), "shout", {}) == {"word": "kept"}


class TestSettings:
    def test_what_langgraph_json_says_is_exposed(self, project: Write) -> None:
        catalog = Catalog.read(
            project(
                {"agent.py": GRAPH, ".env": "A=1"},
                auth={"path": "./auth.py:auth"},
                checkpointer={
                    "ttl": {"default_ttl": 30},
                    "serde": {
                        "allowed_msgpack_modules": [["a.b", "C"]],
                        "allowed_json_modules": [["a", "b", "C"]],
                        "pickle_fallback": True,
                    },
                },
                env=".env",
                http={"disable_threads": True},
            )
        )
        assert catalog.default_ttl == 30
        assert catalog.threads is False
        assert catalog.auth_path == "./auth.py:auth"
        assert isinstance(catalog.env, Path)
        assert catalog.env.read_text() == "A=1"
        assert catalog.serde.msgpack == (("a.b", "C"),)
        assert catalog.serde.json == (("a.b", "C"),)
        assert catalog.serde.pickle is True
        assert catalog.warnings == ()

    def test_what_it_does_not_say_is_off(self, project: Write) -> None:
        catalog = Catalog.read(project({"agent.py": GRAPH}, env={}))
        settings = catalog.default_ttl, catalog.threads, catalog.env, catalog.auth_path
        assert settings == (None, True, None, None)
        assert catalog.serde.msgpack == ()

    def test_variables_may_stand_in_the_file(self, project: Write) -> None:
        assert Catalog.read(project({"agent.py": GRAPH}, env={"A": "1"})).env == {"A": "1"}

    def test_a_missing_env_file_is_a_warning(self, project: Write) -> None:
        catalog = Catalog.read(project({"agent.py": GRAPH}, env=".env"))
        assert catalog.env is None
        assert "'.env'" in catalog.warnings[0]

    def test_other_keys_are_named_in_one_warning(self, project: Write) -> None:
        catalog = Catalog.read(
            project(
                {"agent.py": GRAPH},
                **{"$schema": "https://langgra.ph/schema.json"},
                checkpointer={"ttl": {"default_ttl": 1, "strategy": "delete"}, "path": "a:b"},
                dockerfile_lines=[],
                grahps={},
                http={"app": "a:b"},
                store={"index": {}},
                ui={},
            )
        )
        assert catalog.warnings == (
            "not used here: checkpointer.path, checkpointer.ttl.strategy, dockerfile_lines,"
            " http.app, store, ui; unknown: grahps",
        )


class TestRefusals:
    def test_every_problem_of_a_file_is_told_at_once(self, project: Write) -> None:
        text = problems(
            project(
                {"agent.py": GRAPH},
                {
                    "Deploy Service": "./agent.py:graph",
                    "no_attribute": "./agent.py",
                    "no_file": "./agnet.py:graph",
                    "number": 3,
                    "script": "./agent.ts:graph",
                    "described": {"path": "./agent.py:graph", "description": 3},
                    "list": {"path": "./agent.py:graph", "input_schema": {"type": "array"}},
                },
                auth={"path": "nothing"},
                checkpointer={
                    "ttl": {"default_ttl": -1},
                    "serde": {"allowed_msgpack_modules": ["a.b.C"]},
                },
                dependencies=["./missing", 3],
                env={"A": 1},
                http={"disable_threads": "yes"},
            )
        )
        for told in (
            "'Deploy_Service' would do",
            "must name an attribute, such as ./agent.py:graph",
            "there is no file './agnet.py' (did you mean './agent.py'?)",
            "graphs.'number': must be \"path.py:attribute\"",
            "'./agent.ts' is JavaScript",
            "graphs.'described'.description: must be a string",
            "graphs.'list'.input_schema: must be a JSON Schema whose root",
            "auth.path: 'nothing' must name a file and an attribute",
            "checkpointer.ttl.default_ttl: -1 is no number of minutes",
            'checkpointer.serde.allowed_msgpack_modules: must list classes as ["module", "Name"]',
            "dependencies: there is no folder './missing'",
            "dependencies: 3 is not a string",
            "env: the value of A must be a string",
            "http.disable_threads: must be true or false",
        ):
            assert told in text
        assert text.count("\n- ") == 14

    @pytest.mark.parametrize("text", ["", "{", "[]", "3"])
    def test_a_file_that_holds_no_object_is_refused(self, tmp_path: Path, text: str) -> None:
        config = tmp_path / "langgraph.json"
        config.write_text(text)
        assert str(config) in problems(config)

    def test_a_missing_file_is_refused(self, tmp_path: Path) -> None:
        assert "No such file" in problems(tmp_path / "langgraph.json")

    @pytest.mark.parametrize("graphs", ["{}", "[]", '"x"', "null"])
    def test_a_file_without_graphs_is_refused(self, tmp_path: Path, graphs: str) -> None:
        config = tmp_path / "langgraph.json"
        config.write_text(f'{{"graphs": {graphs}}}')
        assert "graphs: name at least one" in problems(config)

    @pytest.mark.parametrize(
        ("name", "suggested"),
        [
            ("Deploy Service", "Deploy_Service"),
            ("a.b", "a_b"),
            ("über", "uber"),
            ("部署", "agent"),
            ("", "agent"),
            ("a" * 70, "a" * 40),
            ("tool\n", "tool"),
        ],
    )
    def test_a_name_that_hosts_refuse_is_refused_with_one_that_would_do(
        self, name: str, suggested: str
    ) -> None:
        problem = name_problem(name)
        assert problem is not None
        assert f"{suggested!r} would do" in problem
        assert name_problem(suggested) is None

    def test_two_names_that_differ_by_case_alone_are_refused(self, project: Write) -> None:
        graphs = {"Deploy": "./agent.py:graph", "deploy": "./agent.py:graph"}
        assert "'deploy': differs from 'Deploy' by case alone" in problems(
            project({"agent.py": GRAPH}, graphs)
        )

    def test_a_long_name_is_a_warning(self, project: Write) -> None:
        path = project({"agent.py": GRAPH}, {"a" * 41: "./agent.py:graph"})
        (warning,) = Catalog.read(path).warnings
        assert "above 40 characters" in warning

    @pytest.mark.parametrize("file", ["core/llm.py", "core/deep/er.py", "handler.py"])
    def test_a_project_with_a_core_or_handler_of_its_own_is_refused(
        self, project: Write, file: str
    ) -> None:
        text = problems(project({"agent.py": GRAPH, file: ""}))
        package = file.split("/")[0].removesuffix(".py")
        assert f"holds a package '{package}' of its own" in text
        assert text.count("\n- ") == 1

    def test_so_is_one_in_a_local_dependency(self, project: Write) -> None:
        path = project({"agent.py": GRAPH, "lib/core/llm.py": ""}, dependencies=["./lib"])
        assert "holds a package 'core' of its own" in problems(path)

    def test_a_folder_of_that_name_without_python_does_no_harm(self, project: Write) -> None:
        Catalog.read(project({"agent.py": GRAPH, "core/notes.txt": ""}))

    def test_our_own_checkout_is_served(self) -> None:
        Catalog.read(CHECKOUT / "langgraph.json")

    async def test_an_import_that_fails_names_the_file_and_keeps_the_cause(
        self, project: Write
    ) -> None:
        error = await load_problems(project({"agent.py": "import nothing_of_this_name"}))
        assert "graphs.'shout': ./agent.py:graph: importing it failed" in str(error)
        assert "No module named 'nothing_of_this_name'" in str(error)
        assert isinstance(error.__cause__, ModuleNotFoundError)
        assert not any("agent_" in name for name in sys.modules if name.startswith("agent_"))

    async def test_a_missing_attribute_is_named_with_those_that_are_there(
        self, project: Write
    ) -> None:
        for attribute, told in (("grpah", "(did you mean 'graph'?)"), ("x", "(it has builder, gr")):
            path = project({"agent.py": GRAPH}, {"shout": f"./agent.py:{attribute}"})
            text = str(await load_problems(path))
            assert f"it has no attribute {attribute!r} {told}" in text

    async def test_what_is_no_graph_is_refused(self, project: Write) -> None:
        code = textwrap.dedent(GRAPH) + (
            "number = 3\n"
            "def nothing(): pass\n"
            "def greedy(a, b): return graph\n"
            "def broken(): raise OSError('no network')\n"
        )
        names = ["number", "nothing", "greedy", "broken"]
        path = project({"agent.py": code}, {name: f"./agent.py:{name}" for name in names})
        error = await load_problems(path)
        assert len(error.problems) == 4
        number, nothing, greedy, broken = error.problems
        assert "it is no LangGraph graph but a int" in number
        assert "it is no LangGraph graph but a NoneType" in nothing
        assert "nothing is known for its parameter 'a'" in greedy
        assert "making its graph failed: OSError: no network" in broken
        assert isinstance(error.__cause__, ExceptionGroup)

    @pytest.mark.parametrize("how", ['.add_node("n", inner)', '.add_node("n", call)'])
    async def test_a_subgraph_with_a_checkpointer_of_its_own_is_refused(
        self, project: Write, how: str
    ) -> None:
        code = textwrap.dedent(GRAPH) + textwrap.dedent(
            f"""
            from langgraph.checkpoint.memory import InMemorySaver
            inner = builder.compile(checkpointer=InMemorySaver())

            def call(state: State) -> State:
                return inner.invoke(state)

            graph = StateGraph(State){how}.add_edge(START, "n").compile()
            """
        )
        text = str(await load_problems(project({"agent.py": code})))
        assert "its subgraph 'n' was compiled with a checkpointer of its own" in text

    async def test_a_subgraph_that_inherits_the_checkpointer_is_served(
        self, project: Write
    ) -> None:
        code = textwrap.dedent(GRAPH) + (
            'graph = StateGraph(State).add_node("n", builder.compile()).add_edge(START, "n")\n'
        )
        path = project({"agent.py": code})
        assert await run(path, "shout", {"word": "hey"}) == {"word": "HEY"}


class TestBuiltCatalogue:
    async def test_it_lists_the_same_tools(self, project: Write) -> None:
        path = project({"agent.py": GRAPH})
        catalog = Catalog.read(path)
        (path.parent / BUILT).write_bytes(await build(catalog))
        built = Catalog.read(path)
        assert await built.tools() == await catalog.tools()
        assert await built.tool("shout") == await catalog.tool("shout")
        assert await build(built) == await build(catalog)

    @pytest.mark.parametrize("changed", ["agent.py", "langgraph.json"])
    async def test_one_of_other_files_is_not_used(self, project: Write, changed: str) -> None:
        path = project({"agent.py": GRAPH})
        (path.parent / BUILT).write_bytes(await build(Catalog.read(path)))
        file = path.parent / changed
        file.write_text(f"\n{file.read_text()}")
        assert Catalog.read(path)._tools is None  # pyright: ignore[reportPrivateUsage] — its absence shows nowhere else

    @pytest.mark.parametrize("content", ["", "[]", '{"format": 0}', '{"format": 1}'])
    async def test_one_that_is_none_is_not_used(self, project: Write, content: str) -> None:
        path = project({"agent.py": GRAPH, BUILT: content})
        assert (await only_tool(path)).name == "shout"

    def test_listing_from_it_imports_no_graph_and_no_langgraph(self, project: Write) -> None:
        path = project({"agent.py": GRAPH})
        (path.parent / BUILT).write_bytes(asyncio.run(build(Catalog.read(path))))
        code = f"""
            import asyncio, sys
            from pathlib import Path
            from core.catalog import Catalog
            catalog = Catalog.read(Path({str(path)!r}))
            (tool,) = asyncio.run(catalog.tools())
            assert tool == asyncio.run(catalog.tool("shout"))
            heavy = ("langgraph", "langchain_core", "psycopg", "mcp_types", "pydantic",
                     "jsonschema_rs", "agent")
            print([name for name in sys.modules if name.startswith(heavy)])
        """
        assert in_another_process(code) == "[]"


class TestClassesInCheckpoints:
    """A pause is read by another process, which finds a class by the name of its module."""

    STATE = """
        from __future__ import annotations
        import enum
        from dataclasses import dataclass
        from typing import NamedTuple
        from langgraph.graph import START, StateGraph
        from langgraph.types import interrupt
        from pydantic import BaseModel
        from typing_extensions import TypedDict

        class Colour(enum.Enum):
            RED = "red"

        @dataclass
        class Place:
            street: str

        class Point(NamedTuple):
            x: int

        class Person(BaseModel):
            name: str
            places: list[Place] = []

        class Hidden(BaseModel):
            name: str

        class State(TypedDict, total=False):
            person: Person | None
            colours: dict[str, Colour]
            point: Point
            anything: object
            told: str

        def fill(state: State) -> State:
            return {
                "person": Person(name="Ada", places=[Place("x")]),
                "colours": {"a": Colour.RED},
                "point": Point(1),
                "anything": Hidden(name="h"),
            }

        def ask(state: State) -> State:
            interrupt("Go on?")
            kinds = [state["person"], state["person"].places[0], state["colours"]["a"],
                     state["point"], state["anything"]]
            return {"told": " ".join(type(kind).__name__ for kind in kinds)}

        graph = StateGraph(State).add_sequence([fill, ask]).add_edge(START, "fill").compile()
    """

    PAUSE = """
        import asyncio, base64, sys
        from pathlib import Path
        from langgraph.checkpoint.memory import InMemorySaver
        from core.catalog import Catalog

        async def main():
            agent = await Catalog.read(Path("{path}")).agent("shout")
            config = {{"configurable": {{"thread_id": "1"}}}}
            async with agent.open(config, saver=InMemorySaver(serde=agent.serializer())) as graph:
                await graph.ainvoke({{}}, config)
                values = (await graph.aget_state(config)).values
            kind, data = agent.serializer().dumps_typed(values)
            print(kind, base64.b64encode(data).decode())

        asyncio.run(main())
    """

    READ = """
        import asyncio, base64, sys
        from pathlib import Path
        from core.catalog import Catalog

        async def main():
            agent = await Catalog.read(Path("{path}")).agent("shout")
            kind, data = "{stored}".split()
            values = agent.serializer().loads_typed((kind, base64.b64decode(data)))
            names = values["person"], values["person"].places[0], values["colours"]["a"]
            names = *names, values["point"], values["anything"]
            print(" ".join(type(name).__name__ for name in names))
            person = type(values["person"])
            assert person is sys.modules[person.__module__].Person

        asyncio.run(main())
    """

    def test_declared_ones_come_back_in_another_process_and_others_stay_data(
        self, project: Write, tmp_path: Path
    ) -> None:
        path = project(
            {"agents/deep/agent.py": self.STATE}, {"shout": "agents/deep/agent.py:graph"}
        )
        stored = in_another_process(self.PAUSE.format(path=path))
        moved = tmp_path / "moved"
        for file in ("langgraph.json", "agents/deep/agent.py"):
            (moved / file).parent.mkdir(parents=True, exist_ok=True)
            (moved / file).write_bytes((tmp_path / file).read_bytes())
        read = in_another_process(self.READ.format(path=moved / "langgraph.json", stored=stored))
        assert read == "Person Place Colour Point dict"

    @pytest.mark.parametrize(
        ("allowed", "revived"),
        [
            ("null", "dict"),
            ("[]", "dict"),
            ("true", "Hidden"),
            ('[["MODULE", "Hidden"]]', "Hidden"),
        ],
    )
    async def test_langgraph_json_may_allow_more(
        self, project: Write, allowed: str, revived: str
    ) -> None:
        path = project({"agent.py": self.STATE})
        agent = await Catalog.read(path).agent("shout")
        module = sys.modules[agent.made.builder.state_schema.__module__]
        serde = {"allowed_msgpack_modules": json.loads(allowed.replace("MODULE", module.__name__))}
        path = project({"agent.py": self.STATE}, checkpointer={"serde": serde})
        serializer = (await Catalog.read(path).agent("shout")).serializer()
        stored = serializer.dumps_typed(module.__dict__["Hidden"](name="h"))
        assert type(serializer.loads_typed(stored)).__name__ == revived

    async def test_a_class_of_somebody_elses_choice_is_not_made(
        self, project: Write, tmp_path: Path
    ) -> None:
        agent = await Catalog.read(project({"agent.py": self.STATE})).agent("shout")
        touched = tmp_path / "touched"
        inner = ormsgpack.packb(("os", "system", f"touch {touched}"))
        forged = ormsgpack.packb(ormsgpack.Ext(0, inner))
        revived = agent.serializer().loads_typed(("msgpack", forged))
        assert revived == f"touch {touched}"
        assert not touched.exists()

    async def test_what_tasks_of_an_entrypoint_return_is_declared(self, project: Write) -> None:
        code = """
            from dataclasses import dataclass
            from langgraph.func import entrypoint, task
            from langgraph.types import interrupt

            @dataclass
            class Draft:
                text: str

            @task
            async def write(topic: str) -> Draft:
                return Draft(topic.upper())

            @entrypoint()
            async def flow(topic: str) -> str:
                draft = await write(topic)
                return f"{draft.text} {interrupt('Good?')}"
        """
        path = project({"agent.py": code}, {"flow": "./agent.py:flow"})
        agent = await Catalog.read(path).agent("flow")
        config: RunnableConfig = {"configurable": {"thread_id": "1"}}
        saver = InMemorySaver(serde=agent.serializer())
        async with agent.open(config, saver=saver) as graph:
            await graph.ainvoke(agent.input({"topic": "ants"}), config)
            assert await graph.ainvoke(Command(resume="yes"), config) == "ANTS yes"
        assert {name for _, name in agent.classes} == {"Draft"}


class TestModules:
    async def test_two_files_of_one_name_do_not_clash(self, project: Write) -> None:
        other = GRAPH.replace("upper", "lower")
        path = project(
            {"a/agent.py": GRAPH, "b/agent.py": other, "a_agent.py": GRAPH},
            {"a": "./a/agent.py:graph", "b": "./b/agent.py:graph", "c": "./a_agent.py:graph"},
        )
        agents = [await Catalog.read(path).agent(name) for name in ("a", "b", "c")]
        assert len({agent.made.builder.state_schema.__module__ for agent in agents}) == 3
        assert await run(path, "b", {"word": "Hey"}) == {"word": "hey"}

    def test_importing_the_catalogue_imports_nothing_heavy(self) -> None:
        code = """
            import sys
            import core.catalog
            heavy = ("langgraph", "langchain_core", "psycopg", "mcp_types", "pydantic",
                     "jsonschema_rs")
            print([name for name in sys.modules if name.startswith(heavy)])
        """
        assert in_another_process(code) == "[]"


def in_another_process(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
