"""The endpoint over real HTTP: one served process, plain requests."""

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from core.methods import Endpoint
from core.protocol import LATEST, SERVER_INFO_KEY, SUPPORTED, VERSION_KEY
from handler.app import build
from handler.resources import Resources
from handler.settings import Settings
from tests.processes import wait_for
from tests.served import META, Served, error, post, post_older, result, serving
from tests.tables import rows

GREETER: dict[str, Any] = {"name": "greeter", "arguments": {}}


def connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname is not None
    return socket.create_connection((parts.hostname, parts.port or 80), timeout=10)


def exchange(url: str, head: list[str], body: bytes = b"") -> str:
    """Bytes to the server as no HTTP library would send them, and all that comes back."""
    lines = [*head, f"Content-Length: {len(body)}", "Connection: close", "", ""]
    with connect(url) as connection:
        connection.sendall("\r\n".join(lines).encode("latin-1") + body)
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


# Two rounds, as the reference shows them.


def test_an_agent_asks_and_goes_on(served: Served) -> None:
    asked = result(post(served.url, "tools/call", **GREETER))
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"]["user_name"]["params"]["message"] == "What is your name?"

    answers = {"user_name": {"action": "accept", "content": {"name": "Ada"}}}
    retry = {"inputResponses": answers, "requestState": asked["requestState"]}
    ended = result(post(served.url, "tools/call", **GREETER, **retry))
    assert ended["resultType"] == "complete"
    assert ended["content"] == [{"type": "text", "text": '{"greeting":"Hello, Ada!"}'}]
    assert ended["_meta"][SERVER_INFO_KEY]["name"] == "intermezzo"


def test_an_agent_that_never_asks_just_answers(served: Served) -> None:
    ended = result(post(served.url, "tools/call", name="echo", arguments={"message": "é\u0000"}))
    assert json.loads(ended["content"][0]["text"]) == {"echo": "é\u0000"}


def test_an_older_client_gets_its_results_bare(served: Served) -> None:
    started = post_older(served.url, "initialize", protocolVersion="2025-06-18")
    assert result(started)["protocolVersion"] == "2025-06-18"
    assert "mcp-session-id" not in started.headers
    ended = result(post_older(served.url, "tools/call", name="echo", arguments={"message": "a"}))
    assert "resultType" not in ended
    assert "_meta" not in ended
    assert result(post_older(served.url, "ping")) == {}


def test_an_older_client_of_an_agent_that_asks_gets_the_two_blocks(served: Served) -> None:
    paused = result(post_older(served.url, "tools/call", **GREETER))
    first, second = paused["content"]
    assert paused["isError"] is True
    assert first["text"] == (
        "This tool paused to ask for human input, and this client can't answer it."
    )
    assert "What is your name?" in second["text"]


@pytest.mark.parametrize("member", [{"requestState": "s"}, {"inputResponses": {}}])
def test_an_older_client_that_answers_is_refused_at_200(
    served: Served, member: dict[str, Any]
) -> None:
    refused = post_older(served.url, "tools/call", **GREETER, **member)
    assert refused.status_code == 200
    assert error(refused)["code"] == -32602
    assert f"MCP-Protocol-Version: {LATEST}" in error(refused)["message"]


# Every kind of refusal, at its status, with the id, as JSON.


def test_every_answer_is_compact_json(served: Served) -> None:
    for response in (post(served.url, "tools/list"), post(served.url, "unknown")):
        assert response.headers["content-type"] == "application/json"
        assert b"\n" not in response.content
        assert b'": ' not in response.content


@pytest.mark.parametrize("identifier", [0, "server-discover-probe-1", "", 1.5])
def test_the_id_comes_back_in_results_and_errors(served: Served, identifier: Any) -> None:
    for method in ("server/discover", "unknown"):
        assert post(served.url, method, id=identifier).json()["id"] == identifier
    assert post(served.url, "server/discover", id=identifier, _meta={}).json()["id"] == identifier
    assert post_older(served.url, "unknown", id=identifier).json()["id"] == identifier


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "unknown/method"])
def test_a_method_that_is_not_of_the_newest_revision_is_404(served: Served, method: str) -> None:
    response = post(served.url, method)
    assert response.status_code == 404
    assert error(response)["code"] == -32601


