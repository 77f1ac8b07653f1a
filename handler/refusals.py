"""Refusals that HTTP has a status of its own for.

    HttpRefusal (-32600)
    ├── BadCredentials         400
    ├── SeveralHosts           400
    ├── Unauthorized           401
    ├── Forbidden              403
    ├── ForeignOrigin          403
    ├── NotFound               404
    ├── MethodNotAllowed       405
    ├── BodyTooSlow            408
    ├── BodyTooLarge           413
    ├── UnsupportedMediaType   415
    └── UnknownHost            421

Pure module. Their bodies are JSON-RPC errors like all others: some clients close the connection
over a 4xx without one.
"""

from collections.abc import Mapping
from types import MappingProxyType

from core.errors import InvalidRequest


class HttpRefusal(InvalidRequest):
    """The request is refused for what HTTP says of it, in either era alike."""

    status: int
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self, message: str, *, reason: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, reason=reason)
        if headers is not None:
            self.headers = headers


class BadCredentials(HttpRefusal):
    """Credentials came in a way that nobody may use, whoever they belong to."""

    status = 400


class SeveralHosts(HttpRefusal):
    """Two readers could take the request for one to two hosts."""

    status = 400


class Unauthorized(HttpRefusal):
    """Nobody was identified; a header says how a client can change that."""

    status = 401


class Forbidden(HttpRefusal):
    """Somebody was identified who may not do this."""

    status = 403


class ForeignOrigin(HttpRefusal):
    status = 403


class NotFound(HttpRefusal):
    """Nothing is served at this path."""

    status = 404


class MethodNotAllowed(HttpRefusal):
    """There is no stream to open and no session to end: GET and DELETE get this at once."""

    status = 405
    headers = MappingProxyType({"allow": "POST"})


class BodyTooSlow(HttpRefusal):
    """What is still to come is not waited for."""

    status = 408
    headers = MappingProxyType({"connection": "close"})


class BodyTooLarge(HttpRefusal):
    status = 413


class UnsupportedMediaType(HttpRefusal):
    status = 415


class UnknownHost(HttpRefusal):
    status = 421
