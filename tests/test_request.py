"""The ladder: which requests are decoded, and which refusal the others meet first."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import (
    HeaderMismatch,
    InvalidParams,
    InvalidRequest,
    ParseError,
    Refusal,
    UnsupportedVersion,
)
from core.protocol import CAPABILITIES_KEY, HANDSHAKE, LATEST, LOG_LEVEL_KEY, VERSION_KEY, Request
from handler.headers import Headers
from handler.refusals import UnsupportedMediaType
from handler.request import METHOD, NAME, Notification, Refused, decode
from handler.response import failure

META: dict[str, Any] = {VERSION_KEY: LATEST, CAPABILITIES_KEY: {}}

JSON = {"Content-Type": "application/json"}
CALL_HEADERS = {
    **JSON,
    "MCP-Protocol-Version": LATEST,
    "Mcp-Method": "tools/call",
    "Mcp-Name": "greeter",
}


def call(**members: Any) -> dict[str, Any]:
    """The body of a modern call of `greeter`, with members of its params changed."""
    params = {"name": "greeter", "arguments": {}, "_meta": META, **members}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def decoded(
    body: Any = None, headers: Mapping[str, str] | list[tuple[str, str]] = CALL_HEADERS
) -> Request | Notification | Refused:
    fields = headers if isinstance(headers, list) else list(headers.items())
    raw = body if isinstance(body, bytes) else json.dumps(call() if body is None else body).encode()
    return decode(Headers((name.encode(), value.encode()) for name, value in fields), raw)


def request(*arguments: Any) -> Request:
    result = decoded(*arguments)
    assert isinstance(result, Request), result
    return result


def refused(kind: type[Refusal], *arguments: Any) -> Refused:
    result = decoded(*arguments)
    assert isinstance(result, Refused), result
    assert type(result.refusal) is kind, result.refusal.message
    return result


def without(headers: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in names}


# A request that climbs every rung.


def test_a_call_of_the_newest_revision_is_decoded() -> None:
    result = request(call(arguments={"a": 1}))
    assert (result.id, result.method, result.version) == (1, "tools/call", LATEST)
    assert result.params["arguments"] == {"a": 1}
    assert result.modern


def test_header_names_have_no_case_and_blanks_around_values_do_not_count() -> None:
    assert request(None, {name.lower(): f" {value}\t" for name, value in CALL_HEADERS.items()})


def test_an_encoded_name_is_the_name() -> None:
    headers = {**CALL_HEADERS, "Mcp-Name": "=?base64?dMOkc2s=?="}
    assert request(call(name="täsk"), headers).params["name"] == "täsk"


# 5: media type.


@pytest.mark.parametrize(
    "media_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON ;charset=UTF-8"],
)
def test_json_is_taken_with_any_parameter(media_type: str) -> None:
    assert request(None, {**CALL_HEADERS, "Content-Type": media_type})


@pytest.mark.parametrize(
    "media_type", ["", "text/plain", "application/json-rpc", "application/x-www-form-urlencoded"]
)
def test_another_media_type_is_refused_with_the_id(media_type: str) -> None:
    result = refused(UnsupportedMediaType, None, {**CALL_HEADERS, "Content-Type": media_type})
    assert result.id == 1


def test_a_missing_media_type_is_refused() -> None:
    refused(UnsupportedMediaType, None, without(CALL_HEADERS, "Content-Type"))


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "identity, gzip"])
def test_a_compressed_body_is_refused(encoding: str) -> None:
    refused(UnsupportedMediaType, b"\x1f\x8b", {**CALL_HEADERS, "Content-Encoding": encoding})


@pytest.mark.parametrize("encoding", ["identity", "Identity", "IDENTITY", ""])
def test_a_body_that_says_that_it_is_not_compressed_is_read(encoding: str) -> None:
    headers = {**CALL_HEADERS, "Content-Encoding": encoding}
    assert refused(ParseError, b"{", headers).id is None


def test_media_type_comes_before_json() -> None:
    refused(UnsupportedMediaType, b"{", {**CALL_HEADERS, "Content-Type": "text/plain"})


# 6: JSON.


@pytest.mark.parametrize("headers", [JSON, CALL_HEADERS])
def test_a_body_that_is_not_json_is_a_parse_error_without_an_id(headers: dict[str, str]) -> None:
    assert refused(ParseError, b"{", headers).id is None


@pytest.mark.parametrize("headers", [JSON, CALL_HEADERS])
def test_a_fault_in_the_json_is_refused_with_the_id(headers: dict[str, str]) -> None:
    body = json.dumps(call()).replace('"arguments": {}', '"arguments": {"a": 1, "a": 2}')
    assert refused(InvalidRequest, body.encode(), headers).id == 1


# 7: envelope.


@pytest.mark.parametrize("headers", [JSON, CALL_HEADERS])
@pytest.mark.parametrize("body", [[], [call()], [call(), call()], "x", 5, None, True])
def test_anything_but_one_object_is_refused(body: Any, headers: dict[str, str]) -> None:
    assert refused(InvalidRequest, json.dumps(body).encode(), headers).id is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"jsonrpc": "1.0"},
        {"jsonrpc": 2.0},
        {"jsonrpc": None},
        {"method": None},
        {"method": 5},
        {"method": ["tools/call"]},
    ],
)
def test_a_broken_envelope_is_refused_with_the_id(wrong: dict[str, Any]) -> None:
    assert refused(InvalidRequest, {**call(), **wrong}).id == 1


def test_a_response_is_refused() -> None:
    assert refused(InvalidRequest, {"jsonrpc": "2.0", "id": 3, "result": {}}).id == 3


@pytest.mark.parametrize("identifier", [0, 1, -7, 1.5, "", "a", "server-discover-probe-1", 10**13])
def test_an_id_comes_back_as_it_was(identifier: Any) -> None:
    result = request({**call(), "id": identifier})
    assert result.id == identifier
    assert type(result.id) is type(identifier)


@pytest.mark.parametrize("identifier", [0, "a", 1.5])
@pytest.mark.parametrize("headers", [JSON, without(CALL_HEADERS, "Mcp-Method")])
def test_an_error_carries_the_id(identifier: Any, headers: dict[str, str]) -> None:
    result = decoded({**call(_meta=5), "id": identifier}, headers)
    assert isinstance(result, Refused)
    assert result.id == identifier


@pytest.mark.parametrize("identifier", [None, True, False, {}, [], [1]])
def test_what_is_no_id_is_refused_and_not_sent_back(identifier: Any) -> None:
    assert refused(InvalidRequest, {**call(), "id": identifier}).id is None


def test_an_id_beyond_a_double_is_not_sent_back() -> None:
    body = json.dumps(call()).replace('"id": 1', '"id": 1e999').encode()
    assert refused(InvalidParams, body).id is None


def test_an_id_with_half_a_surrogate_pair_is_not_sent_back() -> None:
    body = json.dumps(call()).replace('"id": 1', r'"id": "\ud800"').encode()
    assert refused(InvalidRequest, body).id is None


@pytest.mark.parametrize("headers", [JSON, CALL_HEADERS])
def test_a_request_without_an_id_is_refused(headers: dict[str, str]) -> None:
    body = call()
    del body["id"]
    assert refused(InvalidRequest, body, headers).id is None


@pytest.mark.parametrize("headers", [JSON, CALL_HEADERS])
@pytest.mark.parametrize("params", [[], "x", 5, None, True])
def test_params_that_are_no_object_are_refused(params: Any, headers: dict[str, str]) -> None:
    assert refused(InvalidParams, {**call(), "params": params}, headers).id == 1


@pytest.mark.parametrize("headers", [JSON, {**JSON, "MCP-Protocol-Version": LATEST}])
def test_a_notification_needs_nothing_but_its_method(headers: dict[str, str]) -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert decoded(body, headers) == Notification(method="notifications/initialized")


# 8: `_meta`.


@pytest.mark.parametrize(
    "meta",
    [
        None,
        5,
        [],
        {},
        {VERSION_KEY: LATEST},
        {CAPABILITIES_KEY: {}},
        {**META, VERSION_KEY: None},
        {**META, VERSION_KEY: 20260728},
        {**META, CAPABILITIES_KEY: None},
        {**META, CAPABILITIES_KEY: []},
    ],
)
def test_a_meta_without_version_and_capabilities_is_refused(meta: Any) -> None:
    assert refused(InvalidParams, call(_meta=meta)).id == 1


def test_missing_params_are_a_missing_meta() -> None:
    body = call()
    del body["params"]
    refused(InvalidParams, body)


def test_a_missing_meta_comes_before_a_missing_method_header() -> None:
    refused(InvalidParams, call(_meta={}), without(CALL_HEADERS, "Mcp-Method", "Mcp-Name"))


# 9: header equals `_meta`.


@pytest.mark.parametrize("version", ["v999.0.0", "2025-11-25", "", "2026-07-28 "])
def test_a_header_that_contradicts_the_meta_is_refused(version: str) -> None:
    refused(HeaderMismatch, call(_meta={**META, VERSION_KEY: version}))


def test_a_contradiction_comes_before_the_version() -> None:
    refused(HeaderMismatch, None, {**CALL_HEADERS, "MCP-Protocol-Version": "v999.0.0"})


def test_a_repeated_version_header_is_refused() -> None:
    fields = [*CALL_HEADERS.items(), ("mcp-protocol-version", LATEST)]
    refused(HeaderMismatch, None, fields)


def test_a_gateway_that_joins_repeated_headers_changes_nothing() -> None:
    refused(HeaderMismatch, None, {**CALL_HEADERS, "MCP-Protocol-Version": f"{LATEST},{LATEST}"})


# 10: Mcp-Method and Mcp-Name.


@pytest.mark.parametrize("name", ["Mcp-Method", "Mcp-Name"])
def test_a_missing_routing_header_is_refused(name: str) -> None:
    assert refused(HeaderMismatch, None, without(CALL_HEADERS, name)).id == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"Mcp-Method": "tools/list"},
        {"Mcp-Method": "TOOLS/CALL"},
        {"Mcp-Method": "tools/call, tools/call"},
        {"Mcp-Name": "other"},
        {"Mcp-Name": "Greeter"},
        {"Mcp-Name": ""},
        {"Mcp-Name": "=?base64?Z3JlZXRlcg?="},
    ],
)
def test_a_routing_header_that_contradicts_the_body_is_refused(wrong: dict[str, str]) -> None:
    assert refused(HeaderMismatch, None, {**CALL_HEADERS, **wrong}).id == 1


@pytest.mark.parametrize("name", ["Mcp-Method", "Mcp-Name"])
def test_a_repeated_routing_header_is_refused(name: str) -> None:
    refused(HeaderMismatch, None, [*CALL_HEADERS.items(), (name.lower(), CALL_HEADERS[name])])


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
def test_a_name_beside_a_method_that_names_nothing_is_refused(method: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META}}
    refused(HeaderMismatch, body, {**CALL_HEADERS, "Mcp-Method": method})
    assert request(body, {**without(CALL_HEADERS, "Mcp-Name"), "Mcp-Method": method})


def test_a_name_that_the_body_lacks_is_refused() -> None:
    body = call()
    del body["params"]["name"]
    refused(HeaderMismatch, body)


def test_a_call_that_names_nothing_at_all_is_left_to_the_last_rung() -> None:
    body = call()
    del body["params"]["name"]
    assert request(body, without(CALL_HEADERS, "Mcp-Name"))


@pytest.mark.parametrize("method", ["initialize", "ping", "prompts/get", "tasks/get", "unknown"])
def test_an_unknown_method_is_left_to_its_rung(method: str) -> None:
    body = {**call(uri="x", taskId="y"), "method": method}
    assert request(body, {**CALL_HEADERS, "Mcp-Method": method}).method == method


# 11: version.


@pytest.mark.parametrize("version", ["v999.0.0", "2099-01-01", "2026-07-29"])
def test_an_unknown_version_is_told_the_known_ones(version: str) -> None:
    body = call(_meta={**META, VERSION_KEY: version})
    result = refused(UnsupportedVersion, body, {**CALL_HEADERS, "MCP-Protocol-Version": version})
    assert result.refusal.data["requested"] == version
    assert result.refusal.data["supported"][0] == LATEST


# 14, the part of `_meta`.


@pytest.mark.parametrize(
    ("capabilities", "modes"),
    [
        ({}, set[str]()),
        ({"sampling": {}, "future": 5}, set[str]()),
        ({"elicitation": {}}, {"form"}),
        ({"elicitation": {"future": 1}}, {"form"}),
        ({"elicitation": {"form": {}}}, {"form"}),
        ({"elicitation": {"form": {"applyDefaults": True}, "future": 1}}, {"form"}),
        ({"elicitation": {"url": {}}}, {"url"}),
        ({"elicitation": {"form": {}, "url": {}}}, {"form", "url"}),
    ],
)
def test_the_declared_modes_are_understood(capabilities: Any, modes: set[str]) -> None:
    result = request(call(_meta={**META, CAPABILITIES_KEY: capabilities}))
    assert result.modes == modes


@pytest.mark.parametrize(
    "elicitation", [True, None, [], "form", 1, {"form": None}, {"form": True}, {"url": []}]
)
def test_a_malformed_declaration_is_refused(elicitation: Any) -> None:
    refused(InvalidParams, call(_meta={**META, CAPABILITIES_KEY: {"elicitation": elicitation}}))


@pytest.mark.parametrize("token", ["t", "", 0, 5])
@pytest.mark.parametrize("headers", [JSON, CALL_HEADERS])
def test_a_progress_token_is_kept(token: Any, headers: dict[str, str]) -> None:
    assert request(call(_meta={**META, "progressToken": token}), headers).progress_token == token


@pytest.mark.parametrize("token", [True, 1.5, {}, []])
def test_a_malformed_progress_token_is_refused(token: Any) -> None:
    refused(InvalidParams, call(_meta={**META, "progressToken": token}))


def test_a_log_level_is_kept() -> None:
    assert request(call(_meta={**META, LOG_LEVEL_KEY: "debug"})).log_level == "debug"


@pytest.mark.parametrize("level", ["loud", 5, {}, []])
def test_an_unknown_log_level_is_refused(level: Any) -> None:
    refused(InvalidParams, call(_meta={**META, LOG_LEVEL_KEY: level}))


TRACE = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


def test_a_trace_is_carried_from_the_meta_or_else_from_the_header() -> None:
    assert request(call(_meta={**META, "traceparent": TRACE})).trace == TRACE
    assert request(None, {**CALL_HEADERS, "traceparent": TRACE}).trace == TRACE


@pytest.mark.parametrize("trace", ["", "x", 5, None, TRACE.upper(), f"{TRACE}\n"])
def test_a_malformed_trace_is_ignored(trace: Any) -> None:
    assert request(call(_meta={**META, "traceparent": trace})).trace == ""


@pytest.mark.parametrize("info", [None, 5, "x", {"name": "c", "version": "1"}])
def test_what_a_client_says_of_itself_decides_nothing(info: Any) -> None:
    assert request(call(_meta={**META, "io.modelcontextprotocol/clientInfo": info}))


# Older clients.


@pytest.mark.parametrize("version", HANDSHAKE)
def test_an_older_version_header_needs_no_other_header_and_no_meta(version: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    result = request(body, {**JSON, "MCP-Protocol-Version": version})
    assert (result.version, result.modern, result.modes) == (version, False, frozenset())


@pytest.mark.parametrize("version", [{}, {"MCP-Protocol-Version": "2025-11-25"}])
def test_an_older_request_may_not_contradict_itself_in_headers_that_it_need_not_send(
    version: dict[str, str],
) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "greeter"}}
    for named in ({METHOD: "tools/call"}, {NAME: "greeter"}):
        assert not request(body, {**JSON, **version, **named}).modern
    for named in ({METHOD: "tools/list"}, {METHOD: ""}, {NAME: "echo"}, {NAME: ""}):
        result = refused(HeaderMismatch, body, {**JSON, **version, **named})
        assert result.modern
        assert result.id == 1
    listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    refused(HeaderMismatch, listed, {**JSON, **version, NAME: "greeter"})


def test_without_the_header_a_modern_body_is_an_older_clients() -> None:
    assert not request(None, JSON).modern
    assert not request(None, without(CALL_HEADERS, "MCP-Protocol-Version")).modern


@pytest.mark.parametrize("version", [LATEST, "2099-01-01", "", None, 5, [], {}])
def test_an_older_header_over_a_newer_meta_is_refused_as_the_newer_revision_says(
    version: Any,
) -> None:
    body = call(_meta={**META, VERSION_KEY: version})
    result = refused(HeaderMismatch, body, {**JSON, "MCP-Protocol-Version": "2025-11-25"})
    assert result.modern
    assert result.id == 1


def test_an_empty_version_header_is_no_older_version() -> None:
    refused(HeaderMismatch, None, {**CALL_HEADERS, "MCP-Protocol-Version": ""})


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"jsonrpc":"2.0","id":1,"method":"x","params":5}'])
def test_a_refusal_follows_the_rules_of_the_clients_era(body: bytes) -> None:
    assert not refused_any(body, JSON).modern
    assert refused_any(body, CALL_HEADERS).modern


def refused_any(body: bytes, headers: dict[str, str]) -> Refused:
    result = decoded(body, headers)
    assert isinstance(result, Refused)
    return result


# Whatever is sent.

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=5)  # surrogates too
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
MEMBERS = ["jsonrpc", "id", "method", "params"]
PARAMS = ["name", "arguments", "_meta"]
METAS = [VERSION_KEY, CAPABILITIES_KEY, LOG_LEVEL_KEY, "progressToken", "traceparent"]


def damaged(value: dict[str, Any], members: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """The object with some of its members replaced by anything."""
    changes = st.dictionaries(st.sampled_from(members), JSON_VALUES, max_size=2)
    return changes.map(lambda change: {**value, **change})


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Calls, each with a bit of damage somewhere; some as bytes that are no JSON at all."""
    meta = draw(damaged(META, METAS))
    params = draw(damaged({**call()["params"], "_meta": meta}, PARAMS))
    body = draw(damaged({**call(), "params": params}, MEMBERS))
    text = json.dumps(body, ensure_ascii=draw(st.booleans()))
    return draw(st.just(text.encode("utf-8", "surrogatepass")) | st.binary(max_size=20))


HEADER_VALUES = st.sampled_from([*CALL_HEADERS.values(), *HANDSHAKE, "", "=?base64?x?=", "\xff"])


@given(bodies(), st.lists(st.tuples(st.sampled_from([*CALL_HEADERS]), HEADER_VALUES), max_size=6))
def test_anything_at_all_is_decoded_or_refused_and_a_refusal_can_be_sent(
    body: bytes, fields: list[tuple[str, str]]
) -> None:
    headers = Headers((name.encode(), value.encode("latin-1")) for name, value in fields)
    result = decode(headers, body)
    if isinstance(result, Refused):
        answer = failure(result.refusal, identifier=result.id, modern=result.modern)
        assert json.loads(answer.body)["error"]["message"]


@given(bodies())
def test_a_call_with_damage_under_good_headers_is_decoded_or_refused(body: bytes) -> None:
    result = decoded(body)
    assert isinstance(result, (Request, Notification, Refused))
