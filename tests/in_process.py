"""The application in this process, without a socket: many deployments, quickly made."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from handler.app import build
from handler.resources import Resources
from handler.settings import Settings
from tests.calling import retry
from tests.served import EXAMPLES, KEY, message


@dataclass(frozen=True, slots=True)
class Deployment:
    """One deployment, and requests to it."""

    http: httpx.AsyncClient

    async def post(
        self, method: str, *, headers: Mapping[str, str] | None = None, **params: Any
    ) -> httpx.Response:
        """A request of the newest revision, with these params."""
        fields, body = message(method, id=7, headers=headers, **params)
        return await self.http.post("/mcp", headers=fields, json=body)

    async def call(
        self,
        name: str,
        caller: str = "",
        *,
        asked: Mapping[str, Any] | None = None,
        answer: Mapping[str, Any] = MappingProxyType({"response": "Ada"}),
        headers: Mapping[str, str] | None = None,
        **params: Any,
    ) -> httpx.Response:
        """A call by the bearer of a token; with what was asked, a retry that answers all of it."""
        fields = {**({"Authorization": f"Bearer {caller}"} if caller else {}), **(headers or {})}
        params = {"name": name, "arguments": {}, **params}
        if asked is not None:
            params |= retry(asked, **answer)
        return await self.post("tools/call", headers=fields, **params)


@asynccontextmanager
async def deployment(
    database: str, config: Path = EXAMPLES, *, environ: Mapping[str, str] | None = None
) -> AsyncGenerator[Deployment]:
    """A deployment with these variables, until the block ends."""
    variables = {"REQUEST_STATE_KEYS": KEY, "INTERMEZZO_CONFIG": str(config), **(environ or {})}
    resources = Resources(Settings.from_environ({"DATABASE_URL": database, **variables}))
    transport = httpx.ASGITransport(build(resources), raise_app_exceptions=True)
    try:
        async with httpx.AsyncClient(
            transport=transport, base_url="https://mcp.example.com"
        ) as http:
            yield Deployment(http)
    finally:
        await resources.close()
