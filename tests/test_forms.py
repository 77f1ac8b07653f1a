"""What becomes a form, what is refused and why, and which content a form lets through."""

import datetime
import decimal
import enum
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types._v2026_07_28 import ElicitRequestFormParams, PrimitiveSchemaDefinition
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

from core.answers import MISMATCH, Unfit
from core.cannot_ask import PREFIX, CannotAsk
from core.forms import LARGEST, Form, build
from tests import strategies


class Region(enum.StrEnum):
    """Where it runs."""

    US = "us-east-1"
    EU = "eu-west-1"


class Size(enum.IntEnum):
    S = 1
    L = 2


def form(kind: Any) -> Form:
    """The form for a type, whose schema is made as LangGraph makes it."""
    return build(schema_of(kind))


def schema_of(kind: Any) -> dict[str, Any]:
    return (
        cast("dict[str, Any]", kind) if isinstance(kind, dict) else TypeAdapter(kind).json_schema()
    )


def fields(kind: Any) -> dict[str, Any]:
    return form(kind).requested["properties"]


def only(kind: Any) -> dict[str, Any]:
    """The field `response`."""
    made = form(kind)
    assert made.wrapped
    assert made.requested == {
        "properties": {"response": made.requested["properties"]["response"]},
        "required": ["response"],
        "type": "object",
    }
    return made.requested["properties"]["response"]


def one(schema: dict[str, Any], *, required: bool = True) -> dict[str, Any]:
    """An object with one field `x`."""
    named: dict[str, Any] = {"required": ["x"]} if required else {}
    return {"type": "object", "properties": {"x": schema}, **named}


def refusal(kind: Any) -> str:
    with pytest.raises(CannotAsk) as refused:
        form(kind)
    text = str(refused.value)
    assert text.startswith(PREFIX)
    return text


def misfit(made: Form, content: dict[str, Any]) -> tuple[str, str]:
    """The field that is told first, and the reason."""
    with pytest.raises(Unfit) as refused:
        made.content(content)
    assert refused.value.message == MISMATCH
    first = refused.value.misfits[0]
    return first.field, first.reason


# What Python types become.


def test_a_model_becomes_its_fields_without_the_title_and_description_at_the_root() -> None:
    class Deployment(BaseModel):
        """What to deploy."""

        region: Literal["us-east-1", "eu-west-1"]
        replicas: int = Field(ge=1, le=10)

    assert list(form(Deployment).requested.items()) == [
        (
            "properties",
            {
                "region": {
                    "enum": ["us-east-1", "eu-west-1"],
                    "title": "Region",
                    "type": "string",
                },
                "replicas": {"maximum": 10, "minimum": 1, "title": "Replicas", "type": "integer"},
            },
        ),
        ("required", ["region", "replicas"]),
        ("type", "object"),
    ]


def test_dataclasses_and_typed_dicts_become_their_fields() -> None:
    @dataclass
    class Data:
        name: str
        tags: list[Region] = field(default_factory=list[Region])

    class Typed(TypedDict):
        """Described."""

        name: str
        age: NotRequired[int]

    assert form(Data).requested["required"] == ["name"]
    assert fields(Data)["tags"]["items"] == {"type": "string", "enum": ["us-east-1", "eu-west-1"]}
    assert form(Typed).requested == {
        "properties": {
            "name": {"title": "Name", "type": "string"},
            "age": {"title": "Age", "type": "integer"},
        },
        "required": ["name"],
        "type": "object",
    }


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (str, {"type": "string"}),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
        (Literal["a"], {"enum": ["a"], "type": "string"}),
        (Region, {"enum": ["us-east-1", "eu-west-1"], "type": "string"}),
        (
            list[Literal["a", "b"]],
            {"items": {"type": "string", "enum": ["a", "b"]}, "type": "array"},
        ),
        (
            list[Region],
            {"items": {"type": "string", "enum": ["us-east-1", "eu-west-1"]}, "type": "array"},
        ),
        (
            Annotated[list[Region], Field(min_length=1, max_length=2)],
            {
                "items": {"type": "string", "enum": ["us-east-1", "eu-west-1"]},
                "maxItems": 2,
                "minItems": 1,
                "type": "array",
            },
        ),
        (datetime.date, {"format": "date", "type": "string"}),
        (datetime.datetime, {"format": "date-time", "type": "string"}),
        (Annotated[str, Field(min_length=2, max_length=9)], None),
        (Annotated[int, Field(ge=0, le=9)], {"maximum": 9, "minimum": 0, "type": "integer"}),
    ],
)
def test_a_type_that_is_no_object_becomes_one_required_field(kind: Any, expected: Any) -> None:
    assert only(kind) == (expected or {"maxLength": 9, "minLength": 2, "type": "string"})


