"""Bodies: what counts as strict JSON, and what is kept of a body that does not."""

import json

import pytest

from core.errors import InvalidParams, InvalidRequest, ParseError
from handler.payload import MAX_DEPTH, MAX_VALUES, parse


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"{'a': 1}",
        b'{"a": 1,}',
        b"nul",
        b'{"a": 1} x',
        b"\xef\xbb\xbf{}",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        '{"a": 1}'.encode("utf-16"),
        b'"a\nb"',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b"01",
        b"+1",
        b"1.",
    ],
)
def test_what_is_not_json_in_utf_8_is_a_parse_error(body: bytes) -> None:
    payload = parse(body)
    assert isinstance(payload.fault, ParseError)
    assert payload.value is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -0.5,
        "",
        "a\u0000b",
        "\U0001f600",
        [],
        {},
        {"a": [{"b": None}], "": 1},
        2**64 - 1,
        -(2**63),
        1.7976931348623157e308,
    ],
)
def test_json_comes_back_as_it_was(value: object) -> None:
    payload = parse(json.dumps(value).encode())
    assert payload.fault is None
    assert payload.value == value
    assert type(payload.value) is type(value)


def test_an_escaped_surrogate_pair_is_one_character() -> None:
    payload = parse(rb'"\ud83d\ude00"')
    assert (payload.value, payload.fault) == ("\U0001f600", None)


@pytest.mark.parametrize(
    "body",
    [
        rb'{"id": 7, "a": "\ud800"}',
        rb'{"id": 7, "\uDFFF": 1}',
        rb'{"id": 7, "a": ["\ude00\ud83d"]}',
        b'{"id": 7, "id": 7}',
        b'{"id": 7, "a": {"b": 1, "c": 2, "b": 1}}',
    ],
)
def test_half_a_surrogate_pair_or_a_repeated_key_is_a_fault_that_leaves_the_id(
    body: bytes,
) -> None:
    payload = parse(body)
    assert isinstance(payload.fault, InvalidRequest)
    assert payload.value["id"] == 7


def test_the_text_of_an_escape_is_not_a_surrogate() -> None:
    assert parse(rb'"\\ud800"').fault is None


@pytest.mark.parametrize(
    "number", ["18446744073709551616", "-9223372036854775809", "1e309", "-1e999", "9" * 100_000]
)
def test_a_number_that_no_step_could_keep_is_a_fault_that_leaves_the_id(number: str) -> None:
    payload = parse(f'{{"id": 7, "a": {number}}}'.encode())
    assert isinstance(payload.fault, InvalidParams)
    assert payload.value["id"] == 7


def test_nesting_up_to_the_bound_is_read() -> None:
    payload = parse(nested(MAX_DEPTH))
    assert payload.fault is None


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 500, 100_000, 1_000_000])
def test_deeper_nesting_is_a_fault(levels: int) -> None:
    assert isinstance(parse(nested(levels)).fault, (InvalidRequest, ParseError))


def test_nesting_a_bit_too_deep_leaves_the_id() -> None:
    payload = parse(b'{"id": 7, "a": ' + nested(MAX_DEPTH) + b"}")
    assert isinstance(payload.fault, InvalidRequest)
    assert payload.value["id"] == 7


def test_many_shallow_containers_are_no_nesting() -> None:
    assert parse(b"[" + b",".join([b"{}"] * 1000) + b"]").fault is None


def test_a_body_may_hold_so_many_values_and_no_more() -> None:
    """However large the body may be: each costs time in which nobody else is served."""
    for body, fault in (
        (b"[" + b"1," * (MAX_VALUES - 2) + b"1]", False),
        (b"[" + b"1," * MAX_VALUES + b"1]", True),
        (b'[{"a":1}' + b',{"a":1}' * (MAX_VALUES // 2) + b"]", True),
        (b"[" + b"[[[1]]]," * (MAX_VALUES // 4) + b"1]", True),
        (b'["' + b"," * MAX_VALUES * 3 + b'"]', False),
    ):
        assert (parse(body).fault is not None) == fault
