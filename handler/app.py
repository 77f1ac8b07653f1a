"""The HTTP application: one path, and the one place where exceptions become answers.

What a request means is decided before (`handler.request`) and after (`core.methods`); here it is
read within its bounds, answered, and logged. Anything unforeseen becomes one generic error with a
correlation id, which the log has too; nothing of ours leaves the process.
"""

import logging
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from core import account
from core.account import Account
from core.caller import ANYONE, Caller
from core.errors import InternalError, Refusal
from core.methods import Endpoint
from core.progress import Progress
from core.protocol import Request
from handler.body import Body
from handler.credentials import check_url
from handler.events import EVENT_STREAM, Events, streamed
from handler.headers import Headers
from handler.meta import trace_id
from handler.param_headers import check_param_headers
from handler.presence import while_present
from handler.refusals import BodyTooLarge, BodyTooSlow, MethodNotAllowed, NotFound
from handler.request import Notification, Refused, decode, is_modern, readable_id
from handler.resource_metadata import MAX_AGE, WELL_KNOWN
from handler.resources import Resources
from handler.response import ABANDONED, ACCEPTED, Answer, encode, failure, success
from handler.visit import Visit

PATH: Final = "/mcp"

DEADLINE: Final = "intermezzo.deadline"
"""Where a transport that ends by itself puts its deadline into the ASGI scope, in seconds of
`time.monotonic()`."""

BUFFERED: Final = "intermezzo.buffered"
"""Set in the ASGI scope by a transport that passes an answer on as a whole: it gets JSON."""

_log: Final = logging.getLogger("intermezzo")


def build(resources: Resources) -> FastAPI:
    """The application over what a process shares. Building it opens nothing."""
    # Routes are plain, so that no model of a request is built which the protocol layer replaces.
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.add_route("/healthz", _alive, methods=["GET"])
    for path, place in ((PATH, _Mcp(resources)), ("/{path:path}", _Elsewhere(resources))):
        app.router.routes.append(Route(path, place))  # whatever the method is
    return app


async def _alive(request: HttpRequest) -> Response:
    """Says that the process serves. It asks no database: a paused database stops no list."""
    return Response(b'{"status":"ok"}', media_type="application/json")


