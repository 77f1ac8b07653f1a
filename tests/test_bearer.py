"""Access tokens: which are believed, and what the others are told."""

import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from core.errors import RetryLater
from handler.bearer import USUAL, BearerTokens
from handler.challenge import Challenge
from handler.jwks import Jwks, parse
from handler.principal import principal
from handler.refusals import BadCredentials, Forbidden, HttpRefusal, Unauthorized
from tests.issuer import (
    NAME,
    RESOURCE,
    claims,
    ec_key,
    key_set,
    public,
    rsa_key,
    token,
    unsigned,
)
from tests.visits import bearer, visit

pytestmark = pytest.mark.anyio

KEYS = key_set(public(rsa_key(), kid="a"), public(ec_key(), kid="e"))


def tokens(
    *, keys: bytes = KEYS, scopes: tuple[str, ...] = (), algorithms: tuple[str, ...] = USUAL
) -> BearerTokens:
    async def read() -> bytes:
        return keys

    return BearerTokens(
        issuer=NAME,
        audiences=[RESOURCE],
        algorithms=algorithms,
        jwks=Jwks(read),
        challenge=Challenge(metadata="https://mcp.example.com/.well-known/x", scopes=scopes),
    )


async def refusal(source: BearerTokens, *fields: tuple[str, str]) -> HttpRefusal:
    with pytest.raises(HttpRefusal) as raised:
        await source.identify(visit(*fields))
    return raised.value


async def refused(given: str) -> str:
    """The reason in the log for a token that must be refused as not valid."""
    told = await refusal(tokens(), bearer(given))
    assert isinstance(told, Unauthorized)
    assert 'error="invalid_token"' in told.headers["www-authenticate"]
    assert len(given) < 10 or given not in told.message + told.reason
    return told.reason


async def test_the_principal_is_issuer_subject_and_client() -> None:
    caller = await tokens().identify(visit(bearer(token())))
    assert caller.principal == principal(NAME, "ada", "desktop")
    assert caller.threads is None


async def test_a_new_token_of_the_same_subject_and_client_is_the_same_principal() -> None:
    source = tokens()
    first = await source.identify(visit(bearer(token(jti="1"))))
    second = await source.identify(visit(bearer(token(jti="2", exp=from_now(60)))))
    assert first.principal == second.principal


@pytest.mark.parametrize("changes", [{"sub": "bob"}, {"client_id": "phone"}, {"client_id": None}])
async def test_another_subject_or_client_is_another_principal(changes: dict[str, Any]) -> None:
    source = tokens()
    ada = await source.identify(visit(bearer(token())))
    other = await source.identify(visit(bearer(token(**changes))))
    assert ada.principal != other.principal


def test_parts_of_a_principal_can_not_be_moved_between_them() -> None:
    tricks = [("a", "b", "c"), ("a", 'b","c', ""), ("a,b", "c", ""), ("a", "b", ""), ("", "a", "b")]
    assert len({principal(*parts) for parts in tricks}) == len(tricks)
    assert principal("", "", "") != ""


async def test_the_agent_sees_the_subject_and_what_was_granted_and_no_claim_besides() -> None:
    caller = await tokens().identify(visit(bearer(token(scope="read write", email="a@b.c"))))
    user = caller.configurable["langgraph_auth_user"]
    assert user.identity == "ada"
    assert caller.configurable["langgraph_auth_permissions"] == ["read", "write"]
    assert "email" not in user
    assert "ada" not in repr(caller)
    assert "ada" not in repr(user)


async def test_the_other_algorithm_of_the_list_is_believed_too() -> None:
    given = token(ec_key(), kid="e", algorithm="ES256")
    assert (await tokens().identify(visit(bearer(given)))).principal


async def test_an_audience_among_others_is_enough() -> None:
    given = token(aud=["https://other.example.com", RESOURCE])
    assert (await tokens().identify(visit(bearer(given)))).principal


