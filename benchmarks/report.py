"""`RESULTS.md`: what was measured, beside what was aimed at."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from benchmarks import cold, ratios
from benchmarks.growth import Growth
from benchmarks.ratios import Ratio
from benchmarks.servers import STORED, Name
from benchmarks.throughput import DELAY, MESSAGES, Cell, Throughput
from benchmarks.trips import Count

PICTURE: Final = "growth.png"

_TITLES: Final[Mapping[str, str]] = {
    "echo": "one round, no pause",
    "greeter": "two rounds",
    "four": "five rounds",
    "pair": "two questions at once",
    "history": f"two rounds, {MESSAGES} messages in the state",
    "replay": "the same answer again",
    "tools": "`tools/list`",
    "discover": "`server/discover`",
    "forged": "a forged request state",
}

_ABOUT: Final = """\
# What it costs, beside what a team would use instead

This file is written by `make bench`; its figures are of one run. All contestants run on the same
machine and are measured in turns of {seconds:g} s each, {turns} turns, over HTTP, with kept
connections and one process that generates the load. Every answer is checked. Ratios are of turns
that lie side by side, as median (least–greatest); calls a second depend on the machine, ratios
hardly.

{machine}

| | |
|---|---|
| Intermezzo | this endpoint as `python -m handler serve` starts it, with all checks on |
| hand-made | the official SDK, LangGraph and one `AsyncPostgresSaver` over a pool of 16 warmed \
connections, LangGraph's default durability ([source](contestants/handmade.py)) |
| hand-made, exit | the same with `durability="exit"`: a crash loses the round |
| SDK | the official SDK's `MCPServer` with its elicitation, no LangGraph, nothing stored \
([source](contestants/sdk.py)) |
| FastMCP | its documented guard pattern, no LangGraph, nothing stored, answers unchecked \
([source](contestants/fast.py)) |
| the least | bare ASGI, the same graph, its state as one value in one row, three statements for \
two rounds, nothing checked ([source](contestants/least.py)) |
| in process | the same graph with the in-memory saver, no HTTP, no checks |
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run."""

    machine: str
    turns: int
    seconds: float
    throughput: Throughput
    trips: Sequence[Count]
    cold: Mapping[str, Sequence[float]]
    growth: Growth


def report(run: Measured) -> str:
    """The whole file."""
    about = _ABOUT.format(machine=run.machine, turns=run.turns, seconds=run.seconds)
    parts = [
        about,
        "## Targets\n",
        "The last column is what the least reaches, which checks nothing. A target that it misses"
        " is beyond whatever runs this LangGraph in one process and keeps calls in PostgreSQL.\n",
        _table(("", "target", "measured", "", "the least"), _targets(run)),
        "## Calls a second\n",
        "CPU is milliseconds a call: in the server's process, and in PostgreSQL's processes.\n",
        _table(
            ("case", "at a time", "to the database", "", "calls/s", "p50 ms", "p99 ms", "CPU")
            + ("PostgreSQL", "ours is"),
            _rates(run.throughput),
        ),
        "## Where the CPU of a two-round call goes\n",
        "In the server's process, 16 at a time. The first two lines are what any endpoint pays.\n",
        _table(("", "ms", "of hand-made's"), _parts(run.throughput)),
        "## Statements and round trips\n",
        _table(("a request that", *STORED), _trips(run.trips)),
        "## Cold start and memory\n",
        _table(("from nothing to the first good answer", "seconds"), _starts(run.cold)),
        _table(("peak memory", "MiB"), _memory(run.throughput)),
        "## Growth\n",
        f"![growth]({PICTURE})\n",
        _table(("stored calls", "a resume, ms"), _stored(run.growth)),
        _table(("messages in the state", *STORED), _curves(run.growth.messages)),
        _table(("supersteps after the answer", *STORED), _curves(run.growth.supersteps)),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


# Targets.


def _targets(run: Measured) -> Iterable[Sequence[str]]:
    measured = run.throughput
    for case, aims in (("greeter", (2, 3, 5.5)), ("echo", (5, 6, 12))):
        places = ((1, False), (16, False), (16, True))
        for (concurrency, delayed), aim in zip(places, aims, strict=True):
            cell = Cell(case=case, concurrency=concurrency, delayed=delayed, name=Name.OURS)
            where = f"{_TITLES[case]}, {concurrency} at a time"
            where += f", {DELAY * 1000:g} ms to the database" if delayed else ""
            what = f"{where}: times hand-made"
            yield _at_least(what, aim, *_beside(ratios.rates, measured, cell, Name.HAND))
    for concurrency in (1, 16):
        cell = Cell(case="greeter", concurrency=concurrency, delayed=False, name=Name.OURS)
        what = f"CPU of a two-round call, {concurrency} at a time: times hand-made"
        yield _at_most(what, 0.4, *_beside(ratios.cpus, measured, cell, Name.HAND))
    cell = Cell(case="echo", concurrency=16, delayed=False, name=Name.OURS)
    what = "one round, 16 at a time: times in process"
    yield _at_least(what, 0.8, *_beside(ratios.rates, measured, cell, Name.FLOOR))
    yield from _against_echo(measured)
    yield from _cold_targets(run.cold)
    (few, before), (many, after) = run.growth.stored[0], run.growth.stored[-1]
    what = f"a resume with {many:,} stored calls: times with {few:,}"
    yield _at_most(what, 1.1, ratios.of(after, before))


def _beside(
    ratio: Callable[[Throughput, Cell, Cell], Ratio], measured: Throughput, ours: Cell, name: Name
) -> tuple[Ratio, Ratio]:
    """What we are to a contestant, and what the least is to it."""
    theirs = replace(ours, name=name)
    least = replace(ours, name=Name.LEAST)
    return ratio(measured, ours, theirs), ratio(measured, least, theirs)


def _against_echo(measured: Throughput) -> Iterable[Sequence[str]]:
    """Lists and refusals beside the SDK's echo."""
    for case in ("discover", "tools", "forged"):
        for concurrency in (1, 16):
            ours = Cell(case=case, concurrency=concurrency, delayed=False, name=Name.OURS)
            echo = replace(ours, case="echo", name=Name.SDK)
            if ours in measured.samples:
                what = f"{_TITLES[case]}, {concurrency} at a time: times the SDK's echo"
                yield _at_least(what, 1, ratios.rates(measured, ours, echo))


