"""Requests as a source of identity sees them."""

import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from handler.body import Body
from handler.headers import Headers
from handler.visit import Visit


def visit(
    *fields: tuple[str, str],
    query: str = "",
    body: bytes = b"{}",
    limit: int = 1_000,
    scope: Mapping[str, Any] | None = None,
) -> Visit:
    """A POST with these header fields; `scope` adds to its ASGI scope."""
    sent = False

    async def receive() -> dict[str, Any]:
        nonlocal sent
        assert not sent, "the body is read once"
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    lines = [(name.lower().encode(), value.encode()) for name, value in fields]
    http = Request(
        {
            "type": "http",
            "method": "POST",
            "path": "/mcp",
            "query_string": query.encode(),
            "headers": lines,
            "server": ("mcp.example.com", 443),
            "scheme": "https",
            **(scope or {}),
        },
        receive,
    )
    headers = Headers(lines)
    return Visit(http, headers, Body(http, headers, limit, time.monotonic() + 60))


def bearer(token: str) -> tuple[str, str]:
    return ("Authorization", f"Bearer {token}")
