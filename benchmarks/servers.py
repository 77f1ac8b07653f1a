"""The contestants as processes: each is started as its users start it, and serves until the end."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from core.request_state import make_key
from handler.settings import variables

CHECKOUT: Final = Path(__file__).parent.parent
CONFIG: Final = CHECKOUT / "benchmarks" / "langgraph.json"
KEY: Final = make_key()

_SECONDS: Final = 60


class Name(StrEnum):
    """Who is measured; the value is what tables call it."""

    OURS = "Intermezzo"
    HAND = "hand-made"
    HAND_EXIT = "hand-made, exit"
    SDK = "SDK"
    FAST = "FastMCP"
    LEAST = "the least"
    FLOOR = "in process"


STORED: Final = (Name.OURS, Name.HAND, Name.HAND_EXIT)
"""Those that keep a call in PostgreSQL, and serve every agent."""

SERVED: Final = (*STORED, Name.SDK, Name.FAST)

_MODULES: Final[Mapping[Name, tuple[str, ...]]] = {
    Name.HAND: ("benchmarks.contestants.handmade", "async"),
    Name.HAND_EXIT: ("benchmarks.contestants.handmade", "exit"),
    Name.SDK: ("benchmarks.contestants.sdk",),
    Name.FAST: ("benchmarks.contestants.fast",),
    Name.LEAST: ("benchmarks.contestants.least",),
}


class Failed(Exception):
    """A contestant did not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One contestant that serves."""

    name: Name
    url: str
    pid: int


@contextmanager
def serving(name: Name, database: str) -> Generator[Server]:
    """A contestant on a free port; ready when this returns."""
    with started(name, database) as server:
        wait(server)
        yield server


@contextmanager
def started(name: Name, database: str) -> Generator[Server]:
    """A contestant that may not listen yet."""
    port = _free_port()
    with subprocess.Popen(
        _command(name, port),
        cwd=CHECKOUT,
        env=environ(DATABASE_URL=database, REQUEST_STATE_KEYS=KEY),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # a line for each request, by those who log
    ) as process:
        try:
            yield Server(name=name, url=f"http://127.0.0.1:{port}/mcp", pid=process.pid)
        finally:
            process.terminate()
            process.wait(_SECONDS)


def wait(server: Server) -> None:
    """Wait until a server listens.

    Raises:
        Failed: it does not.
    """
    deadline = time.monotonic() + _SECONDS
    address = ("127.0.0.1", int(server.url.rpartition(":")[2].partition("/")[0]))
    while time.monotonic() < deadline:
        try:
            socket.create_connection(address).close()
        except OSError:
            time.sleep(0.002)
        else:
            return
    raise Failed(f"{server.name} does not listen")


def environ(**changes: str) -> dict[str, str]:
    """This process's environment without settings of ours; compiled modules are kept, as anywhere
    outside a test."""
    dropped = {*variables(), "PYTHONDONTWRITEBYTECODE"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PYTHONPATH": str(CHECKOUT), **changes}


def _command(name: Name, port: int) -> list[str]:
    if name is Name.OURS:
        served = ("handler", "serve", "--config", str(CONFIG), "--port", str(port))
        return [sys.executable, "-m", *served]
    module, *arguments = _MODULES[name]
    return [sys.executable, "-m", module, str(port), *arguments]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]
