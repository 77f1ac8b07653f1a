"""The local server: uvicorn over the application, and a sweep now and then."""

import asyncio
import logging
import shlex
import signal
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import uvicorn  # of the `local` extra: a Lambda artifact has neither it nor this file
from starlette.types import ASGIApp
from uvicorn.loops.auto import auto_loop_factory
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from core.protocol import CAPABILITIES_KEY, LATEST, VERSION_KEY
from handler import __version__
from handler.app import PATH, build
from handler.doors import LOCAL
from handler.resources import Resources
from handler.response import encode
from handler.settings import Settings, SettingsError

if TYPE_CHECKING:
    from core.tools import Tool

GRACE: Final = 20
"""Seconds that running requests get to end after a signal to stop."""

PATIENCE: Final = 5
"""Seconds that those which did not end get after that, to leave their calls to others."""

KEEP_ALIVE: Final = 75
"""Seconds for which an idle connection stays: longer than a load balancer, which keeps one for 60,
or it would send a request into one that is being closed."""

MOST_HEADER_BYTES: Final = 64 * 1024
"""Of a request, or of what stands between the parts of its body."""

LOOP: Final = auto_loop_factory()
"""Makes the event loop to serve in: uvloop's where that is installed."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_log: Final = logging.getLogger("intermezzo")


async def serve(settings: Settings, *, host: str, port: int) -> None:
    """Serves until a signal ends it. Host names other than local ones have to be allowed.

    Raises:
        CatalogError: with everything that is wrong with langgraph.json and its agents.
        OSError: the address can't be listened on.
    """
    if settings.gateway:
        raise SettingsError(["INTERMEZZO_GATEWAY is set, and no gateway stands here; unset it."])
    public = {urlsplit(settings.public_url).hostname} - {None}
    hosts = settings.allowed_hosts or frozenset((*LOCAL, *(str(name) for name in public)))
    resources = Resources(replace(settings, allowed_hosts=hosts))
    for warning in resources.warnings:
        print(f"langgraph.json: {warning}")
    tools = await resources.endpoint.tools()
    server = _Server(configured(build(resources)))
    with _listening(host, port) as listener:
        print(greeting(tools, _url(host, listener.getsockname()[1])), flush=True)
        sweeping = asyncio.create_task(_sweep(resources))
        try:
            await server.serve(sockets=[listener])
        finally:
            sweeping.cancel()
            # Requests that had no more time are cancelled by now, and give their claims back.
            await asyncio.wait((sweeping, *server.server_state.tasks), timeout=PATIENCE)
            await resources.close()


def configured(app: ASGIApp) -> uvicorn.Config:
    """How an application is served."""
    return uvicorn.Config(
        app,
        http=_Protocol,
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
    )


class _Protocol(HttpToolsProtocol):
    """Ends a connection over which too much comes that is no body: the parser keeps all of that."""

    _kept = 0

    def data_received(self, data: bytes) -> None:
        self._kept += len(data)
        super().data_received(data)
        if self._kept > MOST_HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response("The header fields are too large.")

    def on_headers_complete(self) -> None:
        self._kept = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._kept = 0
        super().on_body(body)


class _Server(uvicorn.Server):
    """Ends without sending itself the signal again, so that what is open can be closed."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)


def greeting(tools: "Sequence[Tool]", url: str) -> str:
    """What `serve` prints: where, what, and one line to try."""
    width = max((len(tool.name) for tool in tools), default=0)
    lines = [f"  {tool.name:{width}}  {tool.description.splitlines()[0]}" for tool in tools]
    served = f"Intermezzo {__version__} serves {len(tools)} tools at {url}"
    return "\n".join((served, "", *lines, "", "Try:", "", _curl(tools, url), ""))


def _curl(tools: "Sequence[Tool]", url: str) -> str:
    """A request that anyone can paste: a call that needs no arguments, or else the list."""
    name = next((tool.name for tool in tools if not tool.input_schema.get("required")), None)
    method = "tools/call" if name else "tools/list"
    headers = {
        "Content-Type": "application/json",
        "MCP-Protocol-Version": LATEST,
        "Mcp-Method": method,
        **({"Mcp-Name": name} if name else {}),
    }
    meta: dict[str, Any] = {
        VERSION_KEY: LATEST,
        CAPABILITIES_KEY: {"elicitation": {"form": {}, "url": {}}},
    }
    params: dict[str, Any] = {**({"name": name, "arguments": {}} if name else {}), "_meta": meta}
    body = encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).decode()
    words = [f"-H {shlex.quote(f'{key}: {value}')}" for key, value in headers.items()]
    return " \\\n".join(
        (f"  curl -s {url}", *(f"    {word}" for word in words), f"    -d '{body}'")
    )


async def _sweep(resources: Resources) -> None:
    from core.sweeper import sweep

    while True:
        await asyncio.sleep(resources.settings.sweep_interval)
        try:
            await sweep(resources.store)
        except Exception:  # or nothing would be swept any more
            _log.exception("the sweep failed; it is tried again")


@contextmanager
def _listening(host: str, port: int) -> Generator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        # Connections inherit it. Without it, an answer written in two parts waits 40 ms for the
        # client to acknowledge the first; asyncio sees to it only where a socket names TCP.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


def _url(host: str, port: int) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}{PATH}"