# What is not believed.


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"aud": "https://other.example.com/mcp"}, "InvalidAudienceError"),
        ({"aud": RESOURCE + "/"}, "InvalidAudienceError"),
        ({"aud": []}, "MissingRequiredClaimError"),
        ({"iss": "https://evil.example.com/"}, "InvalidIssuerError"),
        ({"iss": NAME.rstrip("/")}, "InvalidIssuerError"),
        ({"exp": None}, "MissingRequiredClaimError"),
        ({"aud": None}, "MissingRequiredClaimError"),
        ({"iss": None}, "MissingRequiredClaimError"),
        ({"sub": None}, "MissingRequiredClaimError"),
        ({"sub": ""}, "the subject is empty"),
    ],
)
async def test_a_token_that_is_not_for_us_is_refused(changes: dict[str, Any], reason: str) -> None:
    assert await refused(token(**changes)) == reason


def from_now(seconds: int) -> int:
    return int(time.time()) + seconds


@pytest.mark.parametrize(
    ("claim", "seconds", "reason"),
    [("exp", -60, "ExpiredSignatureError"), ("nbf", 60, "ImmatureSignatureError")],
)
async def test_a_token_that_is_not_for_now_is_refused(
    claim: str, seconds: int, reason: str
) -> None:
    changes: dict[str, Any] = {claim: from_now(seconds)}
    assert await refused(token(**changes)) == reason


@pytest.mark.parametrize(("claim", "seconds"), [("exp", -10), ("nbf", 10)])
async def test_clocks_may_differ_by_some_seconds(claim: str, seconds: int) -> None:
    changes: dict[str, Any] = {claim: from_now(seconds)}
    assert (await tokens().identify(visit(bearer(token(**changes))))).principal


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", ""])
@pytest.mark.parametrize("signature", [b"", b"anything"])
async def test_none_is_no_algorithm(algorithm: str, signature: bytes) -> None:
    given = unsigned({"alg": algorithm, "kid": "a"}, claims(), signature)
    assert await refused(given) in ("the algorithm is not allowed", "DecodeError")


async def test_the_public_key_is_no_secret_to_sign_with() -> None:
    pem = (
        rsa_key()
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    for secret in (pem, json.dumps(public(rsa_key(), kid="a")).encode(), b""):
        for algorithm in ("HS256", "RS256", "ES256"):
            head = unsigned({"alg": algorithm, "kid": "a"}, claims()).rstrip(".")
            mac = hmac.new(secret, head.encode(), hashlib.sha256).digest()
            await refused(unsigned({"alg": algorithm, "kid": "a"}, claims(), mac))


async def test_an_algorithm_that_is_not_allowed_is_refused_however_good_the_signature() -> None:
    assert await refused(token(algorithm="RS512")) == "the algorithm is not allowed"
    assert await refused(token(algorithm="PS256")) == "the algorithm is not allowed"


async def test_a_key_that_is_published_for_one_algorithm_verifies_no_other() -> None:
    keys = key_set(public(rsa_key(), kid="a", alg="PS256"))
    source = tokens(keys=keys, algorithms=("RS256", "PS256"))
    assert (await source.identify(visit(bearer(token(algorithm="PS256"))))).principal
    told = await refusal(source, bearer(token(algorithm="RS256")))
    assert told.reason == "no key of the issuer fits"


async def test_a_key_that_the_token_brings_along_counts_for_nothing() -> None:
    mine = rsa_key(1)
    header = {"jwk": public(mine, kid="a"), "jku": "https://evil.example.com/jwks"}
    assert await refused(token(mine, header=header)) == "InvalidSignatureError"


async def test_a_token_signed_by_another_key_of_that_id_is_refused() -> None:
    assert await refused(token(rsa_key(1))) == "InvalidSignatureError"


async def test_a_key_too_short_to_be_safe_is_refused() -> None:
    short = rsa_key(0, 1024)
    source = tokens(keys=key_set(public(short, kid="s")))
    with pytest.warns(match="below the minimum"):
        given = token(short, kid="s")
    assert isinstance(await refusal(source, bearer(given)), Unauthorized)


async def test_a_secret_in_the_key_set_verifies_nothing() -> None:
    secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "a", "alg": "RS256"}
    with pytest.raises(ValueError, match="no usable keys"):
        parse(key_set(secret))