class _Place:
    """What answers the requests to a path, each with an account of its own."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        account.begin(Account(correlation=secrets.token_hex(8)))
        http, headers = HttpRequest(scope, receive), Headers(scope["headers"])
        response = await self.respond(http, headers, time.monotonic())
        await response(scope, receive, send)

    async def respond(self, http: HttpRequest, headers: Headers, started: float) -> Response:
        """Answers one HTTP request."""
        raise NotImplementedError


class _Elsewhere(_Place):
    """Every other path. Where a client may log in stands on one or two of them, for everybody."""

    async def respond(self, http: HttpRequest, headers: Headers, started: float) -> Response:
        try:
            self._resources.doors.check(headers)
            answer = self._answer(http, headers)
        except Exception as error:
            return _response(_logged(_failed(error, None), started))
        return _response(_logged(answer, started), self._resources.cors.granted(headers))

    def _answer(self, http: HttpRequest, headers: Headers) -> Answer:
        path = http.scope["path"]
        known = path.startswith(WELL_KNOWN) and self._resources.metadata
        if not known or path not in known.paths:
            raise NotFound(f"There is nothing here: the MCP endpoint is POST {PATH}.")
        if http.method == "OPTIONS" and (answer := self._resources.cors.preflight(headers)):
            return answer
        if http.method not in ("GET", "HEAD"):
            raise MethodNotAllowed("Only GET is answered here.", headers={"allow": "GET"})
        caching = {"cache-control": f"public, max-age={MAX_AGE}"}
        return Answer(status=200, body=encode(known.document()), headers=caching)


class _Mcp(_Place):
    """The MCP endpoint over HTTP."""

    async def respond(self, http: HttpRequest, headers: Headers, started: float) -> Response:
        try:
            self._resources.doors.check(headers)
        except Refusal as refusal:
            return _response(_logged(_failed(refusal, None), started))
        if http.method == "OPTIONS" and (answer := self._resources.cors.preflight(headers)):
            response = _response(_logged(answer, started))
        else:
            response = await self._respond(http, headers, started)
        response.headers.update(self._resources.cors.granted(headers))
        return response

    async def _respond(self, http: HttpRequest, headers: Headers, started: float) -> Response:
        deadline = started + self._resources.settings.call_timeout
        deadline = min(deadline, http.scope.get(DEADLINE, deadline))
        try:
            message = await self._message(http, headers, deadline)
        except Exception as error:
            return _response(_logged(_failed(error, None), started))
        events = _events(http, headers, message)
        answering = self._answer(http, headers, message, started, deadline, events)
        if events is None:
            return _response(await answering)
        return await streamed(answering, events, _response)

    async def _message(
        self, http: HttpRequest, headers: Headers, deadline: float
    ) -> Request | Notification | Refused:
        """What was sent: rungs 2 to 11 of `handler.request`."""
        if http.method != "POST":
            raise MethodNotAllowed("Only POST is answered here.")
        body = Body(http, headers, self._resources.settings.max_body_bytes, deadline)
        try:
            caller = await self._caller(Visit(http, headers, body))
        except Exception as error:
            # Clients drop an error without the id, and hear none while they are still sending.
            with suppress(BodyTooLarge, BodyTooSlow):
                identifier = readable_id(await body.read())
                refusal = _refusal(error)
                return Refused(refusal=refusal, id=identifier, modern=is_modern(headers))
            raise
        return decode(headers, await body.read(), caller=caller)

    async def _caller(self, visit: Visit) -> Caller:
        """Who sent a request. No source of identity looks at one with credentials in its URL."""
        if (identity := self._resources.identity) is None:
            return ANYONE
        check_url(visit.headers, visit.query, self._resources.challenge)
        return await identity.identify(visit)

    async def _answer(
        self,
        http: HttpRequest,
        headers: Headers,
        message: Request | Notification | Refused,
        started: float,
        deadline: float,
        events: Events | None,
    ) -> Answer:
        match message:
            case Notification():
                account.current().outcome = "accepted"
                answer = ACCEPTED
            case Refused():
                answer = _refused(message.refusal, message)
            case Request():
                _note(message)
                try:
                    result = await self._result(http, headers, message, deadline, events)
                    answer = success(message.id, result)
                except Exception as error:
                    answer = _failed(error, message)
        return _logged(answer, started)

    async def _result(
        self,
        http: HttpRequest,
        headers: Headers,
        request: Request,
        deadline: float,
        events: Events | None,
    ) -> dict[str, Any]:
        endpoint = self._resources.endpoint
        if request.method != "tools/call":
            return await endpoint.answer(request, deadline=deadline)
        await self._check_param_headers(headers, request)
        async with self._resources.turns.turn(deadline):
            progress = events.tell if events else None
            answering = endpoint.answer(request, deadline=deadline, progress=progress)
            # A first call that nobody waits for is worth nothing. A resumed one is: its outcome is
            # kept, and the client that comes back gets it. But to close a stream is to cancel.
            if "requestState" in request.params and events is None:
                return await answering
            return await while_present(http.receive, answering)

    async def _check_param_headers(self, headers: Headers, request: Request) -> None:
        name, arguments = request.params.get("name"), request.params.get("arguments", {})
        if not (request.modern and isinstance(name, str) and isinstance(arguments, dict)):
            return
        if tool := await self._resources.endpoint.tool(name):
            check_param_headers(headers, tool.input_schema, cast("dict[str, Any]", arguments))


def _events(
    http: HttpRequest, headers: Headers, message: Request | Notification | Refused
) -> Events | None:
    """Where notifications go, when the client wants any and they can reach it."""
    if not isinstance(message, Request) or http.scope.get(BUFFERED, False):
        return None
    progress = Progress(token=message.progress_token, level=message.log_level)
    accepted = {each.partition(";")[0].strip() for each in headers.first("Accept").split(",")}
    return Events(progress) if progress.wanted and EVENT_STREAM in accepted else None


def _response(answer: Answer, further: Mapping[str, str] | None = None) -> Response:
    media_type = "application/json" if answer.body else None
    return Response(answer.body, answer.status, {**answer.headers, **(further or {})}, media_type)


def _failed(error: Exception, message: Request | None) -> Answer:
    """The answer to a request that an exception ended."""
    if isinstance(error, ClientDisconnect):
        account.current().outcome = "abandoned"
        return ABANDONED
    return _refused(_refusal(error), message)


def _refusal(error: Exception) -> Refusal:
    """What a client is told of an exception. Every exception ends here."""
    if isinstance(error, InternalError):
        return _fault(error, error.message)
    return error if isinstance(error, Refusal) else _fault(error, "Internal error")


def _refused(refusal: Refusal, message: Request | Refused | None) -> Answer:
    """A refusal by the rules of the client's era, as far as that is known."""
    here = account.current()
    here.outcome, here.code, here.reason = "refused", refusal.code, refusal.reason
    identifier, modern = (message.id, message.modern) if message else (None, True)
    return failure(refusal, identifier=identifier, modern=modern)


def _fault(error: Exception, told: str) -> InternalError:
    """A fault of ours, which the client has by the correlation id that the log has it under."""
    correlation = account.current().correlation
    _log.error("internal error %s", correlation, exc_info=error)
    return InternalError(told, data={"correlationId": correlation})


def _note(request: Request) -> None:
    """What the log says of a request before anything is known of its end."""
    here = account.current()
    if request.method in Endpoint.METHODS[request.modern]:  # else it is any text of a client's
        here.method = request.method
    here.trace = trace_id(request.trace)


def _logged(answer: Answer, started: float) -> Answer:
    """An answer on its way, which the log has one line about."""
    here = account.current()
    here.outcome = here.outcome or "result"
    about = " ".join(filter(None, (here.method, here.agent))) or "request"
    ms = round((time.monotonic() - started) * 1000)
    _log.info("%s: %s", about, here.outcome, extra={**here.facts(), "ms": ms})
    return answer
