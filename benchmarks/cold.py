"""Cold starts: from the start of a process to its first good answer, in turns, with warm disks.

Lists and refusals are answered by the Lambda entry point, beside a FastAPI application with one
route; first calls by that and, for the comparison with the hand-made server, over HTTP.
"""

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from benchmarks.conversations import FORGED, called
from benchmarks.servers import CHECKOUT, KEY, Failed, Name, environ, started, wait
from benchmarks.wire import META, Connection, Request
from core.catalog import BUILT, Catalog, build

TRIVIAL = "FastAPI, one route"
FIRST_CALL = "first call"
"""Of an agent, over HTTP: the contestant's name goes before it."""


def measure(database: str, *, turns: int) -> dict[str, list[float]]:
    """Seconds by what was started, one figure a turn."""
    with TemporaryDirectory(prefix="artifact-") as folder:
        config = _artifact(Path(folder))
        starts: dict[str, Callable[[], float]] = {
            TRIVIAL: lambda: _event("trivial", _listing(), config, database, 200),
            "discover": lambda: _event("lambdas", _discover(), config, database, 200),
            "list": lambda: _event("lambdas", _listing(), config, database, 200),
            "refusal": lambda: _event("lambdas", _refused(), config, database, 400),
            FIRST_CALL: lambda: _event("lambdas", _calling(), config, database, 200),
            **{
                f"{name}, {FIRST_CALL}": lambda name=name: _served(name, database)
                for name in (Name.OURS, Name.HAND, Name.SDK, Name.FAST)
            },
        }
        for start in starts.values():
            start()  # writes what is compiled, fills the caches
        times: dict[str, list[float]] = {what: [] for what in starts}
        for _ in range(turns):
            for what, start in starts.items():
                times[what].append(start())
        return times


def _artifact(folder: Path) -> Path:
    """The example project as an artifact holds it, with its built catalogue."""
    shutil.copytree(CHECKOUT / "agents", folder / "agents")
    config = Path(shutil.copy(CHECKOUT / "langgraph.json", folder))
    (folder / BUILT).write_bytes(asyncio.run(build(Catalog.read(config))))
    return config


def _event(module: str, request: Request, config: Path, database: str, status: int) -> float:
    variables = {
        "DATABASE_URL": database,
        "REQUEST_STATE_KEYS": KEY,
        "INTERMEZZO_CONFIG": str(config),
    }
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.contestants.{module}"],
        input=json.dumps(_http_api(request)),
        cwd=CHECKOUT,
        env=environ(**variables),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    took = time.perf_counter() - begun
    if int(done.stdout) != status:
        raise Failed(f"{module} answered {done.stdout}")
    return took


def _served(name: Name, database: str) -> float:
    begun = time.perf_counter()
    with started(name, database) as server:
        wait(server)
        asyncio.run(_call(server.url))
        return time.perf_counter() - begun


async def _call(url: str) -> None:
    connection = await Connection.open(url)
    answer = await connection.ask(_calling().encoded(urlsplit(url).netloc))
    connection.close()
    if answer.status != 200 or answer.message["result"].get("isError"):
        raise Failed(f"{url} answered {answer}")


def _discover() -> Request:
    return Request("server/discover", {})


def _listing() -> Request:
    return Request("tools/list", {})


def _calling() -> Request:
    return called("echo", {"message": "hello"})


def _refused() -> Request:
    params: dict[str, Any] = {"name": "greeter", "arguments": {}, "inputResponses": {}}
    return Request("tools/call", {**params, "requestState": FORGED})


def _http_api(request: Request) -> dict[str, Any]:
    """An event of API Gateway, payload 2.0."""
    headers = {
        "host": "example.com",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": request.method,
    }
    if "name" in request.params:
        headers["mcp-name"] = request.params["name"]
    body = {"jsonrpc": "2.0", "id": 1, "method": request.method}
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": "/mcp",
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "domainName": "example.com",
            "http": {
                "method": "POST",
                "path": "/mcp",
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "benchmarks",
            },
            "stage": "$default",
        },
        "body": json.dumps({**body, "params": {"_meta": META, **request.params}}),
        "isBase64Encoded": False,
    }