@pytest.mark.parametrize("header", [{"crit": ["exp"]}, {"b64": False, "crit": ["b64"]}])
async def test_a_header_that_must_be_understood_and_is_not_refuses_the_token(
    header: dict[str, Any],
) -> None:
    signed = token()
    _, payload, signature = signed.split(".")
    head = unsigned({"alg": "RS256", "kid": "a", **header}, {}).partition(".")[0]
    await refused(f"{head}.{payload}.{signature}")


@pytest.mark.parametrize(
    "given",
    [
        "a",
        "a.b.c",
        "..",
        "a.b.c.d.e",
        "e30.e30.",
        "A" * 20_000,
        unsigned({"alg": ["RS256"]}, {}),
        unsigned({"alg": "RS256", "kid": {"a": 1}}, {}),
        "W1tbW1tb" * 1_500 + ".e30.e30",
    ],
)
async def test_what_is_no_token_is_refused_as_one_that_is_not_valid(given: str) -> None:
    await refused(given)


async def test_a_subject_that_is_no_string_or_not_unicode_is_no_fault() -> None:
    await refused(token(sub=["ada"]))
    caller = await tokens().identify(visit(bearer(token(sub="\ud800"))))
    assert caller.principal == principal(NAME, "\ud800", "desktop")
    caller.principal.encode()


# Scopes.


@pytest.mark.parametrize(
    "changes",
    [
        {"scope": "other call list"},
        {"scp": ["call", "list"]},
        {"scp": "list call"},
    ],
)
async def test_every_scope_must_be_granted_in_whichever_claim(changes: dict[str, Any]) -> None:
    source = tokens(scopes=("call", "list"))
    assert (await source.identify(visit(bearer(token(**changes))))).principal


@pytest.mark.parametrize(
    "changes", [{}, {"scope": "call"}, {"scope": "calls list"}, {"scope": 5}, {"scp": [5]}]
)
async def test_too_little_scope_is_403_with_all_that_is_needed(changes: dict[str, Any]) -> None:
    told = await refusal(tokens(scopes=("call", "list")), bearer(token(**changes)))
    assert isinstance(told, Forbidden)
    assert told.headers["www-authenticate"] == (
        'Bearer error="insufficient_scope", scope="call list",'
        ' resource_metadata="https://mcp.example.com/.well-known/x"'
    )


# Where a token may stand.


async def test_without_credentials_the_challenge_has_no_error() -> None:
    told = await refusal(tokens(scopes=("call",)))
    assert isinstance(told, Unauthorized)
    assert told.headers["www-authenticate"] == (
        'Bearer scope="call", resource_metadata="https://mcp.example.com/.well-known/x"'
    )


async def test_two_tokens_are_malformed() -> None:
    assert isinstance(await refusal(tokens(), bearer(token()), bearer(token())), BadCredentials)


@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer ", "Basic YTpi", "{token}", "Bearer a b", "Bearer {token},x"]
)
async def test_a_header_without_a_bearer_token_is_as_good_as_none(value: str) -> None:
    told = await refusal(tokens(), ("Authorization", value.replace("{token}", token())))
    assert isinstance(told, Unauthorized)
    assert "error" not in told.headers["www-authenticate"]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_is_read_without_case(scheme: str) -> None:
    assert await tokens().identify(visit(("Authorization", f"{scheme} {token()}")))


async def test_an_issuer_that_was_never_reached_is_no_reason_to_log_in_anew() -> None:
    async def down() -> bytes:
        raise OSError

    source = BearerTokens(
        issuer=NAME,
        audiences=[RESOURCE],
        algorithms=USUAL,
        jwks=Jwks(down),
        challenge=Challenge(),
    )
    with pytest.raises(RetryLater):
        await source.identify(visit(bearer(token())))