def test_an_optional_field_becomes_a_plain_one_that_may_be_left_out() -> None:
    class Model(BaseModel):
        plain: int | None = None
        described: Annotated[int | None, Field(ge=1, description="D")] = 3
        choice: Region | None = None
        needed: str | None
        literal: Literal["a", None] = None

    made = form(Model)
    assert "required" not in made.requested
    assert made.requested["properties"] == {
        "plain": {"type": "integer", "title": "Plain"},
        "described": {
            "minimum": 1,
            "type": "integer",
            "default": 3,
            "description": "D",
            "title": "Described",
        },
        "choice": {
            "description": "Where it runs.",
            "enum": ["us-east-1", "eu-west-1"],
            "title": "Region",
            "type": "string",
        },
        "needed": {"type": "string", "title": "Needed"},
        "literal": {"type": "string", "enum": ["a"], "title": "Literal"},
    }
    # Pydantic wants to be told of `needed`, and null is how.
    assert made.content({}) == {"needed": None}
    assert Model.model_validate(made.content({})).described == 3


def test_an_optional_type_may_be_left_out_and_is_none_then() -> None:
    made = form(int | None)
    assert made.requested == {"properties": {"response": {"type": "integer"}}, "type": "object"}
    assert made.value(made.content({})) is None
    assert made.value(made.content({"response": 0})) == 0


def test_local_references_are_resolved_at_any_depth() -> None:
    schema = {
        "$ref": "#/$defs/Root",
        "$defs": {
            "Root": one({"$ref": "#/$defs/a~1b/deep/%20"}),
            "a/b": {"deep": {" ": {"anyOf": [{"$ref": "#/$defs/Leaf"}, {"type": "null"}]}}},
            "Leaf": {"type": "string", "maxLength": 3},
        },
    }
    assert fields(schema) == {"x": {"type": "string", "maxLength": 3}}


def test_titled_choices_pass_with_a_type() -> None:
    titled = [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]
    assert fields(one({"oneOf": titled})) == {"x": {"type": "string", "oneOf": titled}}
    assert fields(one({"type": "array", "items": {"anyOf": titled}})) == {
        "x": {"type": "array", "items": {"anyOf": titled}}
    }
    legacy = {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}
    assert fields(one(legacy)) == {"x": legacy}


def test_a_root_may_forbid_further_fields_and_name_its_dialect() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(extra="forbid")

        x: int

    assert form(Strict).content({"x": 1, "y": 2}) == {"x": 1}
    assert fields({"$schema": "http://json-schema.org/draft-07/schema#", **one({"type": "string"})})


# What is refused, and what the author of the graph is told.