def test_an_older_clients_unknown_method_is_200(served: Served) -> None:
    response = post_older(served.url, "unknown")
    assert response.status_code == 200
    assert error(response)["code"] == -32601


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"_meta": {}}, -32602),
        ({"_meta": {**META, VERSION_KEY: "v999.0.0"}}, -32020),
        ({"headers": {"Mcp-Name": "echo"}}, -32020),
        ({"headers": {"Mcp-Method": "tools/list"}}, -32020),
        (
            {
                "_meta": {**META, VERSION_KEY: "2099-01-01"},
                "headers": {"MCP-Protocol-Version": "2099-01-01"},
            },
            -32022,
        ),
        ({"arguments": 5}, -32602),
        ({"context": []}, -32602),
        ({"requestState": 5}, -32602),
        ({"requestState": "forged"}, -32602),
        ({"requestState": ""}, -32602),
        ({"requestState": "\U0001f600"}, -32602),
        ({"requestState": "a" * 1_000_000}, -32602),
        ({"inputResponses": None}, -32602),
        ({"inputResponses": {"user_name": "Ada"}}, -32602),
    ],
)
def test_a_bad_call_is_400_with_its_code_and_leaves_nothing(
    served: Served, shared_database: str, changes: dict[str, Any], code: int
) -> None:
    before = rows(shared_database)
    response = post(served.url, "tools/call", **{**GREETER, **changes})
    assert response.status_code == 400
    assert error(response)["code"] == code
    assert response.json()["id"] == 1
    assert rows(shared_database) == before


def test_an_unsupported_version_is_told_the_list_that_discover_gives(served: Served) -> None:
    response = post(
        served.url,
        "server/discover",
        _meta={**META, VERSION_KEY: "2099-01-01"},
        headers={"MCP-Protocol-Version": "2099-01-01"},
    )
    assert error(response)["data"] == {"supported": list(SUPPORTED), "requested": "2099-01-01"}
    discovered = result(post(served.url, "server/discover"))
    assert discovered["supportedVersions"] == list(SUPPORTED)


def test_a_body_that_is_not_json_is_400_without_an_id(served: Served) -> None:
    headers = {"MCP-Protocol-Version": LATEST, "Content-Type": "application/json"}
    response = httpx.post(served.url, headers=headers, content=b"{")
    assert (response.status_code, error(response)["code"]) == (400, -32700)
    assert "id" not in response.json()


def test_another_media_type_is_415_with_the_id(served: Served) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping"}).encode()
    response = httpx.post(served.url, headers={"Content-Type": "text/plain"}, content=body)
    assert (response.status_code, response.json()["id"]) == (415, 7)


