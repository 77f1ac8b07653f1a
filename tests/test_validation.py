"""Values are checked here: nothing is fetched, nothing stalls, references stay in their schema."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from core.validation import Check, Unusable, follow
from tests.listening import Handler, listening


@pytest.fixture
def visits() -> Iterator[tuple[str, list[str]]]:
    """The address of a server on this machine, and what was fetched from it."""
    fetched: list[str] = []

    class Serve(Handler):
        def do_GET(self) -> None:
            fetched.append(self.path)
            self.answer(200, b"{}")

    with listening(Serve) as url:
        yield f"{url}/schema.json", fetched


def test_a_reference_to_another_document_is_never_fetched(visits: tuple[str, list[str]]) -> None:
    address, fetched = visits
    documents: list[dict[str, Any]] = [
        {"$ref": address},
        {"$schema": address, "type": "string"},
        {"properties": {"x": {"$ref": f"{address}#/$defs/x"}}},
        {"$id": address, "$ref": "other.json"},
        {"$dynamicRef": address},
    ]
    for document in documents:
        with pytest.raises(Unusable):
            Check(document)
    with pytest.raises(Unusable):
        follow({"$ref": address}, {})
    assert fetched == []


@pytest.mark.parametrize("schema", [{"type": 5}, {"minLength": -1}, {"required": "x"}, {"enum": 1}])
def test_what_is_no_schema_is_unusable(schema: dict[str, Any]) -> None:
    with pytest.raises(Unusable):
        Check(schema)


def test_patterns_take_linear_time_and_what_would_not_is_unusable() -> None:
    check = Check({"pattern": "^(a|a)+$"})
    before = time.monotonic()
    assert check.misfits("a" * 200_000 + "!")
    assert time.monotonic() - before < 5
    with pytest.raises(Unusable):
        Check({"pattern": "(?=a)(?!b)\\1"})


def test_schemas_that_refer_to_themselves_end() -> None:
    deep: Any = None
    for _ in range(90):
        deep = {"a": deep}
    for schema in (
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"$ref": "#"}}},
        {"properties": {"a": {"$ref": "#"}}},
    ):
        Check(schema).misfits(deep)


def test_the_first_misfits_are_told_with_their_fields() -> None:
    check = Check({"type": "object", "properties": {"a": {"items": {"type": "string"}}}})
    misfits = check.misfits({"a": list(range(50))})
    assert len(misfits) == 10
    assert {each.field for each in misfits} == {"a"}
    [missing] = Check({"required": ["b"]}).misfits({})
    assert (missing.field, missing.reason) == ("b", '"b" is a required property')
    assert Check({}).misfits(None) == []


def test_a_reference_is_followed_and_what_stands_beside_it_describes() -> None:
    document = {"$defs": {"x": {"type": "string", "title": "X"}}}
    assert follow({"$ref": "#/$defs/x", "title": "Y", "default": "z"}, document) == {
        "type": "string",
        "title": "Y",
        "default": "z",
    }
    for broken in (
        {"$ref": "#/$defs/x", "type": "integer"},
        {"$ref": "#/$defs/y"},
        {"$ref": "#anchor"},
        {"$ref": "#/$defs/x/title"},
    ):
        with pytest.raises(Unusable):
            follow(broken, document)