@pytest.mark.parametrize(
    ("kind", "keyword", "advice"),
    [
        (Annotated[int, Field(gt=0)], "exclusiveMinimum", "ge instead of gt"),
        (Annotated[int, Field(lt=9)], "exclusiveMaximum", "le instead of lt"),
        (Annotated[int, Field(multiple_of=2)], "multipleOf", "check it in the node"),
        (Annotated[str, Field(pattern="^a$")], "pattern", "check it in the node"),
        (Annotated[str, Field(examples=["a"])], "examples", "description"),
        (Size, "enum", "Choices are strings"),
        (Literal[1, 2], "enum", "Choices are strings"),
        (Literal[1], "const", "Choices are strings"),
        (Literal["a", 1], "enum", "Choices are strings"),
        (list[str], "items", "choice among strings"),
        (list[int], "items", "choice among strings"),
        (list[Region | None], "items", "choice among strings"),
        (list[Any], "items", "choice among strings"),
        (set[Literal["a"]], "uniqueItems", "list instead of a set"),
        (int | str, "anyOf", "one type"),
        (decimal.Decimal, "anyOf", "one type"),
        (uuid.UUID, "format", "email, uri, date, date-time"),
        (datetime.time, "format", "email, uri, date, date-time"),
        (bytes, "format", "email, uri, date, date-time"),
        ({"type": "string", "enum": ["a"], "minLength": 1}, "minLength", "check it in the node"),
        ({"type": "integer", "minLength": 1}, "minLength", "check it in the node"),
        ({"oneOf": [{"const": "a", "description": "d"}]}, "oneOf", "title"),
        ({"oneOf": [{"const": 1, "title": "1"}]}, "oneOf", "title"),
        ({"enum": ["a"], "oneOf": [{"const": "a", "title": "A"}]}, "enum", "Choices"),
        ({"enum": ["a"], "enumNames": ["A", "B"]}, "enumNames", ""),
        ({"enum": ["a"], "enumNames": [1]}, "enumNames", ""),
        ({"enum": []}, "enum", "Choices"),
        ({"type": "string", "nullable": True}, "nullable", "check it in the node"),
    ],
)
def test_a_keyword_that_forms_do_not_have_is_told_with_its_field_and_a_way_out(
    kind: Any, keyword: str, advice: str
) -> None:
    schema = schema_of(kind)
    text = refusal(one(schema) | {"$defs": schema.pop("$defs", {})})
    assert f'The field "x" uses "{keyword}"' in text
    assert advice in text


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (dict[str, int], "describes no fields"),
        ({"type": "object", "properties": {}}, "bool"),
        (Any, 'The "type" of the field "response"'),
        (None, 'The "type" of the field "response"'),
        (tuple[int, str], '"prefixItems"'),
        (one({"type": "object", "properties": {}}), 'The field "x" is an object'),
        (one({"$ref": "#"}), 'The field "x" is an object'),
        (one({}), 'The "type" of the field "x"'),
        (one({"type": ["string", "integer"]}), 'The "type" of the field "x"'),
        ({**one({"type": "string"}), "properties": {"x": True}}, 'The field "x" has no type'),
        ({**one({"type": "string"}), "minProperties": 1}, '"minProperties"'),
        ({**one({"type": "string"}), "required": ["y"]}, 'requires "y"'),
        ({"type": "bogus"}, "no JSON Schema"),
        ({"$schema": "https://example.com/mine", "type": "string"}, "no JSON Schema"),
        ({"$ref": "https://example.com/schema.json"}, "no JSON Schema"),
        (one({"$ref": "#/$defs/nowhere"}), "no JSON Schema"),
        (one({"$ref": "other.json"}), "no JSON Schema"),
        (one({"type": "string", "default": 5}), 'The default of the field "x"'),
        (one({"type": "string", "default": None}), 'The default of the field "x"'),
        (one({"type": "string", "maximum": float("inf")}), "no JSON Schema"),
    ],
)
def test_every_other_reason_has_a_sentence_of_its_own(kind: Any, reason: str) -> None:
    assert reason in refusal(kind)


def test_a_recursive_model_is_refused_and_never_exhausts_the_stack() -> None:
    class Node(BaseModel):
        next: "Node | None" = None

    assert 'The field "next" is an object' in refusal(Node)
    loop = {"anyOf": [{"$ref": "#/$defs/Loop"}, {"type": "null"}]}
    assert "refers to itself" in refusal({**one({"$ref": "#/$defs/Loop"}), "$defs": {"Loop": loop}})
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5_000):
        deep = {"allOf": [deep]}
    assert "nested" in refusal(one(deep))


def test_a_form_has_1_to_100_fields() -> None:
    properties = {f"f{n}": {"type": "boolean"} for n in range(101)}
    assert "at most 100 fields" in refusal({"type": "object", "properties": properties})
    del properties["f0"]
    assert len(fields({"type": "object", "properties": properties})) == 100


