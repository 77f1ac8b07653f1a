"""The HTTP application: one path, and the one place where exceptions become answers.

What a request means is decided before (`handler.request`) and after (`core.methods`); here it is
read within its bounds, answered, and logged. Anything unforeseen becomes one generic error with a
correlation id, which the log has too; nothing of ours leaves the process.
"""

import logging
import secrets
import time
from typing import Any, Final, cast

from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from core.errors import InternalError, InvalidRequest, Refusal
from core.protocol import Request
from handler.body import read_body
from handler.headers import Headers
from handler.param_headers import check_param_headers
from handler.presence import while_present
from handler.refusals import HttpRefusal, MethodNotAllowed
from handler.request import Notification, Refused, decode
from handler.resources import Resources
from handler.response import ACCEPTED, Answer, failure, success

PATH: Final = "/mcp"

DEADLINE: Final = "intermezzo.deadline"
"""Where a transport that ends by itself puts its deadline into the ASGI scope, in seconds of
`time.monotonic()`."""

_log: Final = logging.getLogger("intermezzo")


def build(resources: Resources) -> FastAPI:
    """The application over what a process shares. Building it opens nothing."""
    # Routes are plain, so that no model of a request is built which the protocol layer replaces.
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]
    app.add_route(PATH, _Mcp(resources).respond, methods=methods)
    app.add_route("/healthz", _alive, methods=["GET"])
    app.add_route("/{path:path}", _nothing_here, methods=methods)
    return app


async def _alive(request: HttpRequest) -> Response:
    """Says that the process serves. It asks no database: a paused database stops no list."""
    return Response(b'{"status":"ok"}', media_type="application/json")


async def _nothing_here(request: HttpRequest) -> Response:
    refusal = InvalidRequest(f"There is nothing here: the MCP endpoint is POST {PATH}.")
    answer = failure(refusal, identifier=None, modern=True)
    return Response(answer.body, 404, media_type="application/json")


class _Mcp:
    """The MCP endpoint over HTTP."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._settings = resources.settings

    async def respond(self, http: HttpRequest) -> Response:
        """Answers one HTTP request."""
        started = time.monotonic()
        try:
            answer = await self._answer(http, started)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        media_type = "application/json" if answer.body else None
        return Response(answer.body, answer.status, dict(answer.headers), media_type)

    async def _answer(self, http: HttpRequest, started: float) -> Answer:
        headers = Headers(http.scope["headers"])
        try:
            self._resources.doors.check(headers)
            if http.method != "POST":
                raise MethodNotAllowed("Only POST is answered here.")
            body = await read_body(http, headers, self._settings.max_body_bytes)
        except HttpRefusal as refusal:
            return failure(refusal, identifier=None, modern=True)
        match decode(headers, body):
            case Notification():
                return ACCEPTED
            case Refused(refusal=refusal, id=identifier, modern=modern):
                return failure(refusal, identifier=identifier, modern=modern)
            case Request() as request:
                return await self._settle(http, headers, request, started)

    async def _settle(
        self, http: HttpRequest, headers: Headers, request: Request, started: float
    ) -> Answer:
        try:
            result = await self._result(http, headers, request, started)
            return success(request.id, result)
        except Refusal as refusal:
            fault = isinstance(refusal, InternalError)
            _log.log(
                logging.ERROR if fault else logging.INFO,
                "refused %s: %s %s",
                request.method,
                refusal.code,
                refusal.reason,
                exc_info=fault,
            )
            return failure(refusal, identifier=request.id, modern=request.modern)
        except Exception:
            correlation = secrets.token_hex(8)
            _log.exception("internal error %s in %s", correlation, request.method)
            error = InternalError("Internal error", data={"correlationId": correlation})
            return failure(error, identifier=request.id, modern=request.modern)

    async def _result(
        self, http: HttpRequest, headers: Headers, request: Request, started: float
    ) -> dict[str, Any]:
        endpoint = self._resources.endpoint
        deadline = self._deadline(http, started)
        if request.method != "tools/call":
            return await endpoint.answer(request, deadline=deadline)
        await self._check_param_headers(headers, request)
        async with self._resources.turns.turn(deadline):
            answering = endpoint.answer(request, deadline=deadline)
            # A first call that nobody waits for is worth nothing. A resumed one is: its outcome is
            # kept, and the client that comes back gets it.
            if "requestState" in request.params:
                return await answering
            return await while_present(http.receive, answering)

    def _deadline(self, http: HttpRequest, started: float) -> float:
        deadline = started + self._settings.call_timeout
        return min(deadline, http.scope.get(DEADLINE, deadline))

    async def _check_param_headers(self, headers: Headers, request: Request) -> None:
        name, arguments = request.params.get("name"), request.params.get("arguments", {})
        if not (request.modern and isinstance(name, str) and isinstance(arguments, dict)):
            return
        if tool := await self._resources.endpoint.tool(name):
            check_param_headers(headers, tool.input_schema, cast("dict[str, Any]", arguments))
