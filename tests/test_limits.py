"""The bounds of one process, over HTTP: answers to what is too much are JSON-RPC errors."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conversation import AGENTS
from tests.processes import wait_for
from tests.served import Served, error, post, result, serving


def test_a_call_that_finds_no_turn_is_told_to_come_again_and_a_list_needs_none(
    database: str, tmp_path: Path
) -> None:
    environ = {"INTERMEZZO_MAX_CONCURRENT_RUNS": "1", "INTERMEZZO_CALL_TIMEOUT": "8"}
    call = {"name": "done", "arguments": {"journal": str(tmp_path)}}
    (tmp_path / "hold-work").touch()
    with serving(database, config=AGENTS, environ=environ) as served, ThreadPoolExecutor() as pool:
        first = pool.submit(post, served.url, "tools/call", **call)
        wait_for(tmp_path / "held-work")
        turned_away = post(served.url, "tools/call", id=9, **call)
        assert turned_away.status_code == 200
        assert turned_away.json()["id"] == 9
        assert error(turned_away)["code"] == 1001
        assert error(turned_away)["data"]["retryAfterMs"] > 0
        assert result(post(served.url, "tools/list"))["tools"]
        (tmp_path / "hold-work").unlink()
        assert not result(first.result()).get("isError")
        assert not result(post(served.url, "tools/call", **call)).get("isError")
    assert (tmp_path / "ran").read_text().split() == ["work", "work"]


HEAD = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def spoken(url: str, *parts: bytes) -> bytes:
    """What the server says to these bytes until it ends the connection."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        with suppress(ConnectionError):
            for part in parts:
                connection.sendall(part)
        said = b""
        with suppress(ConnectionError):
            while part := connection.recv(65536):
                said += part
        return said


def test_a_body_that_does_not_come_in_time_is_408_and_the_connection_ends(database: str) -> None:
    with serving(database, environ={"INTERMEZZO_CALL_TIMEOUT": "1"}) as served:
        began = time.monotonic()
        said = spoken(served.url, f"{HEAD}Content-Length: 100\r\n\r\n".encode(), b'{"jsonrpc"')
        assert 1 <= time.monotonic() - began < 10
        assert said.startswith(b"HTTP/1.1 408 ")
        assert b'"error":{"code":-32600' in said


@pytest.mark.parametrize(
    "head",
    [
        f"{HEAD}X: ",
        f"{HEAD}",
        "POST /mcp?",
        f"{HEAD}Transfer-Encoding: chunked\r\n\r\n1;",
        f"{HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n0\r\nX: ",
    ],
    ids=["header", "headers", "address", "chunk", "trailer"],
)
def test_header_fields_without_end_are_not_kept(served: Served, head: str) -> None:
    line = b"a: b\r\n" if head == HEAD else b"a" * 6
    said = spoken(served.url, head.encode(), *([line * 10_000] * 100))
    assert said.startswith(b"HTTP/1.1 400 ") or not said  # it may close before that is read
    assert b"200 OK" not in said
    assert result(post(served.url, "tools/list"))["tools"]


def test_header_fields_of_some_size_are_fine(served: Served) -> None:
    assert result(post(served.url, "tools/list", headers={"X": "x" * 30_000}))["tools"]