def test_a_form_has_at_most_a_mebibyte() -> None:
    room = LARGEST - len('{"properties":{"x":{"type":"string","description":""}},"type":"object"}')
    schema = {"type": "string", "description": "é" * (room // 2)}
    assert fields(one(schema, required=False))
    schema["description"] += "é"
    assert "at most 1048576 bytes" in refusal(one(schema, required=False))


# Content.


def test_what_is_missing_or_wrong_is_told_by_field() -> None:
    made = form(one({"type": "integer", "minimum": 1, "maximum": 3}))
    assert misfit(made, {}) == ("x", '"x" is a required property')
    assert misfit(made, {"x": 4}) == ("x", "4 is greater than the maximum of 3")


def test_every_field_that_does_not_fit_is_told() -> None:
    schema = {"type": "object", "properties": {name: {"type": "boolean"} for name in "ab"}}
    with pytest.raises(Unfit) as refused:
        form(schema).content({"a": 1, "b": 2})
    assert [each.field for each in refused.value.misfits] == ["a", "b"]


@pytest.mark.parametrize("value", ["3", 3.5, True, None, [3], {"x": 3}, 2**64, -(2**63) - 1, 1e300])
def test_no_integer_but_an_integer(value: Any) -> None:
    assert misfit(form(int), {"response": value})[0] == "response"


@pytest.mark.parametrize("value", [3, 3.0, 0, -0.0, 2**64 - 1, -(2**63)])
def test_a_whole_number_is_delivered_as_the_integer_it_is(value: Any) -> None:
    content = form(int).content({"response": value})
    assert content == {"response": value}
    assert type(content["response"]) is int


@pytest.mark.parametrize("value", [float("inf"), float("nan"), "1", True, None])
def test_no_number_but_a_number(value: Any) -> None:
    assert misfit(form(float), {"response": value})[0] == "response"


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (
            {"type": "string", "format": "email"},
            ["ada@example.com", "a.b+c@x.y"],
            ["nope", "a b@c.d", "@x.y", "Ada <ada@example.com>"],
        ),
        (
            {"type": "string", "format": "uri"},
            ["https://example.com/a?b#c", "urn:isbn:1"],
            ["not a uri", "/relative", "example.com"],
        ),
        (
            datetime.date,
            ["2026-02-28", "2024-02-29"],
            ["2026-02-30", "2026-2-1", "20260228", "2026-02-28T00:00:00Z"],
        ),
        (
            datetime.datetime,
            ["2026-02-28T10:00:00Z", "2026-02-28T10:00:00.5+02:00"],
            ["2026-02-28T10:00:00", "2026-02-28", "2026-02-28T25:00:00Z", "2026-02-28 10:00:00Z"],
        ),
        (Annotated[str, Field(min_length=3)], ["abc"], ["ab", "", None, 5]),
        (Annotated[str, Field(max_length=2)], ["é🙂", ""], ["abc"]),
        (Region, ["us-east-1"], ["US-EAST-1", "", None, ["us-east-1"]]),
        (
            list[Literal["a", "b"]],
            [[], ["a"], ["b", "a"]],
            [["c"], ["a", "a"], "a", [None], [["a"]], None],
        ),
        (bool, [True, False], ["true", 1, 0, None]),
        (one({"oneOf": [{"const": "a", "title": "A"}]}), [], ["A"]),
    ],
)
def test_formats_lengths_and_choices_are_checked(
    kind: Any, good: list[Any], bad: list[Any]
) -> None:
    made = form(kind)
    [name] = made.requested["properties"]
    for value in good:
        assert made.content({name: value}) == {name: value}
    for value in bad:
        assert misfit(made, {name: value})[0] == name


def test_falsy_answers_arrive_as_given() -> None:
    cases: list[tuple[Any, Any]] = [(bool, False), (int, 0), (str, ""), (list[Region], [])]
    for kind, value in cases:
        made = form(kind)
        assert made.value(made.content({"response": value})) == value
    optional = form(one({"type": "boolean"}, required=False))
    assert optional.value(optional.content({})) == {}
    assert optional.value(optional.content({"x": False})) == {"x": False}


