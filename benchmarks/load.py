"""The load: a process of its own that holds conversations and tells how they went.

    python -m benchmarks.load

reads one task a line, as JSON, and writes one result a line. Its CPU is bound to no server's.
"""

import asyncio
import importlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.conversations import CASES, Conversation
from benchmarks.wire import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """So many conversations at a time, for so long."""

    url: str
    case: str
    size: int
    concurrency: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How they went.

    Attributes:
        calls: conversations that ended in the time.
        all: those, and the ones that came before to warm up.
        p50, p99: of their latencies, in seconds.
    """

    calls: int
    all: int
    seconds: float
    p50: float
    p99: float


WARM: Final = 0.3
"""Seconds of conversations that come before: a server that was idle takes some until it is as fast
as it is."""

_FEWEST: Final = 3
"""Of those, on each connection: the first two of a replay are its call."""

Talk = Callable[[], Awaitable[None]]
"""One conversation, from its beginning to its end."""


async def measure(talks: list[Talk], seconds: float) -> Result:
    """Each of these again and again, side by side, until the time is over."""
    warm = 0
    ready = time.perf_counter() + WARM
    while warm < _FEWEST or time.perf_counter() < ready:
        await asyncio.gather(*(talk() for talk in talks))
        warm += 1
    latencies: list[float] = []
    started = time.perf_counter()
    end = started + seconds

    async def repeat(talk: Talk) -> None:
        now = time.perf_counter()
        while now < end:
            await talk()
            before, now = now, time.perf_counter()
            latencies.append(now - before)

    await asyncio.gather(*(repeat(talk) for talk in talks))
    took = time.perf_counter() - started
    ordered = sorted(latencies)
    return Result(
        calls=len(ordered),
        all=len(ordered) + warm * len(talks),
        seconds=took,
        p50=ordered[len(ordered) // 2],
        p99=ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
    )


async def perform(task: Task) -> Result:
    """Hold a task's conversations over HTTP."""
    connections = [await Connection.open(task.url) for _ in range(task.concurrency)]
    try:
        return await measure([_talk(task, each) for each in connections], task.seconds)
    finally:
        for each in connections:
            each.close()


_words = count()


def _talk(task: Task, connection: Connection) -> Talk:
    authority = urlsplit(task.url).netloc

    def begun() -> Conversation:
        return CASES[task.case](f"word-{next(_words)}", task.size)

    async def whole() -> None:
        conversation = begun()
        request = next(conversation)
        with suppress(StopIteration):
            while True:
                request = conversation.send(await connection.ask(request.encoded(authority)))

    endless = begun()
    request = next(endless)

    async def part() -> None:
        nonlocal request
        request = endless.send(await connection.ask(request.encoded(authority)))

    return part if task.case == "replay" else whole


def main(perform: Callable[[Task], Awaitable[Result]]) -> None:
    """Perform the tasks of the input."""

    async def run() -> None:
        for line in iter(sys.stdin.readline, ""):
            result = await perform(Task(**json.loads(line)))
            print(json.dumps(asdict(result)), flush=True)

    # Of the `bench` group, which the type checker runs without.
    uvloop: Any = importlib.import_module("uvloop")
    uvloop.run(run())


if __name__ == "__main__":
    main(perform)
