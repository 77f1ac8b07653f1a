"""Which JSON arrives unchanged, and how it is shown."""

import json
from typing import Any

import pytest
from hypothesis import given

from core import plain
from core.canonical import digest
from tests import strategies


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [2**64, -(2**63) - 1, float("nan"), float("inf"), "\ud800", {"\ud800": 1}, nested(101)]
)
def test_what_would_not_arrive_is_not_plain_alone_or_inside(value: Any) -> None:
    for each in (value, [value], {"a": [1, value]}):
        with pytest.raises(plain.NotPlain):
            plain.check(each)


@pytest.mark.parametrize("value", [2**64 - 1, -(2**63), 1e308, "a\0b", True, None, nested(100)])
def test_the_rest_is_plain(value: Any) -> None:
    plain.check(value)


@pytest.mark.parametrize(
    "text",
    ["", "{", "nope", "NaN", "1e999", "[" * 100_000, "9" * 5_000, '{"a":1,"a":1}', '"\\ud800"'],
)
def test_a_text_that_is_not_plain_json_is_not_read(text: str) -> None:
    with pytest.raises(plain.NotPlain):
        plain.parse(text)


def test_what_is_shown_hides_nothing_and_is_the_same_json() -> None:
    value = {"é": "\u202e\u200b\x85\x7f\U000e0001", "emoji": "👩\u200d💻"}
    shown = plain.shown(value)
    assert json.loads(shown) == value
    assert shown == ('{"é":"\\u202e\\u200b\\u0085\\u007f\\udb40\\udc01","emoji":"👩\u200d💻"}')


@given(strategies.JSON)
def test_plain_values_survive_text_and_digest_and_no_other_value_raises_anything_else(
    value: Any,
) -> None:
    try:
        plain.check(value)
    except plain.NotPlain:
        return
    for text in (plain.dumps(value), plain.shown(value)):
        assert plain.parse(text) == value
    assert plain.size(value) == len(plain.dumps(value).encode())
    assert digest(value)
