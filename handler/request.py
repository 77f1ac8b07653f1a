"""Headers and a body → one decoded request, a notification, or the first refusal.

Pure module: no I/O, no clock, no settings. It never raises for what a client sent.

Two eras share the endpoint, and the `MCP-Protocol-Version` header alone decides. A revision that
begins with `initialize`, or no header: an older client. Any other value, known or not, is held to
every rung below; the first that fails is the answer.

     1  Host, Origin           400, 421, 403   `handler.doors`
     2  HTTP method                 405        `handler.app`
     3  identity                    401, 403   `handler.identity`
     4  size, time                  413, 408   `handler.body`
     5  media type                  415
     6  JSON                        -32700, and what `handler.payload` calls a fault
     7  envelope                    -32600     one JSON-RPC 2.0 message with a usable id
     8  `_meta` present             -32602
     9  header equals `_meta`       -32020
    10  `Mcp-Method`, `Mcp-Name`    -32020
    11  version                     -32022
    12  `Mcp-Param-*`               -32020     `handler.param_headers`, by the tool's schema
    13  method                      -32601     `core.methods`
    14  params                      -32602     members of `_meta` here, all others in `core.methods`

An older client's request climbs 5 to 7, 13 and 14. It may not carry the newer revision in its
`_meta` under an older header: that is refused as 9 is, not guessed at. Nor may it contradict itself
in the headers of 10, which it need not send.

A refusal carries whatever could be read of the id, because clients drop an error without it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from core.caller import ANYONE, Caller
from core.errors import HeaderMismatch, InvalidParams, InvalidRequest, Refusal, UnsupportedVersion
from core.protocol import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    LATEST,
    SUPPORTED,
    VERSION_KEY,
    Request,
)
from handler.headers import Headers
from handler.meta import elicitation_modes, log_level, progress_token, traceparent
from handler.payload import Payload, encodable, parse
from handler.refusals import UnsupportedMediaType

VERSION: Final = "MCP-Protocol-Version"
METHOD: Final = "Mcp-Method"
NAME: Final = "Mcp-Name"

UNDECLARED: Final = "2025-03-26"
"""The revision of a client that sends no version header, by the transport's own rule."""

_SHORT: Final = 64 * 1024
"""Bytes of a body that are read for whoever is not known."""