def test_a_field_that_was_not_asked_is_not_delivered() -> None:
    made = form(one({"type": "string"}))
    assert made.content({"y": {"any": ["thing"]}, "x": "a", "": None}) == {"x": "a"}


def test_null_is_no_answer_even_to_an_optional_field() -> None:
    class Model(BaseModel):
        x: int | None = None

    assert misfit(form(Model), {"x": None}) == ("x", 'null is not of type "integer"')


def test_a_default_is_for_the_client_and_the_model_not_added_to_content() -> None:
    class Model(BaseModel):
        name: str
        count: int = 3
        loud: bool = True
        note: str | None = None

    made = form(Model)
    assert made.content({"name": "a"}) == {"name": "a"}
    assert Model.model_validate(made.content({"name": "a"})).count == 3
    assert made.content({"name": "a", "note": ""}) == {"name": "a", "note": ""}


def test_text_may_hold_nul_but_no_lone_surrogate() -> None:
    made = form(str)
    assert made.content({"response": "a\0b"}) == {"response": "a\0b"}
    assert misfit(made, {"response": "\ud800"}) == ("response", "a text holds a lone surrogate")


def test_a_reason_quotes_no_more_than_a_line_of_the_answer() -> None:
    _, reason = misfit(form(int), {"response": "x" * 1_000_000})
    assert len(reason) < 400


def test_content_is_checked_against_the_whole_schema_too() -> None:
    # What the form shows is looser here: a definition that the shown field has lost.
    made = form(one({"type": "string"}))
    stricter = Form(requested=made.requested, full=one({"type": "string", "pattern": "^a+$"}))
    assert stricter.content({"x": "aa"}) == {"x": "aa"}
    assert misfit(stricter, {"x": "ab"})[0] == "x"


def test_a_pattern_can_not_stall() -> None:
    made = form(one({"type": "string"}))
    evil = Form(requested=made.requested, full=one({"type": "string", "pattern": "^(a+)+$"}))
    assert misfit(evil, {"x": "a" * 100_000 + "!"})[0] == "x"


# Laws.


@given(strategies.lawful())
def test_what_fits_a_lawful_schema_passes_its_form_unchanged(
    case: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    schema, content = case
    made = build(schema)
    assert Form.from_json(made.as_json()) == made
    assert made.content({**content, "not asked": 1} if "not asked" not in content else content) == {
        **content,
        **{name: None for name in made.nulls if name not in content},
    }


@given(strategies.lawful())
def test_every_form_is_one_that_the_protocol_knows(
    case: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    requested = build(case[0]).requested
    params = {"message": "?", "mode": "form", "requestedSchema": requested}
    ElicitRequestFormParams.model_validate(params)
    for schema in requested["properties"].values():
        known = TypeAdapter(PrimitiveSchemaDefinition).validate_python(schema)
        told = known.model_dump(by_alias=True, exclude_none=True, mode="json")
        assert told == schema


def test_any_schema_makes_a_form_or_a_reason_and_half_of_those_made_here_make_forms() -> None:
    seen: Counter[str] = Counter()

    @given(strategies.lawful(), strategies.unlawful())
    def law(case: tuple[dict[str, Any], dict[str, Any]], doubtful: dict[str, Any]) -> None:
        for schema in (case[0], doubtful):
            try:
                build(schema)
            except CannotAsk:
                seen["refused"] += 1
            else:
                seen["made"] += 1

    law()
    assert seen["refused"]
    assert seen["made"] >= seen.total() / 2


@given(st.dictionaries(strategies.TEXTS, strategies.JSON, max_size=4))
def test_any_json_object_as_a_schema_makes_a_form_or_a_reason(schema: dict[str, Any]) -> None:
    with suppress(CannotAsk):
        assert build(schema).requested["properties"]


@given(strategies.lawful(), st.data())
def test_any_content_passes_or_does_not_fit(
    case: tuple[dict[str, Any], dict[str, Any]], data: st.DataObject
) -> None:
    made = build(case[0])
    content = data.draw(strategies.objects(*made.requested["properties"]))
    with suppress(Unfit):
        assert made.content(content).keys() <= made.requested["properties"].keys()
