"""The three AWS Lambda entry points: `endpoint`, `sweep` and `migrate`.

A process keeps one event loop for its life, because connections belong to the loop that opened
them: never `asyncio.run`, which also takes away the loop that Mangum looks for. What the endpoint
shares is made by the first event that needs it, and stays: the platform gives no sign before the
end. A sweep and a migration come seldom, and open what they need anew. Nothing is left running when
an answer is given; the platform freezes the process then.
"""

import asyncio
import base64
import importlib
import json
import logging
import os
import threading
import time
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from core.errors import InternalError
from handler import logs
from handler.app import BUFFERED, DEADLINE, PATH, build
from handler.request import readable_id
from handler.resources import Resources, with_store
from handler.response import failure
from handler.settings import Settings

if TYPE_CHECKING:
    from mangum import Mangum

    from core.store import Store

T = TypeVar("T")

MARGIN: Final = 1.0
"""Seconds before the platform ends an invocation by which its answer is on the way."""

LARGEST: Final = 6_291_556
"""Bytes of a response, as JSON, that the platform passes on."""

LARGEST_RESULT: Final = 6_000_000
"""Bytes of a result, which leaves room for what HTTP and JSON-RPC put around it."""

_OF_A_CALL: Final = (
    *("mangum", "jsonschema_rs", "core.claimed", "core.failures", "core.rounds", "core.store"),
    *("handler.database", "handler.secrets_manager"),
)
"""Modules that a call imports, and with them all that it needs of libraries."""

_log: Final = logging.getLogger("intermezzo")


class Process:
    """One execution environment. Making it reads, opens and imports nothing more.

    Args:
        environ: the variables of the deployment, read by the first event.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._ends = 0.0
        # The platform never starts a second event in a process; what plays the platform may.
        self._turn = threading.Lock()

    def endpoint(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Answers an HTTP event of API Gateway (HTTP or REST), a function URL or a load balancer.

        Never raises: whatever goes wrong around the application is a JSON-RPC error at 500, since
        the platform would put its own words in its place.
        """
        try:
            with self._turn:
                asyncio.set_event_loop(self._loop)
                answer = self._adapter(_without_stage(event), context)
            if _passes(answer):
                return answer
            return _error(200, "The answer is too large.", readable_id(_body(event)))
        except Exception:
            _log.exception("the event could not be answered")
            return _error(500, "Internal error")

    def sweep(self, event: Any, context: Any) -> dict[str, int]:
        """Deletes what has expired. Raises what goes wrong, so that the platform shows it."""
        from core.sweeper import sweep

        return {"deleted": self._run(with_store(self._settings(), sweep))}

    def migrate(self, event: dict[str, Any], context: Any) -> dict[str, list[str]]:
        """Brings the database to this code's schema. Raises what goes wrong; but CloudFormation,
        for which a deployment is one of its resources, is told."""
        from core.migrate import migrate
        from handler.custom_resource import deploy, is_request

        async def migrated(store: "Store") -> list[str]:
            return await migrate(store.conninfo(), schema=store.schema)

        applied: list[str] = []

        def work() -> None:
            applied.extend(self._run(with_store(self._settings(), migrated)))

        if is_request(event):
            deploy(event, work)
        else:
            work()
        return {"applied": applied}

    def close(self) -> None:
        """Closes what was opened. The process can go on: it opens again what it needs."""
        if opened := self.__dict__.pop("_resources", None):
            self._run(opened.close())
        self.__dict__.pop("_adapter", None)
        if loop := self.__dict__.pop("_loop", None):
            loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._turn:
            return self._loop.run_until_complete(work)

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.new_event_loop()

    def _settings(self) -> Settings:
        """Those of the functions that sign nothing."""
        return Settings.from_environ(self._environ, required=("database_url",))

    @cached_property
    def _resources(self) -> Resources:
        required = ("database_url", "request_state_keys")
        settings = Settings.from_environ(self._environ, required=required)
        largest = settings.max_result_bytes or LARGEST_RESULT
        return Resources(replace(settings, max_result_bytes=largest), left=self._left)

    def _left(self) -> timedelta:
        """How long a claim lasts that is made now: a little longer than the invocation can."""
        return timedelta(seconds=self._ends - time.monotonic() + MARGIN)

    @cached_property
    def _adapter(self) -> "Mangum":
        from mangum import Mangum  # the other two functions need no HTTP

        app = build(self._resources)

        async def until_the_end(scope: Any, receive: Any, send: Any) -> None:
            left = scope["aws.context"].get_remaining_time_in_millis() / 1000
            self._ends = time.monotonic() + left
            await app({**scope, BUFFERED: True, DEADLINE: self._ends - MARGIN}, receive, send)

        return Mangum(until_the_end, lifespan="off")


def _passes(answer: dict[str, Any]) -> bool:
    """Whether the platform passes an answer on. It ends the process of one that it does not."""
    if len(answer["body"]) < LARGEST // 8:  # it would pass if every character were escaped
        return True
    return len(json.dumps(answer, ensure_ascii=False).encode()) <= LARGEST


def _body(event: dict[str, Any]) -> bytes:
    body: str = event.get("body") or ""
    return base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()


def _error(
    status: int, message: str, identifier: str | int | float | None = None
) -> dict[str, Any]:
    """The answer to an event that there is no other answer to."""
    body = failure(InternalError(message), identifier=identifier, modern=True).body
    headers = {"content-type": "application/json"}
    return {"statusCode": status, "headers": headers, "body": body.decode()}


def _without_stage(event: dict[str, Any]) -> dict[str, Any]:
    """The event, with the path as the application knows it.

    A named stage of an HTTP API stands before its path, but at a domain that leaves it out; no
    other kind of event has one there.
    """
    event = {**event, "headers": event.get("headers") or {}}
    context = event.get("requestContext", {})
    stage, http = context.get("stage"), context.get("http")
    if event.get("version") != "2.0" or not http or http["path"] == PATH:
        return event
    if f"{http['path']}/".startswith(f"/{stage}/"):
        stripped = http["path"].removeprefix(f"/{stage}") or "/"
        event["requestContext"] = {**context, "http": {**http, "path": stripped}}
    return event


if "AWS_LAMBDA_RUNTIME_API" in os.environ:  # the platform writes our logs
    logs.complete_records()

if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start":
    for name in _OF_A_CALL:  # a snapshot is to have them; nothing is opened, drawn or signed
        importlib.import_module(name)

_process: Final = Process(os.environ)

endpoint: Final = _process.endpoint
sweep: Final = _process.sweep
migrate: Final = _process.migrate
