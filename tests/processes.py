"""Requests answered by other processes, which may be killed.

Forked from a server that has imported everything, so that a process costs milliseconds. Each
answers with `core.rounds` on connections of its own, as an instance of the product would.
"""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from core import saver
from core.errors import Refusal
from core.protocol import InputRequired, ToolResult
from tests.conversation import instance, said

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.processes", "core.runs", "core.saver", "core.store"])


@dataclass(frozen=True, slots=True)
class Told:
    """What a process was told: `kind` is asked, ended, failed or refused."""

    kind: str
    text: str = ""
    requests: dict[str, Any] = field(default_factory=dict[str, Any])
    state: str = ""


@dataclass(slots=True)
class Worker:
    """One process and the requests it was given."""

    process: BaseProcess
    answers: Any  # the receiving end of a pipe; its type differs between platforms
    copies: int

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def kill(self) -> None:
        """Kill the process, and see that it is dead."""
        os.kill(self.pid, signal.SIGKILL)
        assert self.killed()

    def killed(self) -> bool:
        """Whether the process ended by SIGKILL; waits for its end."""
        self.process.join(20)
        return self.process.exitcode == -signal.SIGKILL

    def told(self, seconds: float = 30.0) -> list[Told]:
        """What each copy of the request was answered."""
        told: list[Told] = []
        while len(told) < self.copies:
            assert self.answers.poll(seconds), "no answer came"
            told.append(self.answers.recv())
        self.process.join(10)
        return told

    def one(self) -> Told:
        """What the only copy was answered."""
        (told,) = self.told()
        return told


@dataclass(slots=True)
class Processes:
    """Starts processes that answer requests."""

    database: str
    journal: Path
    workers: list[Worker] = field(default_factory=list[Worker])

    def send(
        self,
        agent: str,
        answers: Mapping[str, Any] | None = None,
        state: str | None = None,
        *,
        copies: int = 1,
        **changes: Any,
    ) -> Worker:
        """A process that answers a request, or several copies of it at once."""
        mine, theirs = multiprocessing.Pipe(duplex=False)
        arguments = (self.database, str(self.journal), agent, answers, state, copies, changes)
        process = _context.Process(target=_work, args=(theirs, *arguments), daemon=True)
        process.start()
        theirs.close()
        worker = Worker(process, mine, copies)
        self.workers.append(worker)
        return worker

    def close(self) -> None:
        for worker in self.workers:
            if worker.process.is_alive():
                worker.kill()
            worker.answers.close()
            worker.process.close()


@pytest.fixture
def processes(database: str, tmp_path: Path) -> Iterator[Processes]:
    started = Processes(database, tmp_path)
    yield started
    started.close()


def _work(
    answers: Any,
    database: str,
    journal: str,
    agent: str,
    given: Mapping[str, Any] | None,
    state: str | None,
    copies: int,
    changes: dict[str, Any],
) -> None:
    async def run() -> None:
        settings = {name: changes.pop(name) for name in ("lease", "seconds") if name in changes}
        saver.FLUSH_AFTER = changes.pop("flush_after", saver.FLUSH_AFTER)
        async with instance(database, Path(journal), **settings) as here:

            async def request() -> None:
                try:
                    told = _tell(await here.call(agent, given, state, **changes))
                except Refusal as refusal:
                    told = Told("refused", f"{refusal.code} {refusal.message}")
                answers.send(told)

            await asyncio.gather(*(request() for _ in range(copies)))

    asyncio.run(run())


def _tell(answer: ToolResult | InputRequired) -> Told:
    if isinstance(answer, InputRequired):
        return Told("asked", "", answer.requests, answer.request_state)
    return Told("failed" if answer.is_error else "ended", said(answer))


def wait_for(path: Path, seconds: float = 20.0) -> None:
    """Wait for a file that another process makes."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} did not appear"
        time.sleep(0.005)
