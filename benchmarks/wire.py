"""HTTP requests as bytes, and a connection that does no more than it must.

Written for one purpose: what it costs to send a request and read its answer must not show in what
is measured. Every server here answers with a `Content-Length` and keeps the connection.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, cast
from urllib.parse import urlsplit

from core.protocol import CAPABILITIES_KEY, LATEST, VERSION_KEY

META: Mapping[str, Any] = {
    VERSION_KEY: LATEST,
    CAPABILITIES_KEY: {"elicitation": {"form": {}, "url": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "benchmarks", "version": "1"},
}


@dataclass(frozen=True, slots=True)
class Request:
    """One MCP request of the newest revision."""

    method: str
    params: Mapping[str, Any]

    def encoded(self, authority: str) -> bytes:
        """The whole HTTP request."""
        message = {"jsonrpc": "2.0", "id": 1, "method": self.method}
        body = json.dumps({**message, "params": {"_meta": META, **self.params}}).encode()
        name = f"Mcp-Name: {self.params['name']}\r\n" if "name" in self.params else ""
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: {authority}\r\n"
            "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
            f"MCP-Protocol-Version: {LATEST}\r\nMcp-Method: {self.method}\r\n{name}"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the HTTP status and the JSON-RPC message."""

    status: int
    message: dict[str, Any]


class Connection(asyncio.Protocol):
    """One kept connection, with one request on it at a time."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._waiting: asyncio.Future[Answer] | None = None
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect to the host and port of a URL."""
        host, _, port = urlsplit(url).netloc.rpartition(":")
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, host, int(port))
        return connection

    def ask(self, request: bytes) -> asyncio.Future[Answer]:
        """Send a request; the future is its answer."""
        assert self._transport is not None
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waiting

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if not end or len(rest) < (length := _length(head)):
            return
        answer = Answer(int(head[9:12]), json.loads(rest[:length]))
        self._received = rest[length:]
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(exc or ConnectionError("the server hung up"))


def _length(head: bytearray) -> int:
    _, _, after = head.lower().partition(b"content-length:")
    return int(after.partition(b"\r\n")[0])
