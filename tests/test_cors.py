"""What browsers are told: nothing, until the deployment lists the pages that may call."""

from collections.abc import Generator

import httpx
import pytest

from core.request_state import make_key
from handler.cors import Cors
from handler.headers import Headers
from tests.served import Served, post, result, serving

APP = "https://app.example.com"
PREFLIGHT = {
    "Origin": APP,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization, content-type, mcp-param-region",
}


@pytest.fixture(scope="module")
def listing(shared_database: str) -> Generator[Served]:
    """A process that lists one origin, and wants to know who calls."""
    environ = {
        "INTERMEZZO_ALLOWED_ORIGINS": APP,
        "INTERMEZZO_API_KEYS": f"app:{make_key()}",
        "INTERMEZZO_PUBLIC_URL": "http://localhost:8000/mcp",
        "INTERMEZZO_AUTHORIZATION_SERVERS": "https://login.example.com",
    }
    with serving(shared_database, environ=environ) as process:
        yield process


def said(response: httpx.Response) -> set[str]:
    """The CORS headers of an answer."""
    return {name for name in response.headers if name.startswith("access-control-")}


def test_a_browser_is_told_nothing_unless_origins_are_listed(served: Served) -> None:
    local = {**PREFLIGHT, "Origin": "http://localhost:5173"}
    asked = httpx.options(served.url, headers=local)
    assert asked.status_code == 405
    answered = post(served.url, "tools/list", headers={"Origin": "http://localhost:5173"})
    assert result(answered)
    assert said(asked) == said(answered) == set()


def test_a_welcome_page_may_ask_before_it_calls_whoever_it_is(listing: Served) -> None:
    asked = httpx.options(listing.url, headers=PREFLIGHT)
    assert (asked.status_code, asked.content) == (204, b"")
    assert asked.headers["access-control-allow-origin"] == APP
    assert (
        asked.headers["access-control-allow-headers"]
        == (PREFLIGHT["Access-Control-Request-Headers"])
    )
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in asked.headers


def test_a_welcome_page_gets_to_read_every_answer_and_its_challenge(listing: Served) -> None:
    refused = post(listing.url, "tools/list", headers={"Origin": APP})
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == APP
    assert refused.headers["access-control-expose-headers"] == "WWW-Authenticate"
    assert refused.headers["vary"] == "Origin"
    root = listing.url.removesuffix("/mcp")
    document = f"{root}/.well-known/oauth-protected-resource"
    told = httpx.get(document, headers={"Origin": APP})
    assert (told.status_code, told.headers["access-control-allow-origin"]) == (200, APP)
    assert httpx.options(document, headers=PREFLIGHT).status_code == 204


@pytest.mark.parametrize("origin", ["https://evil.example.com", "null", "http://localhost:8000"])
def test_another_page_is_refused_and_told_nothing(listing: Served, origin: str) -> None:
    for response in (
        httpx.options(listing.url, headers={**PREFLIGHT, "Origin": origin}),
        post(listing.url, "tools/list", headers={"Origin": origin}),
    ):
        assert response.status_code == 403
        assert said(response) == set()


def test_whoever_is_no_browser_is_told_nothing_either(listing: Served) -> None:
    refused = post(listing.url, "tools/list")
    assert refused.status_code == 401
    assert said(refused) == set()
    assert httpx.options(listing.url).status_code == 405


def test_every_page_may_call_where_the_list_says_so_but_only_under_our_name(
    shared_database: str,
) -> None:
    with serving(shared_database, environ={"INTERMEZZO_ALLOWED_ORIGINS": "*"}) as process:
        answered = post(process.url, "tools/list", headers={"Origin": APP})
        assert result(answered)
        assert answered.headers["access-control-allow-origin"] == APP
        renamed = post(
            process.url, "tools/list", headers={"Origin": APP, "Host": "app.example.com"}
        )
        assert renamed.status_code == 421


def test_a_header_name_that_is_none_is_not_given_back() -> None:
    asked = Headers(
        [
            (b"origin", APP.encode()),
            (b"access-control-request-method", b"POST"),
            (b"access-control-request-headers", b"a, b;c"),
        ]
    )
    answer = Cors(on=True).preflight(asked)
    assert answer is not None
    assert "access-control-allow-headers" not in answer.headers
    assert Cors(on=False).preflight(asked) is None
