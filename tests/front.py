"""One address in front of several served processes, as a load balancer gives them.

Requests that come one after another go to the processes in turn, calls counted by themselves: two
rounds of a call meet two processes, whatever a client asks in between. Nothing is read but a
request's head, and bytes pass as they come, so that streams stream and a client that hangs up is
noticed behind it.
"""

import asyncio
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit


@dataclass(frozen=True, slots=True)
class Front:
    """The address, and which process each call went to, in order."""

    url: str
    calls: list[int] = field(default_factory=list[int])


@contextmanager
def round_robin(*urls: str) -> Generator[Front]:
    """One URL for all of these, until the block ends."""
    loop = asyncio.new_event_loop()
    balancer = _Balancer([urlsplit(url).netloc for url in urls])
    listening = loop.run_until_complete(asyncio.start_server(balancer.serve, "127.0.0.1", 0))
    port = listening.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        address = urlsplit(urls[0])._replace(netloc=f"127.0.0.1:{port}")
        yield Front(urlunsplit(address), balancer.calls)
    finally:
        asyncio.run_coroutine_threadsafe(balancer.close(listening), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


class _Balancer:
    def __init__(self, backends: Sequence[str]) -> None:
        self.calls: list[int] = []
        self._backends = backends
        self._others = 0
        self._serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._pass_on(reader, writer)
        writer.close()

    async def close(self, listening: asyncio.Server) -> None:
        listening.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        host, _, port = self._next(head).rpartition(":")
        backend_reader, backend_writer = await asyncio.open_connection(host, int(port))
        backend_writer.write(_closing(head))
        ways = [
            asyncio.create_task(_copy(reader, backend_writer)),
            asyncio.create_task(_copy(backend_reader, writer)),
        ]
        try:
            # Whoever hangs up first, the other one is hung up on.
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            backend_writer.close()

    def _next(self, head: bytes) -> str:
        # An older client names no method in a header: all its requests are one row.
        if b"mcp-method: tools/call" in head.lower():
            self.calls.append(len(self.calls) % len(self._backends))
            return self._backends[self.calls[-1]]
        self._others += 1
        return self._backends[self._others % len(self._backends)]


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


def _closing(head: bytes) -> bytes:
    """The head of a request after which the connection ends: the next one starts a new turn."""
    first, *fields = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [
        each for each in fields if not each.lower().startswith((b"connection:", b"keep-alive:"))
    ]
    return b"\r\n".join((first, *kept, b"Connection: close", b"", b""))
