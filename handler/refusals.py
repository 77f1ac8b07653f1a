"""Refusals that HTTP has a status of its own for.

    HttpRefusal (-32600)
    ├── ForeignOrigin          403
    ├── MethodNotAllowed       405
    ├── BodyTooLarge           413
    ├── UnsupportedMediaType   415
    └── UnknownHost            421

Pure module. Their bodies are JSON-RPC errors like all others: some clients close the connection
over a 4xx without one.
"""

from collections.abc import Mapping
from typing import ClassVar

from core.errors import InvalidRequest


class HttpRefusal(InvalidRequest):
    """The request is refused for what HTTP says of it, in either era alike."""

    status: ClassVar[int]
    headers: ClassVar[Mapping[str, str]] = {}


class ForeignOrigin(HttpRefusal):
    status = 403


class MethodNotAllowed(HttpRefusal):
    """There is no stream to open and no session to end: GET and DELETE get this at once."""

    status = 405
    headers: ClassVar[Mapping[str, str]] = {"allow": "POST"}


class BodyTooLarge(HttpRefusal):
    status = 413


class UnsupportedMediaType(HttpRefusal):
    status = 415


class UnknownHost(HttpRefusal):
    status = 421
