"""The served processes of a soak: how many there are stays the same, though they are killed."""

import asyncio
import os
import random
import signal
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.served import CHECKOUT, Served, serving
from tests.sessions import connections

AGENTS = CHECKOUT / "tests" / "agents" / "soaked.json"

POOL = 4
"""Connections of a process."""


@dataclass(slots=True)
class Servers:
    """The processes.

    Attributes:
        killed: the ids of those that were killed.
        peak: the most memory that one of them ever held, in MiB.
    """

    database: str
    serving: list[Served] = field(default_factory=list[Served])
    killed: set[int] = field(default_factory=set[int])
    peak: float = 0.0
    _stacks: dict[int, ExitStack] = field(default_factory=dict[int, ExitStack])

    async def start(self, count: int) -> None:
        """Start so many more."""
        for served in await asyncio.gather(*(asyncio.to_thread(self._start) for _ in range(count))):
            self.serving.append(served)

    def _start(self) -> Served:
        stack = ExitStack()
        environ = {
            "INTERMEZZO_DATABASE_POOL_SIZE": f"{POOL}",
            "INTERMEZZO_SWEEP_INTERVAL": "5",
        }
        served = stack.enter_context(serving(self.database, config=AGENTS, environ=environ))
        self._stacks[served.process.pid] = stack
        return served

    def any(self) -> str:
        """Where to send a request."""
        return random.choice(self.serving).url

    async def kill_one(self) -> None:
        """Kill a process, see that it is dead, and start another."""
        served = self.serving.pop(random.randrange(len(self.serving)))
        self.killed.add(served.process.pid)
        self.measure()
        os.kill(served.process.pid, signal.SIGKILL)
        assert await asyncio.to_thread(served.process.wait, 10) == -signal.SIGKILL
        self._stacks.pop(served.process.pid).close()
        await self.start(1)

    def cut_connections(self) -> int:
        """End half of the sessions of the database, one at least, whatever they are doing."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            return len(
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM ("
                    "  SELECT pid, row_number() OVER (ORDER BY random()) AS place,"
                    "         count(*) OVER () AS sessions"
                    "  FROM pg_stat_activity"
                    "  WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    ") AS others WHERE place * 2 <= sessions + 1"
                ).fetchall()
            )

    def connections(self) -> int:
        """How many sessions the database has for them."""
        return connections(self.database)

    def measure(self) -> list[float]:
        """What each of them holds now, in MiB; their peaks are noted."""
        held: list[float] = []
        for served in self.serving:
            status = Path(f"/proc/{served.process.pid}/status").read_text("utf-8")
            fields = dict(line.split(":", 1) for line in status.splitlines())
            held.append(int(fields["VmRSS"].split()[0]) / 1024)
            self.peak = max(self.peak, int(fields["VmHWM"].split()[0]) / 1024)
        return held

    def faults_told(self) -> int:
        """How many errors of ours are in the logs of those that serve."""
        return sum(served.log().count("internal error") for served in self.serving)

    def close(self) -> None:
        for stack in self._stacks.values():
            stack.close()
