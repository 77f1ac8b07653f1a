"""`Mcp-Param-*` headers against the arguments they mirror."""

from typing import Any

import pytest

from core.errors import HeaderMismatch
from handler.headers import Headers
from handler.param_headers import check_param_headers

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "nested": {
            "type": "object",
            "properties": {"tenant": {"type": "string", "x-mcp-header": "Tenant"}},
        },
        "plain": {"type": "string"},
    },
}


def check(
    arguments: dict[str, Any], *fields: tuple[str, str], schema: dict[str, Any] = SCHEMA
) -> None:
    headers = Headers((f"Mcp-Param-{name}".encode(), value.encode()) for name, value in fields)
    check_param_headers(headers, schema, arguments)


@pytest.mark.parametrize(
    ("argument", "value", "name", "header"),
    [
        ("region", "us-west1", "Region", "us-west1"),
        ("region", "us-west1", "REGION", "  us-west1\t"),
        ("region", "Hello", "Region", "=?base64?SGVsbG8=?="),
        ("region", "Hello, 世界", "Region", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("region", "SGVsbG8=", "Region", "SGVsbG8="),
        ("region", "=?base64?SGVsbG8=", "Region", "=?base64?SGVsbG8="),
        ("region", "", "Region", ""),
        ("count", 42, "Count", "42"),
        ("count", 42, "Count", "42.0"),
        ("count", 42.0, "Count", "42"),
        ("count", -7, "Count", "-7"),
        ("count", 0, "Count", "0"),
        ("dry", True, "Dry", "true"),
        ("dry", False, "Dry", "false"),
    ],
)
def test_a_header_that_spells_its_argument_passes(
    argument: str, value: Any, name: str, header: str
) -> None:
    check({argument: value}, (name, header))


def test_a_nested_argument_is_found_by_its_path() -> None:
    check({"nested": {"tenant": "a"}}, ("Tenant", "a"))
    with pytest.raises(HeaderMismatch):
        check({"nested": {"tenant": "a"}}, ("Tenant", "b"))


@pytest.mark.parametrize("arguments", [{}, {"region": None}, {"plain": "x"}, {"nested": None}])
def test_without_a_value_no_header_is_expected(arguments: dict[str, Any]) -> None:
    check(arguments)


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        ({"region": "a"}, []),
        ({"region": "a"}, [("Region", "b")]),
        ({"region": "a"}, [("Region", "A")]),
        ({"region": "a"}, [("Region", "a"), ("region", "a")]),
        ({"region": "Hello"}, [("Region", "=?base64?SGVsbG8?=")]),
        ({"region": "Hello"}, [("Region", "=?base64?SGVs!!!bG8=?=")]),
        ({"region": "ü"}, [("Region", "ü")]),
        ({}, [("Region", "a")]),
        ({"region": None}, [("Region", "null")]),
        ({"nested": 5}, [("Tenant", "a")]),
        ({"count": 42}, [("Count", "43")]),
        ({"count": 42}, [("Count", "42.5")]),
        ({"count": 42}, [("Count", "4.2e1")]),
        ({"count": 42}, [("Count", "")]),
        ({"count": 42}, [("Count", "9" * 5000)]),
        ({"dry": True}, [("Dry", "True")]),
        ({"dry": True}, [("Dry", "1")]),
    ],
)
def test_a_header_that_differs_is_refused(
    arguments: dict[str, Any], fields: list[tuple[str, str]]
) -> None:
    with pytest.raises(HeaderMismatch):
        check(arguments, *fields)


@pytest.mark.parametrize(
    "arguments", [{"region": 5}, {"count": True}, {"count": 1.5}, {"dry": 1}, {"region": {}}]
)
def test_a_value_that_the_schema_refuses_anyway_is_left_to_the_schema(
    arguments: dict[str, Any],
) -> None:
    check(arguments)


@pytest.mark.parametrize(
    "annotation",
    [
        {"type": "number", "x-mcp-header": "A"},
        {"type": ["string", "null"], "x-mcp-header": "A"},
        {"x-mcp-header": "A"},
        {"type": "string", "x-mcp-header": ""},
        {"type": "string", "x-mcp-header": "A B"},
        {"type": "string", "x-mcp-header": "A\r\nB"},
        {"type": "string", "x-mcp-header": 5},
        {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}},
        {"anyOf": [{"type": "string", "x-mcp-header": "A"}]},
        True,
    ],
)
def test_an_annotation_that_the_protocol_does_not_allow_asks_for_no_header(annotation: Any) -> None:
    check({"a": "x"}, schema={"type": "object", "properties": {"a": annotation}})


def test_an_unknown_param_header_is_nobodys() -> None:
    check({}, ("Other", "x"))
