"""The envelope of every answer: what strict clients look for, and drop an answer or a whole list of
tools for when they don't find it. Over HTTP, checked with the protocol's own types."""

import base64
import json
from pathlib import Path
from typing import Any

import httpx
import mcp_types
import pytest

from core.protocol import CAPABILITIES_KEY, LATEST, SERVER_INFO_KEY, VERSION_KEY
from tests.served import META, Served, error, post, post_older, result
from tests.tables import rows


def ran(journal: Path) -> bool:
    return (journal / "ran").exists()


# Results.


@pytest.mark.parametrize(
    ("method", "params", "kind"),
    [
        ("server/discover", {}, mcp_types.DiscoverResult),
        ("tools/list", {}, mcp_types.ListToolsResult),
        (
            "tools/call",
            {"name": "echo", "arguments": {"message": "a"}},
            mcp_types.CallToolResult,
        ),
        ("tools/call", {"name": "echo", "arguments": {}}, mcp_types.CallToolResult),
        ("tools/call", {"name": "greeter"}, mcp_types.InputRequiredResult),
    ],
)
def test_every_result_says_its_type_and_its_server(
    served: Served, method: str, params: dict[str, Any], kind: Any
) -> None:
    told = result(post(served.url, method, **params))
    kind.model_validate(told)
    asking = kind is mcp_types.InputRequiredResult
    assert told["resultType"] == ("input_required" if asking else "complete")
    assert told["_meta"][SERVER_INFO_KEY]["name"] == "intermezzo"
    cacheable = method != "tools/call"
    assert ("ttlMs" in told, "cacheScope" in told) == (cacheable, cacheable)


def test_a_list_tells_what_clients_need_of_every_tool_and_after_a_call_too(served: Served) -> None:
    before = result(post(served.url, "tools/list"))
    result(post(served.url, "tools/call", name="echo", arguments={"message": "a"}))
    after = result(post(served.url, "tools/list"))
    assert after == before
    assert isinstance(after["ttlMs"], int)
    assert after["cacheScope"] == "public"
    for tool in after["tools"]:
        assert tool["name"]
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"
        assert tool.get("outputSchema", {"type": "object"})["type"] == "object"


def test_structured_content_comes_with_every_success_of_a_tool_with_an_output_schema(
    served: Served,
) -> None:
    call: dict[str, Any] = {"name": "echo", "arguments": {"message": "a"}}
    for told in (
        result(post(served.url, "tools/call", **call)),
        result(post_older(served.url, "tools/call", **call)),
    ):
        assert told["structuredContent"] == {"echo": "a"}
        assert json.loads(told["content"][0]["text"]) == {"echo": "a"}


# Clients that begin with `initialize`.


def test_an_older_client_gets_through_without_a_session_and_leaves_nothing(
    served: Served, shared_database: str
) -> None:
    before = rows(shared_database)
    answers = [
        post_older(
            served.url,
            "initialize",
            protocolVersion="2025-11-25",
            capabilities={},
            clientInfo={"name": "a", "version": "1"},
        ),
        post_older(served.url, "tools/list"),
        post_older(served.url, "tools/call", name="echo", arguments={"message": "a"}),
        post_older(served.url, "tools/call", name="greeter", arguments={}),
    ]
    kinds = (
        mcp_types.InitializeResult,
        mcp_types.ListToolsResult,
        mcp_types.CallToolResult,
        mcp_types.CallToolResult,
    )
    for answer, kind in zip(answers, kinds, strict=True):
        kind.model_validate({"ttlMs": 0, "cacheScope": "private", **result(answer)})
        assert not {"resultType", "ttlMs", "cacheScope", "_meta"} & set(result(answer))
        assert "mcp-session-id" not in answer.headers
    assert rows(shared_database) == before


def test_what_an_older_client_says_of_its_modes_asks_it_nothing(served: Served) -> None:
    declaring: dict[str, Any] = {
        "name": "greeter",
        "arguments": {},
        "_meta": {CAPABILITIES_KEY: {"elicitation": {}}},
    }
    told = result(post_older(served.url, "tools/call", **declaring))
    assert told["isError"] is True


def test_initialize_of_the_newest_revision_is_no_method(served: Served) -> None:
    response = post(served.url, "initialize", protocolVersion=LATEST)
    assert (response.status_code, error(response)["code"]) == (404, -32601)


