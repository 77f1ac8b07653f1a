"""A pooler in transaction mode, as PgBouncer and RDS Proxy are: few sessions for many clients.

Each transaction goes to the session that has rested longest, so that a client meets another one at
every turn. What a client leaves in a session (a prepared statement, a setting, a lock) is somebody
else's at the next transaction, and is not where the client looks for it.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.faults import Lines, read_message

_KNOWN = {"user", "database", "client_encoding", "application_name"}
"""What a client may ask for when it connects; poolers refuse the rest."""


@dataclass(slots=True)
class _Session:
    """One session of the server."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@dataclass(slots=True)
class _Client:
    """One client, and the session that its transaction is in."""

    resting: "asyncio.Queue[_Session]"
    writer: asyncio.StreamWriter | None
    went_to: list[int] = field(default_factory=list[int])
    session: _Session | None = None
    unanswered: int = 0
    answering: "asyncio.Task[None] | None" = None

    async def send(self, kind: bytes, message: bytes) -> None:
        if self.session is None:
            self.session = await self.resting.get()
            self.went_to.append(self.session.number)
            self.answering = asyncio.create_task(self._answer(self.session))
        self.unanswered += kind in b"SQ"
        self.session.writer.write(message)

    async def _answer(self, session: _Session) -> None:
        """Pass answers on until the transaction is over; then the session is for anybody."""
        while True:
            kind, message = await read_message(session.reader)
            self.unanswered -= kind == b"Z"
            over = message == b"Z\0\0\0\x05I" and not self.unanswered
            if over:
                self.session = None
                self.resting.put_nowait(session)
            if self.writer is not None:
                self.writer.write(message)
            if over:
                return

    async def leave(self) -> None:
        """End what a client that has gone began."""
        self.writer = None
        if self.session is not None:
            await self.send(b"Q", b"Q\0\0\0\rROLLBACK\0")
        if self.answering is not None:
            await self.answering


@dataclass(slots=True)
class Pooler:
    """The pooler.

    Attributes:
        served: for each client that came, the sessions that its transactions went to.
    """

    conninfo: str
    _target: str
    _startup: bytes
    _size: int
    served: list[list[int]] = field(default_factory=list[list[int]])
    _resting: asyncio.Queue[_Session] = field(default_factory=asyncio.Queue["_Session"])
    _sessions: list[_Session] = field(default_factory=list[_Session])
    _greeting: bytes = b""
    _serving: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def open(self) -> None:
        for number in range(self._size):
            reader, writer = await asyncio.open_unix_connection(self._target)
            writer.write(self._startup)
            greeting = b""
            while not greeting.endswith(b"Z\0\0\0\x05I"):
                greeting += (await read_message(reader))[1]
            self._greeting = greeting
            self._sessions.append(_Session(number, reader, writer))
            self._resting.put_nowait(self._sessions[-1])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._talk(reader, writer)
        finally:
            self._serving.discard(task)
            writer.transport.abort()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        length = int.from_bytes(await reader.readexactly(4))
        words = (await reader.readexactly(length - 4))[4:].decode().split("\0")
        unknown = set(words[:-2:2]) - _KNOWN
        assert not unknown, f"unsupported startup parameters: {unknown}"
        writer.write(self._greeting)
        client = _Client(self._resting, writer)
        self.served.append(client.went_to)
        try:
            while True:
                kind, message = await read_message(reader)
                if kind == b"X":
                    return
                await client.send(kind, message)
        finally:
            await client.leave()

    async def close(self) -> None:
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        for session in self._sessions:
            session.writer.transport.abort()


@contextmanager
def pooling(lines: Lines, database: str, *, sessions: int = 2) -> Generator[Pooler]:
    """A pooler with so many sessions in front of a database, until the block ends."""
    given = conninfo_to_dict(database)
    folder = tempfile.mkdtemp(prefix="pool-")  # a socket's path must be short
    startup = f"user\0{given['user']}\0database\0{given['dbname']}\0\0".encode()
    pooler = Pooler(
        make_conninfo(database, host=folder, port=5432),
        f"{given['host']}/.s.PGSQL.{given.get('port', 5432)}",
        (len(startup) + 8).to_bytes(4) + (3 << 16).to_bytes(4) + startup,
        sessions,
    )

    async def start() -> asyncio.Server:
        await pooler.open()
        return await asyncio.start_unix_server(pooler.serve, str(Path(folder, ".s.PGSQL.5432")))

    server = asyncio.run_coroutine_threadsafe(start(), lines.loop).result(10)
    try:
        yield pooler
    finally:
        lines.loop.call_soon_threadsafe(server.close)
        asyncio.run_coroutine_threadsafe(pooler.close(), lines.loop).result(10)
        shutil.rmtree(folder)
