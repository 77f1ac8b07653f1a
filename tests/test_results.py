"""How an agent's final output is told: JSON text, content blocks, structured content."""

import collections
import dataclasses
import datetime
import decimal
import enum
import ipaddress
import json
import math
import pathlib
import subprocess
import sys
import types
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Interrupt
from mcp_types import CallToolResult, ImageContent, TextContent
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, RootModel, SecretStr, field_serializer

from core.protocol import ToolResult
from core.results import render
from core.tools import Tool

TOOL = Tool(name="report", agent="report", description="Reports.", input_schema={"type": "object"})


def structured(schema: dict[str, Any]) -> Tool:
    return dataclasses.replace(TOOL, output_schema=schema)


def said(output: Any) -> str:
    """The only text of a result that is a success."""
    result = render(output, tool=TOOL)
    assert not result.is_error, result.content
    assert not result.has_structured
    (block,) = result.content
    assert block["type"] == "text"
    return block["text"]


def refused(output: Any, tool: Tool = TOOL) -> str:
    result = render(output, tool=tool)
    assert result.is_error
    assert not result.has_structured
    return result.content[0]["text"]


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Place:
    street: str
    built: datetime.date


class Point(NamedTuple):
    x: int
    y: int


class Person(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    name: str = Field(alias="fullName")
    born: datetime.date
    photo: bytes = b"\xff"
    place: Place | None = None


class Stranger:
    pass


ZONE = datetime.timezone(datetime.timedelta(hours=2))


class TestText:
    def test_it_is_compact_json_in_the_order_of_the_output(self) -> None:
        assert said({"region": "eu-west-1", "replicas": 3}) == '{"region":"eu-west-1","replicas":3}'

    def test_non_ascii_stays_readable(self) -> None:
        assert said({"gruß": "héllo 世界 🎉"}) == '{"gruß":"héllo 世界 🎉"}'

    def test_a_lone_surrogate_becomes_the_replacement_character(self) -> None:
        assert said({"a\ud800": "\udfff"}) == '{"a\ufffd":"\ufffd"}'
        assert said("\ud83c\udf89 \ud800") == '"🎉 \ufffd"'

    @pytest.mark.parametrize(
        ("value", "encoded"),
        [
            (None, "null"),
            (True, "true"),
            ("text", '"text"'),
            (2**70, "1180591620717411303424"),
            (0.1, "0.1"),
            (math.nan, "null"),
            (-math.inf, "null"),
            ((1, "a"), '[1,"a"]'),
            (Point(1, 2), "[1,2]"),
            (collections.deque([1]), "[1]"),
            ({30, 1, 2}, "[1,2,30]"),
            ({"b", 1, None}, '["b",1,null]'),
            (frozenset({"b", "a"}), '["a","b"]'),
            (Colour.RED, '"red"'),
            (Level.HIGH, "3"),
            (datetime.datetime(2026, 7, 28, 12, 30, tzinfo=ZONE), '"2026-07-28T12:30:00+02:00"'),
            (datetime.date(2026, 7, 28), '"2026-07-28"'),
            (datetime.time(12, 30), '"12:30:00"'),
            (datetime.timedelta(days=1, hours=2, milliseconds=500), '"P1DT7200.5S"'),
            (datetime.timedelta(), '"P0DT0S"'),
            (datetime.timedelta(seconds=-90), '"-P0DT90S"'),
            (decimal.Decimal("1.10"), '"1.10"'),
            (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
            (b"\x00\xff", '"AP8="'),
            (bytearray(b"a"), '"YQ=="'),
            (pathlib.PurePosixPath("a/b"), '"a/b"'),
            (ipaddress.ip_address("::1"), '"::1"'),
            (AnyUrl("https://a.example/x"), '"https://a.example/x"'),
            (SecretStr("hush"), '"**********"'),
            (Place("x", datetime.date(2026, 1, 1)), '{"street":"x","built":"2026-01-01"}'),
            (RootModel[list[int]]([1]), "[1]"),
            (types.MappingProxyType({"a": 1}), '{"a":1}'),
            (collections.OrderedDict[str, int](b=1, a=2), '{"b":1,"a":2}'),
        ],
    )
    def test_each_kind_of_value_has_the_documented_form(self, value: Any, encoded: str) -> None:
        assert said(value) == encoded
        assert said({"in": [value]}) == f'{{"in":[{encoded}]}}'

    @pytest.mark.parametrize(
        ("key", "encoded"),
        [
            (1, "1"),
            (True, "true"),
            (None, "null"),
            (1.5, "1.5"),
            (Colour.RED, "red"),
            (datetime.date(2026, 1, 1), "2026-01-01"),
            (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ],
    )
    def test_a_key_that_is_no_string_becomes_its_text(self, key: Any, encoded: str) -> None:
        assert json.loads(said({key: "x"})) == {encoded: "x"}

    def test_a_model_is_dumped_by_alias_with_our_forms_inside(self) -> None:
        place = Place("x", datetime.date(2026, 1, 1))
        person = Person(fullName="Ada", born=datetime.date(1815, 12, 10), place=place)
        assert json.loads(said({"person": person})) == {
            "person": {
                "fullName": "Ada",
                "born": "1815-12-10",
                "photo": "/w==",
                "place": {"street": "x", "built": "2026-01-01"},
            }
        }

    def test_messages_are_told_whole(self) -> None:
        output = {
            "messages": [
                HumanMessage("hi"),
                AIMessage("", tool_calls=[{"name": "f", "args": {"a": 1}, "id": "1"}]),
                ToolMessage("done", tool_call_id="1"),
            ]
        }
        human, ai, tool = json.loads(said(output))["messages"]
        assert (human["type"], human["content"]) == ("human", "hi")
        assert ai["tool_calls"][0]["args"] == {"a": 1}
        assert (tool["type"], tool["content"], tool["tool_call_id"]) == ("tool", "done", "1")

    def test_what_langgraph_and_langchain_return_is_told(self) -> None:
        documents = [Document(page_content="a", metadata={"n": 1})]
        assert json.loads(said(documents))[0]["page_content"] == "a"
        assert json.loads(said(Interrupt(value="why", id="1")))["value"] == "why"


class TestWhatHasNoJson:
    def test_an_unknown_class_is_an_error_that_names_the_key_and_the_type(self) -> None:
        told = refused({"report": {"rows": [1, Stranger()]}})
        name = f"{__name__}.Stranger"
        assert told == (
            f'report finished, but its output can\'t be sent: "report.rows[1]" is a {name}.'
        )

    @pytest.mark.parametrize("value", [Stranger, Person, Place, object(), len, 1j, iter([]), ...])
    def test_classes_functions_and_iterators_are_refused(self, value: Any) -> None:
        assert '"a" is a ' in refused({"a": value})
        assert "the output is a " in refused(value)

    def test_a_key_without_a_text_is_refused(self) -> None:
        assert '"a" has a key that is a tuple' in refused({"a": {(1, 2): "x"}})

    def test_two_keys_with_one_text_are_refused(self) -> None:
        assert "the output has two keys that are '1' in JSON" in refused({1: "a", "1": "b"})

    def test_a_cycle_is_refused(self) -> None:
        cycle: list[Any] = []
        cycle.append({"again": cycle})
        assert '"a[0].again" refers back to itself' in refused({"a": cycle})

    def test_one_object_in_two_places_is_no_cycle(self) -> None:
        shared = {"x": 1}
        assert said([shared, shared]) == '[{"x":1},{"x":1}]'

    def test_a_cycle_of_models_is_refused(self) -> None:
        class Node(BaseModel):
            next: Any = None

        node = Node()
        node.next = node
        assert '"next.next" refers back to itself' in refused(node)

    def test_endless_nesting_is_refused_in_a_short_text(self) -> None:
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        told = refused(deep)
        assert "is nested too deeply" in told
        assert len(told) < 250

    def test_a_model_that_fails_to_dump_is_refused(self) -> None:
        class Broken(BaseModel):
            a: int = 1

            @field_serializer("a")
            def fail(self, value: int) -> int:
                raise RuntimeError("no")

        assert "can't be dumped" in refused({"a": Broken()})

    @settings(deadline=None)
    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text(st.characters())
            | st.binary()
            | st.datetimes()
            | st.timedeltas()
            | st.decimals()
            | st.uuids()
            | st.sampled_from([Colour.RED, Stranger(), Stranger, 1j]),
            lambda inner: (
                st.lists(inner)
                | st.dictionaries(st.text() | st.integers() | st.none(), inner)
                | st.tuples(inner, inner)
                | st.frozensets(st.text() | st.integers() | st.floats() | st.binary())
            ),
        )
    )
    def test_every_output_is_strict_json_or_an_error_result(self, output: Any) -> None:
        result = render(output, tool=TOOL)
        text = result.content[0]["text"]
        text.encode()
        if not result.is_error:
            json.loads(text, parse_constant=pytest.fail)


SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "at": {"type": "string", "format": "date-time"}},
    "required": ["answer"],
}


