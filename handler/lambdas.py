"""The three AWS Lambda entry points: `endpoint`, `sweep` and `migrate`.

A process keeps one event loop for its life, because connections belong to the loop that opened
them: never `asyncio.run`, which also takes away the loop that Mangum looks for. What a process
shares is made by the first event that needs it and is never closed: Lambda gives no sign before the
end. Nothing is left running when an answer is given; the platform freezes the process then.
"""

import asyncio
import functools
import logging
import os
import threading
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from core.errors import InternalError
from handler.app import DEADLINE, build
from handler.resources import Resources
from handler.response import failure
from handler.settings import Settings

if TYPE_CHECKING:
    from mangum import Mangum

T = TypeVar("T")

MARGIN: Final = 1.0
"""Seconds before the platform ends an invocation by which its answer is on the way."""

_log: Final = logging.getLogger("intermezzo")
_one_at_a_time: Final = threading.Lock()
"""The platform never starts a second event in a process; something that plays the platform may."""


def endpoint(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answers an HTTP event of API Gateway (HTTP or REST), a function URL or a load balancer.

    Never raises: whatever goes wrong around the application is a JSON-RPC error at 500, since the
    platform would put its own words in its place.
    """
    try:
        with _one_at_a_time:
            asyncio.set_event_loop(_loop())
            return _adapter()(_without_stage(event), context)
    except Exception:
        _log.exception("the event could not be answered")
        body = failure(InternalError("Internal error"), identifier=None, modern=True).body
        headers = {"content-type": "application/json"}
        return {"statusCode": 500, "headers": headers, "body": body.decode()}


def sweep(event: Any, context: Any) -> dict[str, int]:
    """Deletes what has expired. Raises what goes wrong, so that the platform shows it."""
    from core.sweeper import sweep as delete_expired

    return {"deleted": _run(delete_expired(_resources("database_url").store))}


def migrate(event: Any, context: Any) -> dict[str, list[str]]:
    """Brings the database to this code's schema. Raises what goes wrong."""
    from core.migrate import migrate as bring_up

    settings = _resources("database_url").settings
    assert settings.database_url is not None, "required"
    applied = _run(bring_up(settings.database_url, schema=settings.database_schema))
    return {"applied": applied}


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def _run(work: Coroutine[Any, Any, T]) -> T:
    with _one_at_a_time:
        return _loop().run_until_complete(work)


@functools.cache
def _resources(*required: str) -> Resources:
    return Resources(Settings.from_environ(os.environ, required=required))


@functools.cache
def _adapter() -> "Mangum":
    from mangum import Mangum  # the other two functions need no HTTP

    app = build(_resources("database_url", "request_state_keys"))

    async def until_the_end(scope: Any, receive: Any, send: Any) -> None:
        left = scope["aws.context"].get_remaining_time_in_millis() / 1000
        await app({**scope, DEADLINE: time.monotonic() + left - MARGIN}, receive, send)

    return Mangum(until_the_end, lifespan="off")


def _without_stage(event: dict[str, Any]) -> dict[str, Any]:
    """The event, with the path as the application knows it.

    A named stage of an HTTP API stands before the path, a load balancer or REST API has none there.
    """
    event = {**event, "headers": event.get("headers") or {}}
    context = event.get("requestContext", {})
    stage, http = context.get("stage", "$default"), context.get("http")
    if event.get("version") == "2.0" and http and f"{http['path']}/".startswith(f"/{stage}/"):
        stripped = http["path"].removeprefix(f"/{stage}") or "/"
        event["requestContext"] = {**context, "http": {**http, "path": stripped}}
    return event
