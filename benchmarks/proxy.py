"""A proxy in front of PostgreSQL that makes the way there longer, and counts what goes over it.

Each direction of a connection has a thread that reads and one that writes, so that what comes in
quick succession is delayed alike and not one after another.
"""

import queue
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from psycopg.conninfo import conninfo_to_dict, make_conninfo

_HEADER = 5
"""Bytes: what a message is, and how long it is without that."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Statements executed, and waits for the network."""

    statements: int = 0
    trips: int = 0


@dataclass(slots=True)
class Traffic:
    """What went over the connections of a proxy."""

    conninfo: str
    statements: int = 0
    trips: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def taken(self) -> Counts:
        """What went over since this was last asked."""
        with self.lock:
            counts = Counts(self.statements, self.trips)
            self.statements = self.trips = 0
        return counts


@contextmanager
def proxy(database: str, *, delay: float = 0.0) -> Generator[Traffic]:
    """A way to the database that takes longer by so many seconds there and back."""
    given = conninfo_to_dict(database)
    target = f"{given['host']}/.s.PGSQL.{given.get('port', 5432)}"
    with TemporaryDirectory(prefix="proxy-") as folder:
        traffic = Traffic(make_conninfo(database, host=folder, port=5432))
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(Path(folder, ".s.PGSQL.5432")))
            listening.listen(64)
            threading.Thread(
                target=_accept, args=(listening, target, traffic, delay), daemon=True
            ).start()
            yield traffic
            listening.shutdown(socket.SHUT_RDWR)


def _accept(listening: socket.socket, target: str, traffic: Traffic, delay: float) -> None:
    with suppress(OSError):
        while True:
            client, _ = listening.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(target)
            counting = _Counting(traffic)
            _pass_on(client, server, delay, counting.sent)
            _pass_on(server, client, 0.0, counting.received)


class _Counting:
    """Reads one connection's messages as far as counting them takes."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._server_spoke = True
        self._buffer = bytearray()
        self._started = False

    def sent(self, data: bytes) -> None:
        """The client spoke: after the server has, that is another wait."""
        with self._traffic.lock:
            self._traffic.trips += self._server_spoke
            self._traffic.statements += self._statements(data)
        self._server_spoke = False

    def received(self, data: bytes) -> None:
        self._server_spoke = True

    def _statements(self, data: bytes) -> int:
        self._buffer += data
        found = 0
        while len(self._buffer) >= _HEADER:
            # The first message of a connection has no letter.
            letter = 1 if self._started else 0
            size = letter + int.from_bytes(self._buffer[letter : letter + 4])
            if len(self._buffer) < size:
                break
            found += bool(letter) and self._buffer[0] in b"QE"
            self._started = True
            del self._buffer[:size]
        return found


def _pass_on(
    source: socket.socket, sink: socket.socket, delay: float, seen: Callable[[bytes], None]
) -> None:
    waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

    def read() -> None:
        data = b"..."
        with suppress(OSError):
            while data:
                data = source.recv(1 << 16)
                seen(data)
                waiting.put((time.perf_counter() + delay, data))
        waiting.put((0.0, b""))

    def write() -> None:
        with suppress(OSError):
            while True:
                due, data = waiting.get()
                if not data:
                    break
                if (left := due - time.perf_counter()) > 0:
                    time.sleep(left)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    for each in (read, write):
        threading.Thread(target=each, daemon=True).start()