class TestStructuredContent:
    def test_it_comes_with_an_output_schema(self) -> None:
        at = datetime.datetime(2026, 7, 28, tzinfo=datetime.UTC)
        result = render({"answer": "x", "at": at}, tool=structured(SCHEMA))
        assert result.structured == {"answer": "x", "at": "2026-07-28T00:00:00+00:00"}
        assert json.loads(result.content[0]["text"]) == result.structured

    def test_an_output_that_does_not_fit_is_an_error_that_names_the_field(self) -> None:
        told = refused({"answer": 3}, structured(SCHEMA))
        assert told == (
            "report finished, but its output does not fit its output schema:"
            ' answer: 3 is not of type "string"'
        )
        assert '"answer" is a required property' in refused({}, structured(SCHEMA))

    def test_an_output_that_does_not_fit_is_not_lost(self) -> None:
        result = render({"answer": 3}, tool=structured(SCHEMA))
        assert json.loads(result.content[1]["text"]) == {"answer": 3}


PIXEL = "iVBORw0KGgo="


def shown(*blocks: Any) -> list[dict[str, Any]]:
    result = render({"mcp_content": list(blocks)}, tool=TOOL)
    assert not result.is_error, result.content
    assert not result.has_structured
    CallToolResult.model_validate(result.as_result())
    return result.content


