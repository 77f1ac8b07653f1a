"""A result or a refusal → HTTP status, headers and body.

Pure module, and the only place where a status is chosen. Bodies are compact JSON, because clients
read frames line by line. An id that could not be read is left out: null is not an id.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from core.errors import (
    HeaderMismatch,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    MissingCapability,
    ParseError,
    Refusal,
    UnsupportedVersion,
)
from core.plain import dumps
from handler.refusals import HttpRefusal

STATUS: Final[Mapping[int, int]] = MappingProxyType(
    {
        ParseError.code: 400,
        InvalidRequest.code: 400,
        MethodNotFound.code: 404,
        InvalidParams.code: 400,
        HeaderMismatch.code: 400,
        MissingCapability.code: 400,
        UnsupportedVersion.code: 400,
    }
)
"""HTTP status of an error of the newest revision. Codes that are not here go out at 200: clients
drop the bodies of 5xx. Errors of older revisions all go out at 200: their clients read a JSON-RPC
error nowhere else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What goes back over HTTP."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


ACCEPTED: Final = Answer(status=202)
"""The answer to a notification."""

ABANDONED: Final = Answer(status=400)
"""The answer to a client that has left, which nobody reads."""


def success(identifier: str | int | float, result: Mapping[str, Any]) -> Answer:
    """A result.

    Raises:
        ValueError: the result is not strict JSON.
    """
    return Answer(status=200, body=encode({"jsonrpc": "2.0", "id": identifier, "result": result}))


def failure(refusal: Refusal, *, identifier: str | int | float | None, modern: bool) -> Answer:
    """An error, at the status that the client's era reads it at."""
    message: dict[str, Any] = {"jsonrpc": "2.0"}
    if identifier is not None:
        message["id"] = identifier
    message["error"] = refusal.as_error()
    if isinstance(refusal, HttpRefusal):
        return Answer(status=refusal.status, body=encode(message), headers=refusal.headers)
    status = STATUS.get(refusal.code, 200) if modern else 200
    return Answer(status=status, body=encode(message))


def encode(message: Mapping[str, Any]) -> bytes:
    """Compact strict JSON, in UTF-8, non-ASCII characters as they are."""
    return dumps(message).encode()
