"""Header fields as MCP reads them."""

import pytest

from core.errors import HeaderMismatch
from handler.headers import Headers


def headers(*fields: tuple[str, str]) -> Headers:
    return Headers((name.encode(), value.encode("latin-1")) for name, value in fields)


@pytest.mark.parametrize("name", ["Mcp-Name", "mcp-name", "MCP-NAME"])
def test_names_have_no_case(name: str) -> None:
    assert headers((name, "greeter")).one("Mcp-Name") == "greeter"


@pytest.mark.parametrize("value", ["greeter", " greeter", "greeter\t ", "\t greeter \t"])
def test_blanks_around_a_value_are_not_part_of_it(value: str) -> None:
    assert headers(("Mcp-Name", value)).one("Mcp-Name") == "greeter"


def test_an_absent_field_is_none_and_an_empty_one_is_empty() -> None:
    assert headers().one("Mcp-Name") is None
    assert headers(("Mcp-Name", "")).one("Mcp-Name") == ""


def test_a_repeated_field_is_refused_even_when_both_agree() -> None:
    with pytest.raises(HeaderMismatch):
        headers(("Mcp-Name", "a"), ("mcp-name", "a")).one("Mcp-Name")


@pytest.mark.parametrize("value", ["gr\x00eeter", "gr\x7feeter", "über"])
def test_characters_that_no_field_may_hold_are_refused(value: str) -> None:
    with pytest.raises(HeaderMismatch):
        headers(("Mcp-Name", value)).one("Mcp-Name")


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("=?base64?SGVsbG8=?=", "Hello"),
        ("=?base64?dMOkc2stw7xuw68=?=", "täsk-ünï"),
        ("=?base64?IHBhZGRlZCA=?=", " padded "),
        ("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "=?base64?literal?="),
        ("=?base64??=", ""),
        # Anything but the exact markers is literal.
        ("SGVsbG8=", "SGVsbG8="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("SGVsbG8=?=", "SGVsbG8=?="),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
        ("=?base64?=", "=?base64?="),
    ],
)
def test_an_encoded_value_is_decoded(sent: str, meant: str) -> None:
    assert headers(("Mcp-Name", sent)).decoded("Mcp-Name") == meant


@pytest.mark.parametrize(
    "payload",
    [
        "SGVsbG8",  # no padding
        "SGVs!!!bG8=",  # not of the alphabet
        "SGVsbG9=",  # bits beyond the last byte
        "SGVs bG8=",
        "/w==",  # not UTF-8
        "7aCA",  # a surrogate
    ],
)
def test_base64_that_has_another_spelling_is_refused(payload: str) -> None:
    with pytest.raises(HeaderMismatch):
        headers(("Mcp-Name", f"=?base64?{payload}?=")).decoded("Mcp-Name")