class TestContent:
    @pytest.mark.parametrize(
        "block",
        [
            {"type": "text", "text": "hi"},
            {"type": "text", "text": "hi", "annotations": {"audience": ["user"], "priority": 1.0}},
            {"type": "text", "text": "hi", "_meta": {"a": 1}},
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "https://a.example/b", "name": "b"},
            {
                "type": "resource",
                "resource": {"uri": "test://a", "mimeType": "text/plain", "text": "hi"},
            },
            {"type": "resource", "resource": {"uri": "test://a", "blob": PIXEL}},
        ],
    )
    def test_a_block_of_the_protocol_passes_as_it_is(self, block: dict[str, Any]) -> None:
        assert shown(block) == [block]

    def test_blocks_may_be_instances_of_the_protocols_types(self) -> None:
        blocks = [TextContent(text="hi"), ImageContent(data=PIXEL, mime_type="image/png")]
        assert [block["type"] for block in shown(*blocks)] == ["text", "image"]

    @pytest.mark.parametrize(
        ("block", "converted"),
        [
            ("hi", {"type": "text", "text": "hi"}),
            (
                {
                    "type": "text",
                    "text": "hi",
                    "id": "1",
                    "index": 0,
                    "annotations": [],
                    "extras": {},
                },
                {"type": "text", "text": "hi"},
            ),
            (
                {"type": "text-plain", "text": "hi", "mime_type": "text/plain"},
                {"type": "text", "text": "hi"},
            ),
            (
                {"type": "text", "source_type": "text", "text": "hi", "mime_type": "text/plain"},
                {"type": "text", "text": "hi"},
            ),
            (
                {"type": "image", "base64": PIXEL, "mime_type": "image/png"},
                {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            ),
            (
                {"type": "image", "base64": b"\x89PNG\r\n\x1a\n", "mime_type": "image/png"},
                {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            ),
            (
                {"type": "image", "source_type": "base64", "data": PIXEL, "mime_type": "image/png"},
                {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            ),
            (
                {
                    "type": "image",
                    "source": {"type": "base64", "data": PIXEL, "media_type": "image/png"},
                },
                {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            ),
            (
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            ),
            (
                {"type": "image_url", "image_url": "https://a.example/b.png"},
                {"type": "resource_link", "uri": "https://a.example/b.png", "name": "image-1"},
            ),
            (
                {"type": "image", "url": "https://a.example/b.png", "mime_type": "image/png"},
                {
                    "type": "resource_link",
                    "uri": "https://a.example/b.png",
                    "name": "image-1",
                    "mimeType": "image/png",
                },
            ),
            (
                {"type": "image", "source_type": "url", "url": "https://a.example/b.png"},
                {"type": "resource_link", "uri": "https://a.example/b.png", "name": "image-1"},
            ),
            (
                {"type": "audio", "base64": "UklGRg==", "mime_type": "audio/wav"},
                {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            ),
            (
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            ),
            (
                {
                    "type": "file",
                    "base64": "JVBERg==",
                    "mime_type": "application/pdf",
                    "filename": "a.pdf",
                },
                {
                    "type": "resource",
                    "resource": {
                        "uri": "attachment:///a.pdf",
                        "blob": "JVBERg==",
                        "mimeType": "application/pdf",
                    },
                },
            ),
            (
                {"type": "video", "base64": "AAAA", "mime_type": "video/mp4"},
                {
                    "type": "resource",
                    "resource": {
                        "uri": "attachment:///video-1",
                        "blob": "AAAA",
                        "mimeType": "video/mp4",
                    },
                },
            ),
        ],
    )
    def test_a_block_of_langchain_is_converted(self, block: Any, converted: dict[str, Any]) -> None:
        assert shown(block) == [converted]

    def test_the_blocks_of_a_message_are_converted(self) -> None:
        message = HumanMessage(
            content_blocks=[
                {"type": "text", "text": "look"},
                {"type": "image", "base64": PIXEL, "mime_type": "image/png"},
            ]
        )
        assert [block["type"] for block in shown(*message.content_blocks)] == ["text", "image"]

    def test_no_blocks_are_no_content(self) -> None:
        assert shown() == []

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            ("hi", "mcp_content must be a list of content blocks"),
            ([3], "mcp_content[0] is no content block but int"),
            ([dict[str, str]()], "mcp_content[0].type is None, not one of audio, image, resource"),
            (["a", {"type": "table"}], "mcp_content[1].type is 'table', not one of"),
            ([{"type": "image", "data": PIXEL}], "mcp_content[0].mimeType of type image: Field"),
            ([{"type": "image", "base64": PIXEL}], "mcp_content[0].mimeType of type image: "),
            ([{"type": "text", "text": 3}], "mcp_content[0].text of type text: Input should be"),
            (
                [{"type": "image", "file_id": "f"}],
                "mcp_content[0] names a file at a model provider",
            ),
            ([Stranger()], '"mcp_content[0]" is a '),
        ],
    )
    def test_what_is_no_content_is_an_error_that_says_where(self, content: Any, told: str) -> None:
        assert told in refused({"mcp_content": content})

    def test_the_rest_of_the_output_is_structured_content(self) -> None:
        result = render({"mcp_content": ["hi"], "n": 1}, tool=TOOL)
        assert result.as_result() == {
            "content": [{"type": "text", "text": "hi"}],
            "structuredContent": {"n": 1},
        }

    def test_the_rest_is_checked_against_the_output_schema(self) -> None:
        tool = structured(SCHEMA)
        result = render({"mcp_content": ["hi"], "answer": "x"}, tool=tool)
        assert result.structured == {"answer": "x"}
        assert '"answer" is a required property' in refused({"mcp_content": ["hi"]}, tool)


def test_telling_plain_output_imports_no_wire_types() -> None:
    code = (
        "import sys\n"
        "from core.results import render\n"
        "from core.tools import Tool\n"
        "tool = Tool(name='t', agent='t', description='d', input_schema={})\n"
        "assert render({'a': {1, 2}}, tool=tool).content\n"
        "heavy = 'mcp_types', 'langgraph', 'pydantic', 'jsonschema_rs'\n"
        "print([name for name in sys.modules if name.startswith(heavy)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_a_mapping_of_an_agents_own_is_an_object() -> None:
    class Lazy(Mapping[str, int]):
        def __getitem__(self, key: str) -> int:
            return 1

        def __iter__(self) -> Iterator[str]:
            return iter(["a"])

        def __len__(self) -> int:
            return 1

    assert said(Lazy()) == '{"a":1}'


def test_a_result_is_what_the_protocol_calls_one() -> None:
    for result in (render({"a": 1}, tool=TOOL), render(Stranger(), tool=TOOL)):
        assert isinstance(result, ToolResult)
        CallToolResult.model_validate(result.as_result())
