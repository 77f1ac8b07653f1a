"""What processes use, and the machine in words, as Linux tells it."""

import os
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psycopg

PACKAGES: Final = (
    *("langgraph", "langgraph-checkpoint-postgres", "mcp", "fastmcp", "fastapi", "starlette"),
    *("uvicorn", "uvloop", "httptools", "psycopg", "pydantic"),
)

_PROC: Final = Path("/proc")
_TICK: Final = os.sysconf("SC_CLK_TCK")


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used, all threads."""
    user, system, *_ = _times(pid)
    return user + system


def family_cpu(pid: int) -> float:
    """Seconds of CPU of a process and its children, those that have ended as well."""
    return sum(_times(pid)) + sum(cpu(child) for child in _children(pid))


def peak_memory(pid: int) -> float:
    """The most that a process has held resident, in MiB."""
    status = (_PROC / str(pid) / "status").read_text()
    [line] = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def postmaster(database: str) -> int:
    """The process of the server that a connection string leads to."""
    with psycopg.connect(database) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    return int(Path(row[0], "postmaster.pid").read_text().splitlines()[0])


def machine(database: str) -> str:
    """The machine and what runs on it, in words."""
    with psycopg.connect(database) as connection:
        postgres = connection.info.server_version // 10_000
    models = _values(_PROC / "cpuinfo", "model name")
    memory = int(_values(_PROC / "meminfo", "MemTotal")[0].split()[0]) / 1024 / 1024
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    cores = os.cpu_count()
    release = platform.release().partition("-")[0]
    return (
        f"A virtual machine with {cores} cores of {models[0] if models else platform.machine()} and"
        f" {memory:.0f} GiB of memory; {platform.system()} {release},"
        f" Python {platform.python_version()}, PostgreSQL {postgres} on the same machine over a"
        f" Unix socket, as it is configured out of the box (fsync and synchronous_commit on)."
        f" {packages}."
    )


def _times(pid: int) -> tuple[float, float, float, float]:
    stat = (_PROC / str(pid) / "stat").read_text()
    # The name stands in brackets and may hold anything; times are counted from behind it.
    user, system, ended_user, ended_system = stat.rpartition(")")[2].split()[11:15]
    return (
        int(user) / _TICK,
        int(system) / _TICK,
        int(ended_user) / _TICK,
        int(ended_system) / _TICK,
    )


def _children(pid: int) -> Iterator[int]:
    for line in _PROC.glob("[0-9]*/stat"):
        try:
            parent = line.read_text().rpartition(")")[2].split()[1]
        except OSError:  # it has ended
            continue
        if int(parent) == pid:
            yield int(line.parent.name)


def _values(file: Path, key: str) -> list[str]:
    lines = file.read_text().splitlines()
    return [line.partition(":")[2].strip() for line in lines if line.startswith(key)]