_NAMELESS: Final = frozenset(("server/discover", "tools/list"))
"""Methods that name nothing: a `Mcp-Name` beside them contradicts the body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A message that wants no answer."""

    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A message that is answered with an error; `id` is None where none could be read.

    `modern` says whose rules the HTTP status of the answer follows.
    """

    refusal: Refusal
    id: str | int | float | None
    modern: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    """A JSON-RPC message whose envelope is in order; `id` is None in a notification."""

    id: str | int | float | None
    method: str
    params: Mapping[str, Any]


def decode(
    headers: Headers, body: bytes, *, caller: Caller = ANYONE
) -> Request | Notification | Refused:
    """Climbs rungs 5 to 11, and the members of `_meta` of 14."""
    modern = is_modern(headers)
    payload = parse(body)
    try:
        _check_media_type(headers)
        message = _envelope(payload)
        if message.id is None:
            return Notification(method=message.method)
        if modern:
            return _modern(headers, message, message.id, caller)
        return _older(headers, message, message.id, caller)
    except Refusal as refusal:
        # Only the newer revision knows -32020, and it is answered as that revision says.
        status_modern = modern or isinstance(refusal, HeaderMismatch)
        return Refused(refusal=refusal, id=_readable_id(payload.value), modern=status_modern)


def readable_id(body: bytes) -> str | int | float | None:
    """The id of a message that is refused unread, when it is short enough to look for it."""
    return _readable_id(parse(body).value) if len(body) <= _SHORT else None


def is_modern(headers: Headers) -> bool:
    """Whether the version header puts the request under the rules of the newest revision."""
    versions = headers.all(VERSION)
    return bool(versions) and not (len(versions) == 1 and versions[0] in HANDSHAKE)


def _check_media_type(headers: Headers) -> None:
    media_type = headers.first("Content-Type").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedMediaType("The Content-Type must be application/json.")
    if headers.first("Content-Encoding").lower() not in ("", "identity"):
        raise UnsupportedMediaType("The body must not be compressed.")


def _envelope(payload: Payload) -> _Message:
    if payload.fault is not None:
        raise payload.fault
    value = payload.value
    if isinstance(value, list):
        raise InvalidRequest("Batches are not taken: send each message in a request of its own.")
    if not isinstance(value, dict):
        raise InvalidRequest("The body must be one JSON-RPC message.")
    message = cast("dict[str, Any]", value)
    if message.get("jsonrpc") != "2.0":
        raise InvalidRequest('"jsonrpc" must be "2.0".')
    method = message.get("method")
    if not isinstance(method, str):
        raise InvalidRequest('"method" must be a string: responses are not taken here.')
    return _Message(id=_checked_id(message, method), method=method, params=_params(message))


def _checked_id(message: dict[str, Any], method: str) -> str | int | float | None:
    if "id" in message:
        if (identifier := _readable_id(message)) is None:
            raise InvalidRequest('"id" must be a string or a number.')
        return identifier
    if not method.startswith("notifications/"):
        raise InvalidRequest('A request needs an "id".')
    return None


def _readable_id(message: object) -> str | int | float | None:
    """The id as it can be sent back, or None."""
    if not isinstance(message, dict):
        return None
    identifier = cast("dict[str, Any]", message).get("id")
    match identifier:
        case bool():
            return None
        case float():
            return identifier if math.isfinite(identifier) else None
        case str():
            return identifier if encodable(identifier) else None
        case int():
            return identifier
        case _:
            return None


def _params(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise InvalidParams('"params" must be an object.')
    return cast("dict[str, Any]", params)


def _modern(
    headers: Headers, message: _Message, identifier: str | int | float, caller: Caller
) -> Request:
    meta = message.params.get("_meta")
    if not isinstance(meta, dict):
        raise InvalidParams(f'"params._meta" must be an object with "{VERSION_KEY}".')
    meta = cast("dict[str, Any]", meta)
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]:
        raise InvalidParams(f'"params._meta" lacks {" and ".join(map(repr, missing))}.')
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise InvalidParams(f'"{VERSION_KEY}" must be a string.')
    _check_equal(VERSION, headers.one(VERSION), version)
    _check_equal(METHOD, headers.one(METHOD), message.method)
    _check_name(headers, message)
    if version != LATEST:
        raise UnsupportedVersion(
            "Unsupported protocol version",
            data={"supported": list(SUPPORTED), "requested": version},
        )
    return Request(
        id=identifier,
        method=message.method,
        params=message.params,
        version=version,
        modes=elicitation_modes(meta[CAPABILITIES_KEY]),
        caller=caller,
        progress_token=progress_token(meta),
        log_level=log_level(meta),
        trace=traceparent(meta.get("traceparent")) or traceparent(headers.first("traceparent")),
    )


def _older(
    headers: Headers, message: _Message, identifier: str | int | float, caller: Caller
) -> Request:
    header = headers.first(VERSION)
    meta = message.params.get("_meta", {})
    if not isinstance(meta, dict):
        raise InvalidParams('"params._meta" must be an object.')
    meta = cast("dict[str, Any]", meta)
    if header and meta.get(VERSION_KEY, header) not in HANDSHAKE:
        _check_equal(VERSION, header, str(meta[VERSION_KEY]))
    if headers.all(METHOD):
        _check_equal(METHOD, headers.one(METHOD), message.method)
    if headers.all(NAME):
        _check_name(headers, message)
    return Request(
        id=identifier,
        method=message.method,
        params=message.params,
        version=header or UNDECLARED,
        caller=caller,
        progress_token=progress_token(meta),
        trace=traceparent(headers.first("traceparent")),
    )


def _check_name(headers: Headers, message: _Message) -> None:
    """`Mcp-Name` says what a call names; something on the way may have allowed it by that."""
    name = headers.decoded(NAME)
    if message.method in _NAMELESS and name is not None:
        raise HeaderMismatch(f"Header mismatch: {message.method} takes no {NAME} header")
    body = message.params.get("name")
    if message.method != "tools/call" or not (isinstance(body, str) or name is not None):
        return  # a call that names nothing, twice over, fails at the last rung
    _check_equal(NAME, name, body)


def _check_equal(field: str, header: str | None, body: object) -> None:
    if header is None:
        raise HeaderMismatch(f"Header mismatch: the {field} header is missing")
    if header != body:
        raise HeaderMismatch(
            f"Header mismatch: {field} header value {_shown(header)} does not match body value "
            f"{_shown(body)}"
        )


def _shown(value: object) -> str:
    """A client's own value, short enough to send back."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"
