"""An agent as MCP shows it: name, description, schemas."""

import json
import textwrap
from typing import Any

import pytest

from core.catalog import Catalog, CatalogError
from core.tools import Tool, name_problem
from tests.projects import GRAPH, Write, load_problems, only_tool, run

pytestmark = pytest.mark.anyio


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
        assert (await only_tool(project({"agent.py": GRAPH}))).description == "Run the shout agent."
        named = textwrap.dedent(GRAPH) + 'named = builder.compile(name="Shouter")\n'
        path = project({"named.py": named}, {"shout": "./named.py:named"})
        assert (await only_tool(path)).description == "Run the Shouter agent."


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

    async def test_an_output_schema_promises_no_more_than_langgraph_keeps(
        self, project: Write
    ) -> None:
        """A node may leave a key out, and a date of Python's may lack a time zone."""
        code = """
            import datetime
            from langgraph.graph import START, StateGraph
            from pydantic import BaseModel
            from typing_extensions import TypedDict

            class Meeting(BaseModel):
                at: datetime.datetime
                format: str

            class Answered(TypedDict):
                meeting: Meeting
                format: str

            class State(Answered):
                question: str

            def node(state: State) -> dict:
                return {}

            graph = StateGraph(State, output_schema=Answered)
            graph.add_node(node).add_edge(START, "node")
        """
        tool = await only_tool(project({"agent.py": code}))
        assert tool.output_schema is not None
        assert tool.output_problem({}) is None
        assert (
            tool.output_problem({"meeting": {"at": "2025-01-01T00:00:00", "format": "x"}}) is None
        )
        assert tool.output_problem({"meeting": {"format": "x"}}) is not None
        assert tool.output_problem({"format": 3}) is not None

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

    @pytest.mark.parametrize("messages", ["list[AnyMessage]", "list[BaseMessage]"])
    async def test_messages_are_published_in_short_and_taken_by_role(
        self, project: Write, messages: str
    ) -> None:
        code = f"""
            from typing import Annotated
            from langchain_core.messages import AnyMessage, BaseMessage
            from langgraph.graph import START, StateGraph, add_messages
            from typing_extensions import TypedDict

            class State(TypedDict):
                messages: Annotated[{messages}, add_messages]

            def reply(state: State) -> dict:
                return {{"messages": [("ai", state["messages"][0].content.upper())]}}

            graph = StateGraph(State).add_node(reply).add_edge(START, "reply")
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
        assert tool.problem({"messages": [{"content": "hi"}]}) is not None

    async def test_what_langgraph_provides_itself_is_not_asked_for(self, project: Write) -> None:
        code = """
            from langgraph.graph import START, StateGraph
            from langgraph.managed import RemainingSteps
            from typing_extensions import TypedDict

            class State(TypedDict):
                word: str
                remaining_steps: RemainingSteps

            graph = StateGraph(State).add_node("n", lambda s: {}).add_edge(START, "n")
        """
        tool = await only_tool(project({"agent.py": code}))
        assert list(tool.input_schema["properties"]) == ["word"]
        assert tool.problem({"word": "x"}) is None

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

    async def test_with_a_schema_beside_the_path_the_state_needs_none(self, project: Write) -> None:
        code = """
            from collections.abc import Callable
            from langgraph.graph import START, StateGraph
            from typing_extensions import TypedDict

            class State(TypedDict):
                word: str
                work: Callable[[], str]

            graph = StateGraph(State).add_node("n", lambda s: {}).add_edge(START, "n")
        """
        with pytest.raises(CatalogError, match="its input has no JSON Schema"):
            await only_tool(project({"agent.py": code}))
        schema = {"type": "object", "properties": {"word": {"type": "string"}}}
        entry = {"path": "./agent.py:graph", "input_schema": schema}
        tool = await only_tool(project({"agent.py": code}, {"shout": entry}))
        assert tool.input_schema == schema

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

    @pytest.mark.parametrize(
        ("properties", "told"),
        [
            ({"a": {"type": "string", "x-mcp-header": "A B"}}, "a: 'A B' can't be part of"),
            ({"a": {"type": "string", "x-mcp-header": ""}}, "a: '' can't be part of"),
            ({"a": {"type": "string", "x-mcp-header": 3}}, "a: 3 can't be part of"),
            ({"a": {"type": "number", "x-mcp-header": "A"}}, "a: x-mcp-header may stand on"),
            ({"a": {"anyOf": [{"type": "string"}], "x-mcp-header": "A"}}, "a: x-mcp-header may"),
            ({"a": {"items": {"type": "string", "x-mcp-header": "A"}}}, "a: x-mcp-header may"),
            (
                {
                    "a": {"type": "string", "x-mcp-header": "Region"},
                    "b": {"properties": {"c": {"type": "string", "x-mcp-header": "region"}}},
                },
                "b.c: 'region' is used twice",
            ),
        ],
    )
    async def test_a_header_that_clients_would_drop_the_tool_for_is_refused(
        self, project: Write, properties: dict[str, Any], told: str
    ) -> None:
        schema = {"type": "object", "properties": properties}
        entry = {"path": "./agent.py:graph", "input_schema": schema}
        error = await load_problems(project({"agent.py": GRAPH}, {"shout": entry}))
        assert f"clients would drop it for its input schema: {told}" in str(error)

    @pytest.mark.parametrize(
        "properties",
        [
            {"x-mcp-header": {"type": "string"}},
            {"a": {"const": {"x-mcp-header": 3}}},
            {"a": {"properties": {"b": {"type": "boolean", "x-mcp-header": "A-b"}}}},
        ],
    )
    async def test_what_only_looks_like_a_wrong_header_is_served(
        self, project: Write, properties: dict[str, Any]
    ) -> None:
        schema = {"type": "object", "properties": properties}
        entry = {"path": "./agent.py:graph", "input_schema": schema}
        await only_tool(project({"agent.py": GRAPH}, {"shout": entry}))

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
    name: str, suggested: str
) -> None:
    problem = name_problem(name)
    assert problem is not None
    assert f"{suggested!r} would do" in problem
    assert name_problem(suggested) is None
