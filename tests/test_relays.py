"""Elicitation requests that an agent passes on: the shapes, the keys, the rules for URLs."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import calendar, greeter
from core.cannot_ask import PREFIX, CannotAsk
from core.errors import InvalidParams
from core.questions import Missing, Pending, ask, read
from core.relays import LONGEST_URL, check_url, relayed
from tests import strategies
from tests.calling import accept
from tests.dialogue import Dialogue, resumed

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "vectors.json").read_text(encoding="utf-8")
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
}
FORM: dict[str, Any] = {
    "key": "confirm",
    "message": "Sure?",
    "mode": "form",
    "requested_schema": SCHEMA,
}
URL: dict[str, Any] = {
    "key": "auth",
    "message": "Sign in.",
    "mode": "url",
    "url": "https://example.com/start",
}


def relay(*requests: Any, id: str = "1", path: str = "", **extra: Any) -> Pending:
    value = {"type": "mcp_elicitation", "requests": list(requests), **extra}
    return Pending(id=id, value=value, schema=None, path=path)


def mapped(**requests: Any) -> Pending:
    value = {"type": "mcp_elicitation", "requests": requests}
    return Pending(id="1", value=value, schema=None)


def refusal(pending: Pending) -> str:
    with pytest.raises(CannotAsk) as refused:
        ask([pending])
    text = str(refused.value)
    assert text.startswith(PREFIX)
    return text


# The agents of the reference.


@pytest.mark.anyio
async def test_the_greeter_asks_as_the_reference_prints_it_and_greets() -> None:
    dialogue = Dialogue(greeter.graph)
    asked = await dialogue.start({})
    expected = VECTORS["relay"]
    assert list(asked.requests) == [expected["key"]]
    wire = json.dumps(asked.requests[expected["key"]]["params"])
    assert wire == json.dumps(expected["params"])
    assert asked.modes == {"form"}
    assert await dialogue.answer(asked, {"user_name": accept(name="Ada")}) is None
    assert dialogue.output == json.loads(expected["result_text"])


@pytest.mark.anyio
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_the_agent_decides_what_a_refusal_means(action: str) -> None:
    dialogue = Dialogue(greeter.graph)
    asked = await dialogue.start({})
    await dialogue.answer(asked, {"user_name": {"action": action}})
    assert dialogue.output == json.loads(VECTORS["relay"]["declined_result_text"])


@pytest.mark.anyio
async def test_the_calendar_sends_the_user_to_its_page() -> None:
    dialogue = Dialogue(calendar.graph)
    asked = await dialogue.start({})
    expected = VECTORS["url"]
    wire = json.dumps(asked.requests[expected["key"]]["params"])
    assert wire == json.dumps(expected["params"])
    assert asked.modes == {"url"}
    await dialogue.answer(asked, {expected["key"]: {"action": "accept"}})
    assert dialogue.output == {"status": "connected"}


# Shapes.


def test_both_shapes_and_both_spellings_ask_the_same() -> None:
    request = {"message": "Sure?", "requestedSchema": SCHEMA}
    plain = {"message": "Sure?", "mode": "form", "requested_schema": SCHEMA}
    camel = {"key": "confirm", "mode": "form", **request}
    rounds = [
        ask([relay(FORM)]),
        ask([relay(camel)]),
        ask([mapped(confirm=request)]),
        ask([mapped(confirm=plain)]),
    ]
    assert all(each.requests == rounds[0].requests for each in rounds)
    assert rounds[0].requests == {
        "confirm": {
            "method": "elicitation/create",
            "params": {
                "message": "Sure?",
                "mode": "form",
                "requestedSchema": {
                    "properties": {"ok": {"type": "boolean"}},
                    "required": ["ok"],
                    "type": "object",
                },
            },
        }
    }


def test_what_else_the_agent_wrote_is_ignored() -> None:
    asked = ask([relay({**FORM, "elicitationId": "x"}, tool_name="search", other=[1])])
    assert list(asked.requests["confirm"]["params"]) == ["message", "mode", "requestedSchema"]


def test_several_requests_of_one_interrupt_are_asked_together_and_answered_together() -> None:
    asked = ask([relay(FORM, URL)])
    assert list(asked.requests) == ["confirm", "auth"]
    assert asked.modes == {"form", "url"}
    answer = accept(ok=True)
    assert isinstance(read(asked, {"confirm": answer}), Missing)
    assert resumed(asked, {"auth": {"action": "decline"}, "confirm": answer}) == {
        "1": {"responses": {"confirm": answer, "auth": {"action": "decline"}}}
    }


# Answers.


def test_a_decline_or_cancel_carries_no_content_to_the_agent_whatever_the_client_sent() -> None:
    asked = ask([relay(FORM, URL)])
    for content in (None, {}, {"ok": 5}, "x", [1]):
        refused = {"action": "decline", "content": content, "else": 1}
        opened = {"action": "cancel", "content": content}
        assert resumed(asked, {"confirm": refused, "auth": opened}) == {
            "1": {"responses": {"confirm": {"action": "decline"}, "auth": {"action": "cancel"}}}
        }


def test_content_of_an_accepted_url_is_ignored() -> None:
    asked = ask([relay(URL)])
    for content in (None, {"ok": 5}, "x"):
        response = {"action": "accept", "content": content}
        assert resumed(asked, {"auth": response}) == {
            "1": {"responses": {"auth": {"action": "accept"}}}
        }


def test_accepted_content_must_fit_and_holds_only_what_was_asked() -> None:
    asked = ask([relay(FORM)])
    with pytest.raises(InvalidParams, match="Form content does not match requestedSchema"):
        read(asked, {"confirm": accept(ok="yes")})
    with pytest.raises(InvalidParams):
        read(asked, {"confirm": {"action": "accept"}})
    assert resumed(asked, {"confirm": accept(ok=False, more=1)}) == {
        "1": {"responses": {"confirm": accept(ok=False)}}
    }


# Keys of several.


def test_two_relays_with_one_key_are_two_questions_under_prefixed_keys() -> None:
    one, other = relay(FORM, path="a"), relay({**FORM, "message": "Really?"}, id="2", path="b")
    asked = ask([one, other])
    first, second = asked.requests
    assert first != second
    assert first.endswith(".1/confirm")
    assert second.endswith(".1/confirm")
    # Each depends on its interrupt alone: order and thread change nothing.
    assert ask([other, one]).requests == asked.requests
    values = resumed(asked, {first: accept(ok=True), second: {"action": "decline"}})
    assert values == {
        "1": {"responses": {"confirm": accept(ok=True)}},
        "2": {"responses": {"confirm": {"action": "decline"}}},
    }


def test_equal_relays_are_numbered_in_the_order_of_their_tasks() -> None:
    pending = [relay(FORM, id=f"i{n}", path=f"task {n}") for n in range(3)]
    asked = ask([pending[2], pending[0], pending[1]])
    prefixes = [key.removesuffix("/confirm") for key in asked.requests]
    digest = prefixes[0].partition(".")[0]
    assert prefixes == [f"{digest}.1", f"{digest}.2", f"{digest}.3"]
    assert [each.id for each in asked.asked] == ["i0", "i1", "i2"]


def test_a_relay_beside_another_question_is_prefixed_too() -> None:
    text = Pending(id="t", value="Name?", schema=None, path="z")
    relayed_key, text_key = ask([relay(FORM), text]).requests
    assert relayed_key.endswith(".1/confirm")
    assert text_key.startswith("answer-")


# What can't be passed on.


@pytest.mark.parametrize(
    ("pending", "reason"),
    [
        (relay(), "empty"),
        (mapped(), "empty"),
        (Pending(id="1", value={"type": "mcp_elicitation"}, schema=None), "neither a list"),
        (relay("Sure?"), 'no "key"'),
        (relay({**FORM, "key": 5}), 'no "key"'),
        (relay({**FORM, "key": "a\0b"}), "NUL"),
        (mapped(**{"a\0b": FORM}), "NUL"),
        (relay({key: FORM[key] for key in FORM if key != "key"}), 'no "key"'),
        (relay(FORM, FORM), 'Two requests have the key "confirm"'),
        (mapped(confirm="Sure?"), "not an object"),
        (relay({**FORM, "message": None}), 'no "message"'),
        (relay({**FORM, "mode": "popup"}), 'neither "form" nor "url"'),
        (relay({key: FORM[key] for key in FORM if key != "mode"}), 'neither "form" nor "url"'),
        (relay({**FORM, "requested_schema": None}), "requested_schema"),
        (relay({**FORM, "requested_schema": {"type": "string"}}), "must describe an object"),
        (relay({**FORM, "requested_schema": {"type": "object"}}), "no fields"),
        (
            relay({**FORM, "requested_schema": {**SCHEMA, "properties": {"ok": {}}}}),
            'field "ok"',
        ),
        (relay({**URL, "url": None}), 'The URL of the request "auth"'),
    ],
)
def test_a_request_that_breaks_a_rule_can_not_be_asked_and_says_which(
    pending: Pending, reason: str
) -> None:
    assert reason in refusal(pending)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/oauth?a=b&c=%20#d",
        "HTTPS://EXAMPLE.com",
        "https://example.com:8443/a",
        "https://xn--bcher-kva.example/",
        "https://192.0.2.1/",
        "https://[2001:db8::1]:443/a",
        "https://example.com/a?next=user@example.org",
        "http://localhost:8080/x",
        "http://127.0.0.1/",
        "http://[::1]/",
        "https://example.com/" + "a" * (LONGEST_URL - 20),
    ],
)
def test_https_and_http_to_this_machine_are_passed_on_as_given(url: str) -> None:
    asked = ask([relay({**URL, "url": url})])
    assert asked.requests["auth"]["params"]["url"] == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "ftp://example.com/",
        "example.com",
        "//example.com/",
        "https:example.com",
        "https:///x",
        "https://",
        "https://?x",
        "https://.../",
        "https://[a.b]/",
        "https://[v1.x]/",
        "http://example.com",
        "http://127.0.0.1.evil.example",
        "http://localhost.evil.example",
        "http://127.1/",
        "http://[::2]/",
        "https://user:pw@example.com",
        "https://user@example.com",
        "https://@example.com",
        "https://example.com\\@evil.example",
        "https:\\\\example.com",
        "https://exam%70le.com/",
        "https://example.com:99999/",
        "https://example.com:port/",
        "https://[::1",
        " https://example.com",
        "https://example.com\n",
        "https://exa\tmple.com",
        "https://example.com/\0",
        "https://\u0435xample.com/",
        "https://example.com/" + "a" * (LONGEST_URL - 19),
    ],
)
def test_no_other_url_reaches_a_client(url: str) -> None:
    assert 'The URL of the request "auth"' in refusal(relay({**URL, "url": url}))


@given(
    st.text(st.sampled_from("https:/@[].\\ alocht1270%#?\n")) | strategies.JSON,
)
def test_any_value_is_a_url_to_pass_on_or_a_reason(url: Any) -> None:
    try:
        passed = check_url(url, "k")
    except CannotAsk:
        return
    assert passed == url
    assert url.lower().startswith(("https://", "http://"))
    assert "\\" not in url


@given(
    st.lists(strategies.objects(*FORM, "url", "requestedSchema"), max_size=3)
    | st.dictionaries(strategies.TEXTS, strategies.objects(*FORM, "url"), max_size=3)
    | strategies.JSON
)
def test_any_requests_are_questions_or_a_reason(requests: Any) -> None:
    pending = Pending(id="1", value={"type": "mcp_elicitation", "requests": requests}, schema=None)
    try:
        asked = ask([pending])
    except CannotAsk:
        return
    assert asked.requests
    assert relayed(pending.value).keys() == asked.requests.keys()
