"""Calls that belong to whoever started them, over HTTP: tokens, keys, and nobody at all."""

import json
import re
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.request_state import make_key
from tests.in_process import Deployment, deployment
from tests.issuer import NAME, key_set, public, published, rsa_key, token
from tests.served import META, Served, error, post, result, run, serving
from tests.tables import everything, rows

pytestmark = pytest.mark.anyio

RESOURCE = "http://localhost:8000/mcp"
METADATA = "http://localhost:8000/.well-known/oauth-protected-resource/mcp"
ADA = {"name": "Ada"}


def ada(**changes: Any) -> str:
    claims: dict[str, Any] = {"aud": RESOURCE, "scope": "call", **changes}
    return token(**claims)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The settings of a deployment that verifies tokens."""
    file = tmp_path_factory.mktemp("issuer") / "jwks.json"
    file.write_bytes(key_set(public(rsa_key(), kid="a")))
    return {
        "INTERMEZZO_JWT_ISSUER": NAME,
        "INTERMEZZO_JWT_JWKS": str(file),
        "INTERMEZZO_JWT_SCOPES": "call",
        "INTERMEZZO_PUBLIC_URL": RESOURCE,
    }


@pytest.fixture(scope="module")
def guarded(shared_database: str, keys: dict[str, str]) -> Generator[Served]:
    """A served process that verifies tokens."""
    with serving(shared_database, environ=keys) as process:
        yield process


def bearer(value: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {value}"}


# What a client meets on its way in.


@pytest.mark.parametrize("method", ["server/discover", "tools/list", "tools/call", "unknown"])
def test_every_method_asks_who_calls(guarded: Served, method: str) -> None:
    refused = post(guarded.url, method, name="greeter", arguments={})
    assert refused.status_code == 401
    assert error(refused)["code"] == -32600
    assert refused.json()["id"] == 1
    assert refused.headers["content-type"] == "application/json"
    assert refused.headers["www-authenticate"] == (
        f'Bearer scope="call", resource_metadata="{METADATA}"'
    )


def test_a_notification_and_what_is_no_message_ask_as_well(guarded: Served) -> None:
    for content in (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', b"{", b""):
        refused = httpx.post(guarded.url, content=content)
        assert refused.status_code == 401
        assert "id" not in refused.json()


def test_an_older_client_is_asked_at_401_too(guarded: Served) -> None:
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {}}
    refused = httpx.post(guarded.url, json=body)
    assert (refused.status_code, refused.json()["id"]) == (401, 3)


def test_a_token_that_is_not_valid_is_401_and_one_that_grants_too_little_403(
    guarded: Served,
) -> None:
    wrong = post(guarded.url, "tools/list", headers=bearer(ada(aud="https://other.example")))
    assert wrong.status_code == 401
    assert wrong.headers["www-authenticate"] == (
        f'Bearer error="invalid_token", scope="call", resource_metadata="{METADATA}"'
    )
    little = post(guarded.url, "tools/list", headers=bearer(ada(scope="other")))
    assert little.status_code == 403
    assert little.headers["www-authenticate"] == (
        f'Bearer error="insufficient_scope", scope="call", resource_metadata="{METADATA}"'
    )
    assert error(little)["code"] == -32600


def test_a_token_in_the_url_opens_nothing(guarded: Served) -> None:
    in_url = f"{guarded.url}?access_token={ada()}"
    assert post(in_url, "tools/list").status_code == 401
    assert post(in_url, "tools/list", headers=bearer(ada())).status_code == 400


def test_a_large_message_is_refused_for_its_token_and_the_client_gets_to_read_it(
    guarded: Served,
) -> None:
    refused = post(guarded.url, "tools/call", name="echo", arguments={"message": "x" * 3_000_000})
    assert refused.status_code == 401


def test_where_to_log_in_is_told_to_everybody_at_both_places(guarded: Served) -> None:
    root = guarded.url.removesuffix("/mcp")
    for path in (
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource",
    ):
        told = httpx.get(root + path)
        assert told.status_code == 200
        assert told.headers["content-type"] == "application/json"
        assert told.headers["cache-control"] == "public, max-age=300"
        assert told.json() == {
            "resource": RESOURCE,
            "authorization_servers": [NAME],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["call"],
            "resource_name": "intermezzo",
        }
    head = httpx.head(f"{root}/.well-known/oauth-protected-resource")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == "application/json"
    assert httpx.post(f"{root}/.well-known/oauth-protected-resource").status_code == 405
    assert httpx.get(f"{root}/.well-known/oauth-protected-resource/other").status_code == 404
    assert httpx.get(f"{root}/healthz").status_code == 200


def test_the_document_names_the_configured_url_whatever_the_host_header_says(
    guarded: Served,
) -> None:
    url = guarded.url.replace("/mcp", "/.well-known/oauth-protected-resource")
    told = httpx.get(url, headers={"Host": "127.0.0.1:99"})
    assert told.json()["resource"] == RESOURCE


def test_without_a_source_there_is_nothing_to_log_in_at(served: Served) -> None:
    root = served.url.removesuffix("/mcp")
    assert httpx.get(f"{root}/.well-known/oauth-protected-resource").status_code == 404


def test_a_list_is_private_once_callers_are_known(guarded: Served, served: Served) -> None:
    for method in ("tools/list", "server/discover"):
        listed = result(post(guarded.url, method, headers=bearer(ada())))
        assert listed["cacheScope"] == "private"
        assert result(post(served.url, method))["cacheScope"] == "public"


# Whose call it is.


@pytest.fixture
def settings(keys: dict[str, str]) -> dict[str, str]:
    return keys


async def asked(here: Deployment, caller: str) -> dict[str, Any]:
    return result(await here.call("greeter", caller))


async def test_the_caller_who_started_a_call_ends_it_with_any_token_of_its_own(
    database: str, settings: dict[str, str]
) -> None:
    async with deployment(database, environ=settings) as here:
        questions = await asked(here, ada())
        new = ada(jti="another", exp=int(time.time()) + 60)
        ended = result(await here.call("greeter", new, asked=questions, answer=ADA))
        assert ended["content"][0]["text"] == '{"greeting":"Hello, Ada!"}'


@pytest.mark.parametrize(
    "other", [{"sub": "bob"}, {"client_id": "phone"}, {"client_id": None}, {"sub": "Ada"}]
)
async def test_another_principals_state_is_as_good_as_a_forged_one_and_the_round_stays(
    database: str, settings: dict[str, str], other: dict[str, Any]
) -> None:
    async with deployment(database, environ=settings) as here:
        questions = await asked(here, ada())
        before = rows(database)
        foreign = await here.call("greeter", ada(**other), asked=questions, answer=ADA)
        forged = {**questions, "requestState": questions["requestState"][:-1] + "~"}
        tampered = await here.call("greeter", ada(), asked=forged, answer=ADA)
        assert foreign.status_code == tampered.status_code == 400
        assert foreign.content == tampered.content
        assert error(foreign) == {"code": -32602, "message": "Invalid or expired requestState"}
        assert rows(database) == before
        assert "content" in result(await here.call("greeter", ada(), asked=questions, answer=ADA))


async def test_a_principal_that_is_claimed_in_the_message_counts_for_nothing(
    database: str, settings: dict[str, str]
) -> None:
    async with deployment(database, environ=settings) as here:
        questions = await asked(here, ada())
        claims: dict[str, Any] = {
            "principal": "ada",
            "_meta": {**META, "principal": "ada", "sub": "ada"},
        }
        foreign = await here.call(
            "greeter", ada(sub="bob"), asked=questions, headers={"X-User": "ada"}, **claims
        )
        assert error(foreign)["message"] == "Invalid or expired requestState"


async def test_a_call_that_somebody_started_is_not_nobodys_nor_the_reverse(
    database: str, settings: dict[str, str]
) -> None:
    open_door = {"INTERMEZZO_PUBLIC_URL": settings["INTERMEZZO_PUBLIC_URL"]}
    async with (
        deployment(database, environ=settings) as known,
        deployment(database, environ=open_door) as anonymous,
    ):
        hers = await asked(known, ada())
        assert error(await anonymous.call("greeter", asked=hers))["code"] == -32602
        assert (await known.call("greeter", asked=hers)).status_code == 401
        nobodys = await asked(anonymous, "")
        assert error(await known.call("greeter", ada(), asked=nobodys))["code"] == -32602
        # A token that nobody asked for does not make somebody of its bearer.
        kept = await anonymous.call("greeter", ada(), asked=nobodys, answer=ADA)
        assert "content" in result(kept)


async def test_a_state_of_another_deployment_is_refused(
    database: str, settings: dict[str, str]
) -> None:
    elsewhere = "https://other.example.com/mcp"
    async with (
        deployment(database, environ=settings) as here,
        deployment(database, environ={**settings, "INTERMEZZO_PUBLIC_URL": elsewhere}) as there,
    ):
        questions = await asked(here, ada())
        foreign = await there.call("greeter", ada(aud=elsewhere), asked=questions)
        assert error(foreign)["message"] == "Invalid or expired requestState"
        assert (await there.call("greeter", ada(), asked=questions)).status_code == 401


async def test_keys_are_replaced_in_three_steps_without_a_failed_retry(
    database: str, settings: dict[str, str]
) -> None:
    old, new = make_key(), make_key()
    started: list[dict[str, Any]] = []
    for step in (old, f"{old},{new}", f"{new},{old}", new):
        async with deployment(database, environ={**settings, "REQUEST_STATE_KEYS": step}) as here:
            if step != new:
                for questions in started:
                    answer = await here.call("greeter", ada(), asked=questions, answer=ADA)
                    assert "content" in result(answer)
                    again = await here.call("greeter", ada(), asked=questions, answer=ADA)
                    assert again.json() == answer.json()
                started.append(await asked(here, ada()))
            else:
                refused = await here.call("greeter", ada(), asked=started[0], answer=ADA)
                assert error(refused)["message"] == "Invalid or expired requestState"
                answer = await here.call("greeter", ada(), asked=started[-1], answer=ADA)
                assert "content" in result(answer)


async def test_an_issuers_key_is_replaced_without_a_failed_request(
    database: str, settings: dict[str, str]
) -> None:
    with published(key_set(public(rsa_key(), kid="a"), public(rsa_key(1), kid="b"))) as issuer:
        environ = {**settings, "INTERMEZZO_JWT_JWKS": issuer.url}
        async with deployment(database, environ=environ) as here:
            questions = await asked(here, ada())
            issuer.status = 503
            new = token(rsa_key(1), kid="b", aud=RESOURCE, scope="call")
            assert "content" in result(await here.call("greeter", new, asked=questions, answer=ADA))
            for number in range(50):
                flood = token(kid=f"unknown-{number}", aud=RESOURCE, scope="call")
                assert (await here.call("greeter", flood)).status_code == 401
            assert len(issuer.fetches) <= 2
            assert await asked(here, ada())


async def test_an_issuer_that_is_down_at_the_start_is_waited_for(
    database: str, settings: dict[str, str]
) -> None:
    with published(key_set(public(rsa_key(), kid="a"))) as issuer:
        issuer.status = 503
        environ = {**settings, "INTERMEZZO_JWT_JWKS": issuer.url}
        async with deployment(database, environ=environ) as here:
            refused = await here.call("greeter", ada())
            assert refused.status_code == 200
            assert error(refused)["code"] == 1001
            assert error(refused)["data"]["retryAfterMs"] > 0


# What is kept and said of a caller.


def test_no_token_and_no_claim_is_in_any_log_or_table(database: str, keys: dict[str, str]) -> None:
    claims = {"sub": "subject-8731", "client_id": "client-5520", "email": "mail-9921@example.com"}
    good, bad = ada(**claims), ada(**claims, exp=int(time.time()) - 100)
    with serving(database, environ=keys) as process:
        call: dict[str, Any] = {"name": "greeter", "arguments": {}}
        questions = result(post(process.url, "tools/call", **call, headers=bearer(good)))
        retry = {
            "requestState": questions["requestState"],
            "inputResponses": {"user_name": {"action": "accept", "content": ADA}},
        }
        kept = everything(database)
        assert "What is your name?" in kept
        assert post(process.url, "tools/list", headers=bearer(bad)).status_code == 401
        assert post(process.url, f"tools/list?access_token={good}").status_code == 401
        foreign = ada(sub="bob", email="mail-9921@example.com")
        assert error(post(process.url, "tools/call", **call, **retry, headers=bearer(foreign)))
        result(post(process.url, "tools/call", **call, **retry, headers=bearer(good)))
        kept += everything(database)
        log = process.log()
    assert "refused" in log
    for text in (kept, log):
        for secret in (good, bad, foreign, *claims.values(), questions["requestState"]):
            assert secret not in text
        for secret in (good, bad, foreign, questions["requestState"]):
            assert secret.split(".")[-1] not in text


def test_the_log_names_the_api_key_that_called_and_never_shows_it(database: str) -> None:
    key = make_key()
    with serving(database, environ={"INTERMEZZO_API_KEYS": f"robot-17:{key}"}) as process:
        assert post(process.url, "tools/list").status_code == 401
        listed = post(process.url, "tools/list", headers={"X-API-Key": key})
        assert result(listed)["cacheScope"] == "private"
        refused, called = process.log().splitlines()
        assert '"key": "robot-17"' in called
        assert '"key"' not in refused
        assert key not in process.log()


# Starting, or not.


def test_a_source_that_is_half_made_keeps_the_server_from_starting(database: str) -> None:
    ended = run(
        *("serve", "--port", "0"),
        DATABASE_URL=database,
        REQUEST_STATE_KEYS=make_key(),
        INTERMEZZO_JWT_ISSUER=NAME,
        INTERMEZZO_API_KEYS="ada:short",
    )
    assert ended.returncode == 1
    told = ended.stderr.splitlines()
    assert len(told) == 4
    assert all(re.match(r"INTERMEZZO_\w+", line) for line in told)
    assert "short" not in ended.stderr


def test_a_gateway_is_believed_by_no_server_that_stands_alone(database: str) -> None:
    ended = run(
        *("serve", "--port", "0"),
        DATABASE_URL=database,
        REQUEST_STATE_KEYS=make_key(),
        INTERMEZZO_GATEWAY="http-api-jwt",
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("INTERMEZZO_GATEWAY is set, and no gateway stands here")


def test_a_custom_auth_that_can_not_be_loaded_keeps_the_server_from_starting(
    database: str, tmp_path: Path
) -> None:
    config = tmp_path / "langgraph.json"
    (tmp_path / "agent.py").write_text((Path("agents") / "echo.py").read_text())
    config.write_text(
        json.dumps({"graphs": {"echo": "./agent.py:graph"}, "auth": {"path": "./auth.py:auth"}})
    )
    ended = run(
        *("serve", "--port", "0", "--config", str(config)),
        DATABASE_URL=database,
        REQUEST_STATE_KEYS=make_key(),
    )
    assert ended.returncode == 1
    assert "auth.path: ./auth.py:auth: importing it failed" in ended.stderr
    assert "Traceback" not in ended.stderr
