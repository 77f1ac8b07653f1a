"""Request states: made again equal, bound to a call's circumstances, refused in one way."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InvalidRequestState
from core.request_state import Binding, KeyRing, make_key

OLD, NEW, OTHER = (f"{name}-key-0123456789-abcdefghijklmnop" for name in ("old", "new", "other"))
BINDING = Binding(audience="here", agent="a", tool="t", arguments={"x": 1, "y": [2]}, principal="p")
CALL = UUID("01a17b0e-645a-7262-9006-0c9a99e8410d")


def refused(keys: KeyRing, token: str, binding: Binding = BINDING) -> None:
    with pytest.raises(InvalidRequestState) as refusal:
        keys.open(token, binding)
    assert refusal.value.as_error() == {
        "code": -32602,
        "message": "Invalid or expired requestState",
    }


@given(number=st.integers(min_value=1, max_value=2**31 - 1))
def test_a_token_opens_to_the_call_and_round_it_was_made_for(number: int) -> None:
    keys = KeyRing([OLD])
    call = uuid4()
    assert keys.open(keys.seal(call, number, BINDING), BINDING) == (call, number)


def test_the_same_round_has_the_same_token_and_another_round_another() -> None:
    keys = KeyRing([OLD])
    assert keys.seal(CALL, 1, BINDING) == keys.seal(CALL, 1, BINDING)
    assert keys.seal(CALL, 1, BINDING) != keys.seal(CALL, 2, BINDING)
    assert keys.seal(CALL, 1, BINDING) != keys.seal(uuid4(), 1, BINDING)


@pytest.mark.parametrize(
    "change",
    [
        {"audience": "elsewhere"},
        {"agent": "b"},
        {"tool": "u"},
        {"principal": "q"},
        {"principal": ""},
        {"arguments": {}},
        {"arguments": {"x": 1}},
        {"arguments": {"x": 1.0, "y": [2]}},
        {"arguments": {"x": True, "y": [2]}},
        {"arguments": {"x": 1, "y": [2], "z": None}},
        {"arguments": {"x": "1", "y": [2]}},
    ],
)
def test_a_token_is_refused_for_anything_else_than_it_was_made_for(change: dict[str, Any]) -> None:
    keys = KeyRing([OLD])
    token = keys.seal(CALL, 1, BINDING)
    refused(keys, token, replace(BINDING, **change))
    assert keys.open(token, BINDING) == (CALL, 1)


def test_arguments_are_compared_as_json_without_regard_to_the_order_of_keys() -> None:
    keys = KeyRing([OLD])
    token = keys.seal(CALL, 1, BINDING)
    reordered = replace(BINDING, arguments={"y": [2], "x": 1})
    assert keys.open(token, reordered) == (CALL, 1)


def test_composed_and_decomposed_characters_are_different_arguments() -> None:
    keys = KeyRing([OLD])
    token = keys.seal(CALL, 1, replace(BINDING, arguments={"x": "\u00e9"}))
    refused(keys, token, replace(BINDING, arguments={"x": "e\u0301"}))


def test_every_changed_character_of_a_token_is_refused() -> None:
    keys = KeyRing([OLD])
    token = keys.seal(CALL, 1, BINDING)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
    for position, character in enumerate(token):
        for other in alphabet:
            if other != character:
                refused(keys, token[:position] + other + token[position + 1 :])


@pytest.mark.parametrize(
    "token",
    ["", ".", "a", "a.b", "é", "\N{GRINNING FACE}", "x" * 1_000_000, "=.=", "\ud800", "\0"],
)
def test_what_is_no_token_at_all_is_refused_alike(token: str) -> None:
    refused(KeyRing([OLD]), token)


def test_a_token_with_something_added_or_lost_is_refused() -> None:
    keys = KeyRing([OLD])
    token = keys.seal(CALL, 1, BINDING)
    for changed in (token + "\n", " " + token, token[:-1], token + "=", token.upper()):
        refused(keys, changed)


def test_parts_of_two_tokens_do_not_make_a_third() -> None:
    keys = KeyRing([OLD])
    first, second = keys.seal(CALL, 1, BINDING), keys.seal(CALL, 2, BINDING)
    refused(keys, first.split(".")[0] + "." + second.split(".")[1])


def test_keys_rotate_in_three_steps_without_a_refused_token() -> None:
    before, adding, switched, after = (
        KeyRing(keys) for keys in ([OLD], [OLD, NEW], [NEW, OLD], [NEW])
    )
    old = before.seal(CALL, 1, BINDING)
    assert adding.seal(CALL, 1, BINDING) == old
    new = switched.seal(CALL, 1, BINDING)
    assert new != old
    for ring in (adding, switched):
        assert ring.open(old, BINDING) == ring.open(new, BINDING) == (CALL, 1)
    assert after.open(new, BINDING) == (CALL, 1)
    refused(after, old)
    refused(KeyRing([OTHER]), new)


def test_the_first_key_signs() -> None:
    assert KeyRing([NEW, OLD]).seal(CALL, 1, BINDING) == KeyRing([NEW]).seal(CALL, 1, BINDING)


@pytest.mark.parametrize("keys", [[], ["abcd"], ["a" * 64], [OLD, "short"], [OLD, OLD]])
def test_a_ring_without_good_keys_is_not_made_and_tells_the_command(keys: list[str]) -> None:
    with pytest.raises(ValueError, match="key"):
        KeyRing(keys)


def test_a_made_key_is_good_and_never_the_same() -> None:
    first, second = make_key(), make_key()
    KeyRing([first, second])
    assert first != second


def test_answers_are_the_same_under_any_key_of_the_ring() -> None:
    answers = {"a": {"action": "accept", "content": "yes"}}
    stored = KeyRing([OLD]).digest(CALL, 1, answers)
    assert KeyRing([NEW, OLD]).same(stored, CALL, 1, answers)
    assert not KeyRing([NEW]).same(stored, CALL, 1, answers)
    assert "yes" not in str(stored)


@pytest.mark.parametrize(
    ("number", "answers"),
    [
        (1, {"a": "no"}),
        (1, {"b": "yes"}),
        (1, {"a": "yes", "b": "yes"}),
        (1, {}),
        (2, {"a": "yes"}),
    ],
)
def test_other_answers_or_another_round_are_not_the_same(
    number: int, answers: dict[str, Any]
) -> None:
    keys = KeyRing([OLD])
    assert not keys.same(keys.digest(CALL, 1, {"a": "yes"}), CALL, number, answers)
