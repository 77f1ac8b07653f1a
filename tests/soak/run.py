"""One soak, and what came of it."""

import asyncio
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg

from core.store import Store
from core.sweeper import sweep
from tests.agents.soaked import NODES
from tests.clock import move
from tests.soak.clients import Clients
from tests.soak.servers import POOL, Servers
from tests.tables import rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a soak.

    Attributes:
        doubled: nodes that ran again though the process that ran them before lived on.
        repeated: nodes that ran again because their process was killed before they were stored.
        growth: how much more memory the processes that lived through it held at its end than after
            a third of it, in MiB.
        left: rows that were there once everything had expired and was swept.
        bloat: bytes of all tables for each call that was stored, and the share of dead rows.
    """

    seconds: float
    calls: int
    requests: int
    lost: list[str]
    doubled: list[str]
    repeated: int
    faults: dict[str, int]
    told: dict[str, int]
    errors: int
    p50: float
    p99: float
    longest: float
    peak: float
    growth: float
    connections: int
    left: int
    bloat: tuple[float, float]

    def __str__(self) -> str:
        lines = {
            "calls": f"{self.calls} of two rounds in {self.seconds:.0f} s,"
            f" {self.requests} answers ({self.requests / self.seconds:.0f}/s)",
            "faults": ", ".join(f"{count} {name}" for name, count in self.faults.items()),
            "sent again": ", ".join(f"{count} {why}" for why, count in self.told.items()) or "none",
            "lost": f"{len(self.lost)} {' | '.join(self.lost[:5])}",
            "doubled": f"{len(self.doubled)} {' | '.join(self.doubled[:5])}",
            "run again": f"{self.repeated}, after their process was killed",
            "errors": f"{self.errors} of ours",
            "latency": f"p50 {self.p50 * 1000:.0f} ms, p99 {self.p99 * 1000:.0f} ms,"
            f" longest {self.longest:.1f} s",
            "memory": f"peak {self.peak:.0f} MiB a process, grown by {self.growth:.1f} MiB",
            "connections": f"{self.connections} at most",
            "rows left": f"{self.left}",
            "tables": f"{self.bloat[0]:.0f} bytes a call, {self.bloat[1]:.0%} dead rows",
        }
        return "\n".join(f"{name:12} {text}" for name, text in lines.items())


async def soak(
    database: str, *, seconds: float, clients: int, processes: int = 2, kill_every: float
) -> Outcome:
    """Hold the endpoint under load and faults for so long."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes")
        servers = Servers(database)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=clients)
        try:
            await servers.start(processes)
            async with httpx.AsyncClient(timeout=60, limits=limits) as http:
                held = Clients(servers, str(notes), http)
                working = [
                    asyncio.create_task(held.work(f"client{number}")) for number in range(clients)
                ]
                watch = Watch(servers)
                await watch.trouble(seconds, kill_every)
                held.stop = True
                await asyncio.gather(*working)
            doubled, repeated = judged(notes, servers.killed)
            bloat = await asyncio.to_thread(_bloat, database, len(held.ended))
            times = sorted(held.times)
            return Outcome(
                seconds=seconds,
                calls=len(held.ended),
                requests=len(times),
                lost=held.lost + missing(notes, held.ended),
                doubled=doubled,
                repeated=repeated,
                faults=dict(watch.faults),
                told=dict(held.told),
                errors=servers.faults_told(),
                p50=times[len(times) // 2],
                p99=times[len(times) * 99 // 100],
                longest=times[-1],
                peak=servers.peak,
                growth=watch.growth(),
                connections=watch.connections,
                left=await _left(database),
                bloat=bloat,
            )
        finally:
            servers.close()


class Watch:
    """Makes trouble, and looks at the processes meanwhile."""

    def __init__(self, servers: Servers) -> None:
        self.faults: Counter[str] = Counter()
        self.connections = 0
        self._servers = servers
        self._held: list[tuple[float, dict[int, float]]] = []

    async def trouble(self, seconds: float, kill_every: float) -> None:
        started = time.monotonic()
        kill_at = started + kill_every
        while (now := time.monotonic()) < started + seconds:
            await asyncio.sleep(random.uniform(0.3, 1.0))
            self._look(now - started)
            cut = await asyncio.to_thread(self._servers.cut_connections)
            self.faults["connections cut"] += cut
            if now > kill_at:
                kill_at = now + kill_every
                await self._servers.kill_one()
                self.faults["processes killed"] += 1
        self._look(seconds)

    def _look(self, at: float) -> None:
        pids = [served.process.pid for served in self._servers.serving]
        self._held.append((at, dict(zip(pids, self._servers.measure(), strict=True))))
        self.connections = max(self.connections, self._servers.connections())

    def growth(self) -> float:
        """Of the process that lived longest, from a third of its life to its end."""
        last = self._held[-1][1]
        grown: list[float] = []
        for pid, held in last.items():
            life = [each[pid] for _, each in self._held if pid in each]
            if len(life) >= 6:
                grown.append(held - life[len(life) // 3])
        return max(grown, default=0.0)


def judged(notes: Path, killed: set[int]) -> tuple[list[str], int]:
    """The nodes that ran twice without a reason, and how many had one."""
    before: dict[tuple[str, str], int] = {}
    doubled: list[str] = []
    repeated = 0
    for line in notes.read_text("utf-8").splitlines():
        call, node, pid = line.split()
        last = before.get((call, node))
        if last is not None and last in killed:
            repeated += 1
        elif last is not None:
            doubled.append(f"{call} {node}")
        before[call, node] = int(pid)
    return doubled, repeated


def missing(notes: Path, ended: list[str]) -> list[str]:
    """The nodes of calls that ended which nobody ran."""
    ran = {tuple(line.split()[:2]) for line in notes.read_text("utf-8").splitlines()}
    return [
        f"{call}: {node} never ran" for call in ended for node in NODES if (call, node) not in ran
    ]


def _bloat(database: str, calls: int) -> tuple[float, float]:
    with psycopg.connect(database) as connection:
        row = connection.execute(
            "SELECT sum(pg_total_relation_size(relid))::float,"
            " sum(n_dead_tup)::float / greatest(sum(n_live_tup + n_dead_tup), 1)"
            " FROM pg_stat_user_tables"
        ).fetchone()
    assert row is not None
    return row[0] / max(calls, 1), row[1]


async def _left(database: str) -> int:
    await asyncio.to_thread(move, database, seconds=25 * 3600)
    store = Store(database)
    try:
        await sweep(store)
    finally:
        await store.close()
    return sum(rows(database).values())


def connections_at_most(processes: int) -> int:
    """What the database must allow for: each process has its pool and the one that renews claims,
    and a session that was cut lives on for a moment beside the one that replaces it."""
    return processes * (POOL + 1) * 2