# Errors.


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({}, b"{", 400, -32700),
        ({}, b"[]", 400, -32600),
        ({"Mcp-Method": "ping"}, {"method": "ping"}, 404, -32601),
        ({"Mcp-Method": "tools/list"}, {"method": "tools/list", "params": {}}, 400, -32602),
        ({"Mcp-Method": "tools/call"}, {"method": "tools/list"}, 400, -32020),
        ({"Content-Type": "text/plain"}, {"method": "tools/list"}, 415, -32600),
        ({"Content-Encoding": "gzip"}, {"method": "tools/list"}, 415, -32600),
        ({"Host": "evil.example.com"}, {"method": "tools/list"}, 421, -32600),
        ({"Origin": "https://evil.example.com"}, {"method": "tools/list"}, 403, -32600),
    ],
)
def test_every_error_is_a_whole_json_rpc_error(
    served: Served, headers: dict[str, str], body: Any, status: int, code: int
) -> None:
    if not isinstance(body, bytes):
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": "a-1", "params": {"_meta": META}}
        body = json.dumps({**message, **body}).encode()
    sent = {"MCP-Protocol-Version": LATEST, "Content-Type": "application/json", **headers}
    response = httpx.post(served.url, headers=sent, content=body)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    told = response.json()
    assert told["error"]["code"] == code
    assert told["jsonrpc"] == "2.0"
    # Who may ask is decided before the body is read.
    known = body[:1] == b"{" and len(body) > 1 and status not in (403, 421)
    assert told.get("id") == ("a-1" if known else None)
    assert "null" not in response.text
    mcp_types.JSONRPCError.model_validate({"id": 0, **told})


def test_what_a_round_needs_is_told_as_an_object_of_capabilities(served: Served) -> None:
    silent: dict[str, Any] = {VERSION_KEY: LATEST, CAPABILITIES_KEY: {}}
    response = post(served.url, "tools/call", name="calendar", arguments={}, _meta=silent)
    assert response.status_code == 400
    told = error(response)
    assert (told["code"], told["data"]) == (
        -32021,
        {"requiredCapabilities": {"elicitation": {"url": {}}}},
    )


# Headers that something on the way may have routed or allowed a call by.


@pytest.mark.parametrize(
    "headers",
    [
        {"Mcp-Name": "one"},
        {"Mcp-Name": "DONE"},
        {"Mcp-Method": "tools/list"},
        {"Mcp-Method": "TOOLS/CALL"},
        {"MCP-Protocol-Version": "2025-11-25"},
        {"Mcp-Name": "=?base64?b25l?="},
        {"Mcp-Name": "=?base64?not base64?="},
    ],
)
def test_a_header_that_disagrees_with_the_body_runs_nothing(
    noting: Served, tmp_path: Path, headers: dict[str, str]
) -> None:
    call: dict[str, Any] = {"name": "done", "arguments": {"journal": str(tmp_path)}}
    response = post(noting.url, "tools/call", id="seven", headers=headers, **call)
    assert (response.status_code, error(response)["code"]) == (400, -32020)
    assert response.json()["id"] == "seven"
    assert not ran(tmp_path)


@pytest.mark.parametrize("missing", ["Mcp-Name", "Mcp-Method"])
def test_a_missing_or_repeated_header_runs_nothing(
    noting: Served, tmp_path: Path, missing: str
) -> None:
    arguments = {"journal": str(tmp_path)}
    params = {"name": "done", "arguments": arguments, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = [
        ("MCP-Protocol-Version", LATEST),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "done"),
    ]
    without = [each for each in headers if each[0] != missing]
    again = [*headers, *(each for each in headers if each[0] == missing)]
    for sent in (without, again):
        response = httpx.post(noting.url, headers=sent, json=body)
        assert (response.status_code, error(response)["code"]) == (400, -32020)
    assert not ran(tmp_path)


def test_an_encoded_name_in_a_header_of_any_case_is_the_tools(
    noting: Served, tmp_path: Path
) -> None:
    encoded = base64.b64encode(b"done").decode()
    params = {"name": "done", "arguments": {"journal": str(tmp_path)}, "_meta": META}
    response = httpx.post(
        noting.url,
        headers={
            "mcp-protocol-version": LATEST,
            "MCP-METHOD": "tools/call",
            "mcp-name": f"=?base64?{encoded}?=",
        },
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
    )
    assert result(response)["resultType"] == "complete"
    assert ran(tmp_path)


def test_a_name_beside_a_list_is_refused(served: Served) -> None:
    response = post(served.url, "tools/list", headers={"Mcp-Name": "echo"})
    assert (response.status_code, error(response)["code"]) == (400, -32020)
