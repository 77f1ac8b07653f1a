"""Calls a second, latency, and CPU a call: every contestant in every case, in turns.

One turn goes through all of them once, so that whatever else the machine does falls on all alike;
each turn gives one ratio of two contestants, and their spread tells what a ratio is worth.
"""

import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from benchmarks.load import Result, Task
from benchmarks.proxy import proxy
from benchmarks.servers import SERVED, STORED, Name, Server, serving
from benchmarks.usage import cpu, family_cpu, peak_memory, postmaster
from benchmarks.workers import Worker, working

DELAY: Final = 0.001
"""Seconds to the database and back, where it is not on the same machine."""

MESSAGES: Final = 1000

CONCURRENCIES: Final = (1, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One contestant in one case."""

    case: str
    concurrency: int
    delayed: bool
    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One turn of one cell. CPU is in seconds a call."""

    result: Result
    cpu: float
    database_cpu: float

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.result.calls / self.result.seconds


@dataclass(frozen=True, slots=True)
class Throughput:
    """Everything that was measured; memory is in MiB, at its peak."""

    samples: dict[Cell, list[Sample]] = field(default_factory=dict[Cell, list[Sample]])
    memory: dict[Name, float] = field(default_factory=dict[Name, float])


CASES: Final[Mapping[str, tuple[Name, ...]]] = {
    "echo": (*SERVED, Name.FLOOR),
    "greeter": (*SERVED, Name.FLOOR),
    "four": SERVED,
    "pair": SERVED,
    "history": STORED,
    "replay": SERVED,
    "tools": SERVED,
    "discover": SERVED,
    "forged": SERVED,
}
"""Who is measured in which case: SDK and FastMCP hold no conversation, and only a graph has a
floor."""

_DELAYED: Final = ("echo", "greeter", "four", "replay")


def cells(cases: Iterable[str] = CASES) -> list[Cell]:
    """All of these cases, those next to each other that are compared with each other."""
    return [
        Cell(case=case, concurrency=concurrency, delayed=delayed, name=name)
        for case in cases
        for concurrency in CONCURRENCIES
        for delayed in ((False, True) if case in _DELAYED else (False,))
        for name in CASES[case]
        if not delayed or name in STORED
    ]


def measure(database: str, *, chosen: list[Cell], turns: int, seconds: float) -> Throughput:
    """Run so many turns, each of so many seconds a cell."""
    measured = Throughput()
    with _started(database) as (servers, load, floor):
        server = postmaster(database)
        for turn in range(turns):
            print(f"turn {turn + 1} of {turns}", file=sys.stderr)
            for cell in chosen:
                at = servers.get((cell.name, cell.delayed))
                worker, pid = (load, at.pid) if at else (floor, floor.pid)
                task = Task(
                    url=at.url if at else "",
                    case=cell.case,
                    size=MESSAGES,
                    concurrency=cell.concurrency,
                    seconds=seconds,
                )
                before, database_before = cpu(pid), family_cpu(server)
                result = worker.perform(task)
                used, database_used = cpu(pid) - before, family_cpu(server) - database_before
                sample = Sample(
                    result=result,
                    cpu=used / result.all,
                    database_cpu=database_used / result.all,
                )
                measured.samples.setdefault(cell, []).append(sample)
        for (name, delayed), at in servers.items():
            if not delayed:
                measured.memory[name] = peak_memory(at.pid)
    return measured


@contextmanager
def _started(
    database: str,
) -> Generator[tuple[dict[tuple[Name, bool], Server], Worker, Worker]]:
    with ExitStack() as stack:
        far = stack.enter_context(proxy(database, delay=DELAY)).conninfo
        servers = {
            (name, delayed): stack.enter_context(serving(name, far if delayed else database))
            for delayed in (False, True)
            for name in SERVED
            if not delayed or name in STORED
        }
        load = stack.enter_context(working("benchmarks.load"))
        yield servers, load, stack.enter_context(working("benchmarks.floor"))
