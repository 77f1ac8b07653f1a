"""A client that knows nothing but the URL: it finds out where to log in, and ends a call."""

import json
import socket
from collections.abc import Generator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import httpx2
import mcp_types
import pytest
from mcp import Client, MCPError
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from core.protocol import LATEST
from tests.authorization_server import AuthorizationServer, authorization_server
from tests.served import Served, serving

pytestmark = pytest.mark.anyio

CALLBACK = "http://localhost:3030/callback"


@pytest.fixture
def login() -> Generator[AuthorizationServer]:
    with authorization_server() as server:
        yield server


@pytest.fixture
def guarded(shared_database: str, login: AuthorizationServer) -> Generator[Served]:
    """A served process whose callers log in there."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environ = {
        "INTERMEZZO_PUBLIC_URL": f"http://127.0.0.1:{port}/mcp",
        "INTERMEZZO_JWT_ISSUER": login.issuer,
        "INTERMEZZO_JWT_JWKS": f"{login.issuer}/jwks",
        "INTERMEZZO_JWT_SCOPES": "agents:call",
    }
    with serving(shared_database, environ=environ, arguments=("--port", str(port))) as process:
        yield process


@dataclass
class Browser:
    """A person's browser and disk: it goes where it is sent, and keeps what it is given."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    came_to: list[str] = field(default_factory=list[str])

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def go(self, url: str) -> None:
        async with httpx2.AsyncClient() as http:
            self.came_to.append((await http.get(url)).headers["location"])

    async def came_back(self) -> AuthorizationCodeResult:
        query = {name: one for name, (one,) in parse_qs(urlsplit(self.came_to[-1]).query).items()}
        return AuthorizationCodeResult(code=query["code"], state=query["state"], iss=query["iss"])

    def provider(self, url: str) -> OAuthClientProvider:
        return OAuthClientProvider(
            server_url=url,
            client_metadata=OAuthClientMetadata(
                client_name="a client", redirect_uris=[AnyUrl(CALLBACK)]
            ),
            storage=self,
            redirect_handler=self.go,
            callback_handler=self.came_back,
        )


async def call(url: str, browser: Browser, login: AuthorizationServer, *, between: str = "") -> str:
    """The text that a call of the greeter ends in, which asks one question on the way.

    Args:
        between: who is logged in by the time of the answer, with a fresh token.
    """

    async def answer(
        context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult:
        if between:
            login.person = between
            browser.tokens = None
            provider.context.clear_tokens()
        return mcp_types.ElicitResult(action="accept", content={"name": "Ada"})

    provider = browser.provider(url)
    async with httpx2.AsyncClient(auth=provider, timeout=30) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=LATEST, elicitation_callback=answer) as client:
            try:
                (block,) = (await client.call_tool("greeter", {})).content
            except MCPError as error:
                return error.error.message
            assert isinstance(block, mcp_types.TextContent)
            return block.text


async def test_a_client_logs_in_and_ends_a_call_that_paused(
    guarded: Served, login: AuthorizationServer
) -> None:
    browser = Browser()
    text = await call(guarded.url, browser, login)
    assert json.loads(text) == {"greeting": "Hello, Ada!"}
    assert len(browser.came_to) == 1
    assert login.grants == ["authorization_code"]
    assert browser.tokens is not None
    assert browser.tokens.scope == "agents:call"
    assert browser.tokens.access_token not in guarded.log()


async def test_a_token_that_is_refreshed_between_two_rounds_changes_nothing(
    guarded: Served, login: AuthorizationServer
) -> None:
    login.lifetime = 0  # so that the client refreshes before each request
    text = await call(guarded.url, Browser(), login)
    assert json.loads(text) == {"greeting": "Hello, Ada!"}
    assert login.grants[0] == "authorization_code"
    assert "refresh_token" in login.grants


async def test_a_person_who_logs_in_anew_between_two_rounds_is_still_the_same(
    guarded: Served, login: AuthorizationServer
) -> None:
    browser = Browser()
    text = await call(guarded.url, browser, login, between="ada")
    assert json.loads(text) == {"greeting": "Hello, Ada!"}
    assert len(browser.came_to) == 2


async def test_another_person_who_logs_in_between_two_rounds_gets_nothing(
    guarded: Served, login: AuthorizationServer
) -> None:
    text = await call(guarded.url, Browser(), login, between="bob")
    assert text == "Invalid or expired requestState"
