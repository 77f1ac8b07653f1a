"""Served processes: `python -m handler serve` as anyone starts it, and requests to them."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx
import pytest

from core.protocol import CAPABILITIES_KEY, LATEST, VERSION_KEY
from core.request_state import make_key
from handler.settings import variables
from tests.conversation import AGENTS
from tests.front import Front, round_robin

CHECKOUT = Path(__file__).parent.parent
EXAMPLES = CHECKOUT / "langgraph.json"
CLIENTS = CHECKOUT / "tests" / "clients" / "langgraph.json"
"""The agents that clients are driven with."""

ASKING = CHECKOUT / "tests" / "agents" / "asking.json"
"""Agents that ask whatever a test tells them to."""

KEY = make_key()

META: dict[str, Any] = {
    VERSION_KEY: LATEST,
    CAPABILITIES_KEY: {"elicitation": {"form": {}, "url": {}}},
}


@dataclass(frozen=True, slots=True)
class Served:
    """One process that serves, with what it says on the way."""

    url: str
    greeting: str
    process: subprocess.Popen[str]
    errors: IO[str]

    def log(self) -> str:
        """What the process has written to its error stream."""
        self.errors.seek(0)
        return self.errors.read()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal, and waits for the exit code."""
        self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def serving(
    database: str | None,
    *,
    config: Path = EXAMPLES,
    arguments: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    cwd: Path = CHECKOUT,
) -> Generator[Served]:
    """A process that serves on a free port, until the block ends."""
    given = {"REQUEST_STATE_KEYS": KEY, **(environ or {})}
    if database is not None:
        given["DATABASE_URL"] = database
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            _command("serve", "--port", "0", "--config", str(config), *arguments),
            env=clean_environ(**given),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        with process:
            try:
                greeting = _greeting(process, errors)
                url = next(word for word in greeting.split() if word.startswith("http://"))
                yield Served(url, greeting, process, errors)
            finally:
                process.kill()


def run(*arguments: str, cwd: Path = CHECKOUT, **environ: str) -> subprocess.CompletedProcess[str]:
    """A command of `python -m handler`, run to its end."""
    return subprocess.run(
        _command(*arguments),
        env=clean_environ(**environ),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def clean_environ(**changes: str) -> dict[str, str]:
    """The environment of this process without any setting of ours, and with these changes."""
    kept = {name: value for name, value in os.environ.items() if name not in variables()}
    return {**kept, "PYTHONPATH": str(CHECKOUT), **changes}


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "handler", *arguments]


def _greeting(process: subprocess.Popen[str], errors: IO[str]) -> str:
    assert process.stdout is not None
    lines: list[str] = []
    while not (lines and lines[-1].lstrip().startswith("-d ")):
        line = process.stdout.readline()
        if not line:
            errors.seek(0)
            pytest.fail(f"it did not serve:\n{''.join(lines)}{errors.read()}")
        lines.append(line)
    return "".join(lines)


@pytest.fixture(scope="session")
def served(shared_database: str) -> Generator[Served]:
    """One process for every test that leaves nothing behind which another one could see."""
    with serving(shared_database) as process:
        yield process


@pytest.fixture(scope="session")
def asking(shared_database: str) -> Generator[Served]:
    """One process with agents that ask whatever a test tells them to."""
    with serving(shared_database, config=ASKING) as process:
        yield process


@pytest.fixture(scope="module")
def noting(shared_database: str) -> Generator[Served]:
    """One process for the tests of one file, with the agents that note when they run."""
    with serving(shared_database, config=AGENTS) as process:
        yield process


@contextmanager
def two_serving(database: str, config: Path, **environ: str) -> Generator[Front]:
    """Two processes of one database behind one address, until the block ends."""
    with (
        serving(database, config=config, environ=environ) as one,
        serving(database, config=config, environ=environ) as other,
        round_robin(one.url, other.url) as front,
    ):
        yield front


@pytest.fixture(scope="session")
def front(shared_database: str) -> Generator[Front]:
    """Two processes behind one address, with the agents that clients are driven with."""
    with two_serving(shared_database, CLIENTS) as front:
        yield front


def message(
    method: str, *, id: Any = 1, headers: Mapping[str, str] | None = None, **params: Any
) -> tuple[dict[str, str], dict[str, Any]]:
    """A request of the newest revision: its header fields and its body."""
    named = {"Mcp-Name": str(params["name"])} if "name" in params else {}
    fields = {"MCP-Protocol-Version": LATEST, "Mcp-Method": method, **named, **(headers or {})}
    sent = {"_meta": META, **params}
    return fields, {"jsonrpc": "2.0", "id": id, "method": method, "params": sent}


def post(url: str, method: str, **changes: Any) -> httpx.Response:
    """The answer to such a request."""
    fields, body = message(method, **changes)
    return httpx.post(url, headers=fields, json=body, timeout=60)


def post_older(url: str, method: str, *, id: Any = 1, **params: Any) -> httpx.Response:
    """A request of a client from before the newest revision."""
    body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return httpx.post(url, headers={"MCP-Protocol-Version": "2025-11-25"}, json=body, timeout=60)


def result(response: httpx.Response) -> dict[str, Any]:
    """The result in an answer that must be one."""
    body = json.loads(response.content)
    assert response.status_code == 200, body
    assert "error" not in body, body
    return body["result"]


def error(response: httpx.Response) -> dict[str, Any]:
    """The error in an answer that must be one."""
    body = json.loads(response.content)
    assert "result" not in body, body
    return body["error"]
