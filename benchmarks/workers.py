"""The processes that hold conversations (`benchmarks.load`) or run graphs (`benchmarks.floor`)."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict

from benchmarks.load import Result, Task
from benchmarks.servers import CHECKOUT, Failed, environ


class Worker:
    """A process that performs one task at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def perform(self, task: Task) -> Result:
        """Raises `Failed` when the process has ended: it has said why."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(task)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"the task {task} failed")
        return Result(**json.loads(line))


@contextmanager
def working(module: str) -> Generator[Worker]:
    """A worker that runs this module."""
    with subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=CHECKOUT,
        env=environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Worker(process)
        finally:
            process.terminate()