@pytest.mark.parametrize("size", [4 * 1024 * 1024 + 1, 12_000_000, 40_000_000])
def test_a_body_that_is_too_large_is_413_and_the_client_gets_to_read_it(
    served: Served, size: int
) -> None:
    headers = {"MCP-Protocol-Version": LATEST, "Content-Type": "application/json"}
    chunks = (b" " * 65536 for _ in range(size // 65536 + 1))
    announced = {"Content-Length": str((size // 65536 + 1) * 65536)} if size < 15_000_000 else {}
    response = httpx.post(served.url, headers={**headers, **announced}, content=chunks)
    assert response.status_code == 413
    assert error(response)["code"] == -32600


@pytest.mark.parametrize(
    "method",
    ["GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "PROPFIND"],
)
def test_other_http_methods_are_405_at_once(served: Served, method: str) -> None:
    response = httpx.request(method, served.url, headers={"Accept": "text/event-stream"})
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    if method != "HEAD":
        assert error(response)["code"] == -32600


def test_a_notification_is_202_without_a_body(served: Served) -> None:
    for headers in ({}, {"MCP-Protocol-Version": LATEST}, {"MCP-Protocol-Version": "2025-11-25"}):
        body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        response = httpx.post(served.url, headers=headers, json=body)
        assert (response.status_code, response.content) == (202, b"")


@pytest.mark.parametrize("headers", [{}, {"MCP-Protocol-Version": "2025-03-26"}])
def test_a_batch_is_refused_and_nothing_of_it_runs(served: Served, headers: dict[str, str]) -> None:
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}]
    response = httpx.post(served.url, headers=headers, json=batch)
    assert (response.status_code, error(response)["code"]) == (200, -32600)


def test_another_path_says_where_the_endpoint_is(served: Served) -> None:
    response = httpx.post(served.url.removesuffix("/mcp"), json={})
    assert response.status_code == 404
    assert "/mcp" in error(response)["message"]


@pytest.mark.anyio
async def test_a_fault_of_ours_at_another_path_has_a_correlation_id_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "langgraph.json").write_text("{")
    transport = httpx.ASGITransport(build(Resources(Settings(config=tmp_path / "langgraph.json"))))
    async with httpx.AsyncClient(transport=transport) as client:
        response = await client.get("http://localhost/.well-known/oauth-protected-resource/mcp")
    correlation = error(response)["data"]["correlationId"]
    assert len(correlation) == 16
    assert correlation in caplog.text


def test_the_process_says_that_it_is_alive(served: Served) -> None:
    response = httpx.get(served.url.removesuffix("mcp") + "healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


# Header values with blanks, which HTTP libraries clean before they send.


def test_blanks_around_header_values_do_not_count(served: Served) -> None:
    params = {"name": "echo", "arguments": {"message": "a"}, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    head = [
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        "content-type:   application/json  ",
        f"mcp-protocol-version:\t{LATEST} \t",
        "MCP-METHOD: tools/call  ",
        "mcp-name:  echo  ",
    ]
    answer = exchange(served.url, head, json.dumps(body).encode())
    assert answer.startswith("HTTP/1.1 200 ")
    assert '{\\"echo\\":\\"a\\"}' in answer


# Host and Origin.


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8000"])
def test_serve_answers_to_local_names(served: Served, host: str) -> None:
    assert post(served.url, "server/discover", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example.com", "localhost.evil.example.com"])
def test_serve_answers_to_no_other_name(served: Served, host: str) -> None:
    response = post(served.url, "server/discover", headers={"Host": host})
    assert response.status_code == 421
    assert "INTERMEZZO_ALLOWED_HOSTS" in error(response)["message"]


def test_a_page_from_elsewhere_may_not_call(served: Served) -> None:
    foreign = {"Origin": "https://evil.example.com"}
    assert post(served.url, "server/discover", headers=foreign).status_code == 403
    local = {"Origin": "http://localhost:5173"}
    assert post(served.url, "server/discover", headers=local).status_code == 200


def test_hosts_and_origins_are_settings(shared_database: str) -> None:
    environ = {
        "INTERMEZZO_ALLOWED_HOSTS": "*",
        "INTERMEZZO_ALLOWED_ORIGINS": "https://app.example.com",
        "INTERMEZZO_MAX_BODY_BYTES": "1000",
    }
    with serving(shared_database, environ=environ) as served:
        anywhere = {"Host": "anything.example"}
        assert post(served.url, "server/discover", headers=anywhere).status_code == 200
        allowed = {"Origin": "https://app.example.com"}
        assert post(served.url, "server/discover", headers=allowed).status_code == 200
        local = {"Origin": "http://localhost"}
        assert post(served.url, "server/discover", headers=local).status_code == 403
        assert post(served.url, "server/discover", padding="a" * 1000).status_code == 413


# Faults of ours, and clients that leave.


class Broken(Resources):
    """Resources in which something is missing that no request can be answered without."""

    @property
    def endpoint(self) -> Endpoint:  # pyright: ignore[reportIncompatibleVariableOverride] # raises
        raise RuntimeError("the password is hunter2")


@pytest.mark.anyio
@pytest.mark.parametrize("modern", [True, False])
async def test_an_unforeseen_fault_is_told_by_a_correlation_id_alone(
    caplog: pytest.LogCaptureFixture, modern: bool
) -> None:
    transport = httpx.ASGITransport(build(Broken(Settings())))
    headers = {"MCP-Protocol-Version": LATEST, "Mcp-Method": "tools/list"} if modern else {}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": META}}
    async with httpx.AsyncClient(transport=transport) as client:
        response = await client.post("http://localhost/mcp", headers=headers, json=body)
    assert (response.status_code, response.json()["id"]) == (200, 7)
    told = error(response)
    assert (told["code"], told["message"]) == (-32603, "Internal error")
    assert "hunter2" not in response.text
    assert told["data"]["correlationId"] in caplog.text
    assert "hunter2" in caplog.text


PATIENT = """
import asyncio
from pathlib import Path
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

class State(TypedDict):
    folder: str

async def wait(state: State) -> State:
    Path(state["folder"], "started").touch()
    try:
        await asyncio.Event().wait()
    finally:
        Path(state["folder"], "stopped").touch()

graph = StateGraph(State).add_node(wait).add_edge(START, "wait").compile()
"""


def test_a_first_call_whose_client_hangs_up_is_stopped(
    shared_database: str, tmp_path: Path
) -> None:
    (tmp_path / "patient.py").write_text(PATIENT)
    config = tmp_path / "langgraph.json"
    config.write_text('{"graphs": {"patient": "./patient.py:graph"}}')
    params = {"name": "patient", "arguments": {"folder": str(tmp_path)}, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with serving(shared_database, config=config) as served:
        with connect(served.url) as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            wait_for(tmp_path / "started")
            assert not (tmp_path / "stopped").exists()
        wait_for(tmp_path / "stopped")
        assert result(post(served.url, "tools/list"))["tools"]
        (left,) = [line for line in served.log().splitlines() if "abandoned" in line]
        assert '"agent": "patient"' in left
