"""A proxy in front of PostgreSQL that does something at a chosen statement.

It reads the protocol, so that a statement (all that is sent up to one answer) is stopped before the
server has a byte of it, or after the server has done it and before the client knows. A connection
that is cut is really cut; a client that is cut off for good finds nobody who answers.
"""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

When = Literal["before", "after"]

Act = Callable[[], Awaitable[bool]]
"""What happens at the statement; whether the connection lives on."""

_NAMES = (
    ("pause", "intermezzo_pause("),
    ("claim", "intermezzo_claim("),
    ("flush", "intermezzo_flush("),
    ("settle", "intermezzo_settle("),
    ("settle", "intermezzo_next("),
    ("reopen", "SET state = 'asked', claim = NULL"),
    ("lapse", "SET claimed_until = '-infinity'"),
    ("release", "SET state = CASE"),
    ("renew", "claimed_until = {}intermezzo_now() + "),
    ("ask", "SET state = 'asked'"),
)


@dataclass(slots=True)
class Fault:
    """Something that happens once, at the nth statement from now, or the nth of that name."""

    number: int
    when: When
    act: Act
    name: str = ""
    happened: bool = False


@dataclass(slots=True)
class Line:
    """The line from one client to the database.

    Attributes:
        statements: the names of the statements that went over it.
        down: nobody answers a new connection.
        refused: how many connections found nobody.
    """

    conninfo: str
    loop: asyncio.AbstractEventLoop
    _target: str
    statements: list[str] = field(default_factory=list[str])
    down: bool = False
    refused: int = 0
    _fault: Fault | None = None
    _open: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])
    _serving: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def at(self, number: int, when: When, act: Act) -> Fault:
        """Let something happen at the nth statement from now, and at no other."""
        self._fault = Fault(number, when, act)
        return self._fault

    def at_named(self, name: str, number: int, when: When, act: Act) -> Fault:
        """Let something happen at the nth statement of that name."""
        self._fault = Fault(number, when, act, name)
        return self._fault

    def calm(self) -> None:
        """Let nothing happen any more."""
        self._fault = None

    def taken(self) -> list[str]:
        """The statements since this was last asked."""
        taken, self.statements = self.statements, []
        return taken

    def go_down(self) -> None:
        """Cut every connection, and answer no new one."""
        asyncio.run_coroutine_threadsafe(self.cut_off(), self.loop).result(10)

    async def cut(self) -> bool:
        """An act: this connection ends."""
        return False

    async def swallow(self) -> bool:
        """An act: nothing comes over this connection any more, and nobody says so."""
        await asyncio.Event().wait()
        return False

    async def cut_off(self) -> bool:
        """An act: every connection ends, and no new one is answered."""
        self.down = True
        for writer in list(self._open):
            writer.transport.abort()
        return False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._open.add(writer)
        try:
            if self.down:
                self.refused += 1
            else:
                with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    await self._pass_on(reader, writer)
        finally:
            self._open.discard(writer)
            self._serving.discard(task)
            writer.transport.abort()

    async def close(self) -> None:
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(self._target)
        try:
            length = await reader.readexactly(4)
            server_writer.write(length + await reader.readexactly(int.from_bytes(length) - 4))
            connection = _Connection(self, reader, writer, server_reader, server_writer)
            ways = [
                asyncio.create_task(connection.to_server()),
                asyncio.create_task(connection.to_client()),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            server_writer.transport.abort()

    def next_fault(self, name: str) -> Fault | None:
        """What happens at this statement."""
        self.statements.append(name)
        fault = self._fault
        if fault is None or fault.name not in ("", name):
            return None
        fault.number -= 1
        if fault.number:
            return None
        self._fault = None
        fault.happened = True
        return fault


@dataclass(slots=True)
class _Connection:
    line: Line
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    server_reader: asyncio.StreamReader
    server_writer: asyncio.StreamWriter
    after: Fault | None = None

    async def to_server(self) -> None:
        batch, name = bytearray(), ""
        while True:
            kind, message = await read_message(self.reader)
            batch += message
            if kind in b"PQ":
                name = name or _name(message)
            if kind in b"SQ" and (fault := self.line.next_fault(name)) is not None:
                if fault.when == "after":
                    self.after = fault
                elif not await fault.act():
                    return
            if kind in b"SQHX":
                self.server_writer.write(batch)
                await self.server_writer.drain()
                batch.clear()
            if kind in b"SQ":
                name = ""

    async def to_client(self) -> None:
        held = bytearray()
        while True:
            kind, message = await read_message(self.server_reader)
            held += message
            if self.after is not None:
                if kind != b"Z":
                    continue
                fault, self.after = self.after, None
                if not await fault.act():
                    return
            self.writer.write(held)
            await self.writer.drain()
            held.clear()


async def read_message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """One message of the protocol: its kind, and all of it."""
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(int.from_bytes(head[1:]) - 4)


def _name(message: bytes) -> str:
    """What the store calls a statement; its text when it has no name."""
    text = " ".join(message[5:].decode("utf-8", "replace").split("\0"))
    plain = text.replace('"public".', "").strip()
    return next((n for n, mark in _NAMES if mark.replace("{}", "") in plain), plain)


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that are served by a thread of their own, so that a blocked client blocks none."""

    loop: asyncio.AbstractEventLoop

    @contextmanager
    def to(self, database: str) -> Generator[Line]:
        """A line to a database, until the block ends."""
        given = conninfo_to_dict(database)
        folder = tempfile.mkdtemp(prefix="line-")  # a socket's path must be short
        target = f"{given['host']}/.s.PGSQL.{given.get('port', 5432)}"
        line = Line(make_conninfo(database, host=folder, port=5432), self.loop, target)
        starting = asyncio.start_unix_server(line.serve, str(Path(folder, ".s.PGSQL.5432")))
        server = asyncio.run_coroutine_threadsafe(starting, self.loop).result(10)
        try:
            yield line
        finally:
            self.loop.call_soon_threadsafe(server.close)
            asyncio.run_coroutine_threadsafe(line.close(), self.loop).result(10)
            shutil.rmtree(folder)


@contextmanager
def serving_lines() -> Generator[Lines]:
    """A thread for lines, until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="lines")
    thread.start()
    try:
        yield Lines(loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture(scope="module")
def lines() -> Iterator[Lines]:
    """A thread for the lines of one file's tests."""
    with serving_lines() as serving:
        yield serving


@pytest.fixture
def line(lines: Lines, database: str) -> Iterator[Line]:
    """A line to the test's database."""
    with lines.to(database) as opened:
        yield opened
