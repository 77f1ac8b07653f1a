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
    "echo": (*SERVED, Name.LEAST, Name.FLOOR),
    "greeter": (*SERVED, Name.LEAST, Name.FLOOR),
    "four": SERVED,
    "pair": SERVED,
    "history": STORED,
    "replay": SERVED,
    "tools": SERVED,
    "discover": SERVED,
    "forged": SERVED,
}
"""Who is measured in which case: SDK and FastMCP hold no conversation, and the last two know two
agents."""

_DELAYED: Final = ("echo", "greeter", "four", "replay")

_FAR: Final = (*STORED, Name.LEAST)
"""Those for whom it matters how far the database is."""


def cells(cases: Iterable[str] = CASES) -> list[Cell]:
    """All of these cases, those next to each other that are compared with each other."""
    return [
        Cell(case=case, concurrency=concurrency, delayed=delayed, name=name)
        for case in cases
        for concurrency in CONCURRENCIES
        for delayed in ((False, True) if case in _DELAYED else (False,))
        for name in CASES[case]
        if not delayed or name in _FAR
    ]


def measure(database: str, *, chosen: list[Cell], turns: int, seconds: float) -> Throughput:
    """Run so many turns, each of so many seconds a cell."""
    measured = Throughput()
    for delayed in (False, True):
        cells = [cell for cell in chosen if cell.delayed is delayed]
        _measure(measured, database, cells, turns=turns, seconds=seconds)
    return Throughput({cell: measured.samples[cell] for cell in chosen}, measured.memory)


def _measure(
    measured: Throughput, database: str, cells: list[Cell], *, turns: int, seconds: float
) -> None:
    """All cells that have the database at one distance, whose servers run side by side."""
    with _started(database, cells) as (servers, load, floor):
        server = postmaster(database)
        for turn in range(turns):
            print(f"turn {turn + 1} of {turns}", file=sys.stderr)
            for cell in cells:
                at = servers.get(cell.name)
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
        for name, at in servers.items():
            measured.memory.setdefault(name, peak_memory(at.pid))


@contextmanager
def _started(
    database: str, cells: list[Cell]
) -> Generator[tuple[dict[Name, Server], Worker, Worker]]:
    with ExitStack() as stack:
        if any(cell.delayed for cell in cells):
            database = stack.enter_context(proxy(database, delay=DELAY)).conninfo
        names = dict.fromkeys(cell.name for cell in cells if cell.name is not Name.FLOOR)
        servers = {name: stack.enter_context(serving(name, database)) for name in names}
        load = stack.enter_context(working("benchmarks.load"))
        yield servers, load, stack.enter_context(working("benchmarks.floor"))