def _cold_targets(times: Mapping[str, Sequence[float]]) -> Iterable[Sequence[str]]:
    for what in ("discover", "list", "refusal"):
        ratio = ratios.of(times[what], times[cold.TRIVIAL])
        yield _at_most(f"cold {what}: times a FastAPI application's one route", 1.3, ratio)
    ours, theirs = (f"{name}, {cold.FIRST_CALL}" for name in (Name.OURS, Name.HAND))
    ratio = ratios.of(times[ours], times[theirs])
    yield _at_most("cold first call of an agent: times hand-made", 0.75, ratio)


def _at_least(what: str, aim: float, ratio: Ratio, least: Ratio | None = None) -> Sequence[str]:
    return what, f"≥ {aim:g}", str(ratio), _told(ratio.median >= aim), _if_any(least)


def _at_most(what: str, aim: float, ratio: Ratio, least: Ratio | None = None) -> Sequence[str]:
    return what, f"≤ {aim:g}", str(ratio), _told(ratio.median <= aim), _if_any(least)


def _told(met: bool) -> str:
    return "met" if met else "**not met**"


def _if_any(ratio: Ratio | None) -> str:
    return "" if ratio is None else str(ratio)


# Everything else.


def _rates(measured: Throughput) -> Iterable[Sequence[str]]:
    for cell, samples in measured.samples.items():
        ours = replace(cell, name=Name.OURS)
        yield (
            _TITLES[cell.case],
            str(cell.concurrency),
            f"{DELAY * 1000:g} ms" if cell.delayed else "0",
            cell.name,
            f"{median(each.rate for each in samples):.0f}",
            f"{median(each.result.p50 for each in samples) * 1000:.2f}",
            f"{median(each.result.p99 for each in samples) * 1000:.1f}",
            f"{median(each.cpu for each in samples) * 1000:.2f}",
            f"{median(each.database_cpu for each in samples) * 1000:.2f}",
            "" if cell == ours else f"{ratios.rates(measured, ours, cell)}×",
        )


def _parts(measured: Throughput) -> Iterable[Sequence[str]]:
    cell = Cell(case="greeter", concurrency=16, delayed=False, name=Name.OURS)
    graph, least, ours, theirs = (
        median(sample.cpu for sample in measured.samples[replace(cell, name=name)])
        for name in (Name.FLOOR, Name.LEAST, Name.OURS, Name.HAND)
    )
    parts = {
        "the graph alone, both rounds, in memory": graph,
        "HTTP, JSON, three statements and the state to and fro, as the least has them": (
            least - graph
        ),
        "checks, claims, LangGraph's tables, questions and answers, logs": ours - least,
        "Intermezzo": ours,
        "hand-made": theirs,
    }
    for what, seconds in parts.items():
        yield what, f"{seconds * 1000:.2f}", f"{seconds / theirs:.2f}"


def _trips(counts: Sequence[Count]) -> Iterable[Sequence[str]]:
    told = {
        (each.step, each.name): f"{each.counts.statements} in {each.counts.trips}"
        for each in counts
    }
    for step in dict.fromkeys(each.step for each in counts):
        yield step, *(told.get((step, name), "") for name in STORED)


def _starts(times: Mapping[str, Sequence[float]]) -> Iterable[Sequence[str]]:
    for what, taken in times.items():
        name = what if "," in what else f"{Name.OURS} on Lambda, {what}"
        yield name, f"{median(taken):.2f} ({min(taken):.2f}–{max(taken):.2f})"


def _memory(measured: Throughput) -> Iterable[Sequence[str]]:
    for name, mebibytes in measured.memory.items():
        yield name, f"{mebibytes:.0f}"


def _stored(growth: Growth) -> Iterable[Sequence[str]]:
    for count, times in growth.stored:
        low, middle, high = min(times), median(times), max(times)
        yield f"{count:,}", f"{middle * 1000:.2f} ({low * 1000:.2f}–{high * 1000:.2f})"


def _curves(curves: Mapping[str, Sequence[tuple[int, float]]]) -> Iterable[Sequence[str]]:
    for points in zip(*curves.values(), strict=True):
        yield f"{points[0][0]:,}", *(f"{seconds * 1000:.1f} ms" for _, seconds in points)
