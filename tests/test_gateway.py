"""Callers that AWS names: believed of an event in the shape that was named, and of nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handler.challenge import Challenge
from handler.gateway import EVENT, Gateway
from handler.lambdas import Process
from handler.principal import principal
from handler.refusals import Unauthorized
from tests.gateways import (
    ARN,
    AUTHORIZERS,
    IAM,
    HttpRequest,
    function_url,
    http_api,
    request,
    rest_api,
)
from tests.lambdas import ADA, GREETER, Context, starting
from tests.served import EXAMPLES, KEY
from tests.visits import visit

pytestmark = pytest.mark.anyio


def gateway(shape: str, key: str = "principalId") -> Gateway:
    return Gateway(shape, principal_key=key, challenge=Challenge())


def event(authorizer: Any, version: str | None) -> dict[str, Any]:
    named = {} if version is None else {"version": version}
    return {**named, "requestContext": {"authorizer": authorizer}}


async def named(shape: str, authorizer: Any, version: str | None, key: str = "principalId") -> str:
    scope = {EVENT: event(authorizer, version)}
    return (await gateway(shape, key).identify(visit(scope=scope))).principal


@pytest.mark.parametrize("shape", list(AUTHORIZERS))
async def test_each_shape_names_its_caller(shape: str) -> None:
    told = await named(shape, *AUTHORIZERS[shape])
    assert (
        told
        == {
            "http-api-jwt": principal("https://login.example.com/", "ada", "desktop"),
            "http-api-lambda": principal("lambda-authorizer", "ada"),
            "rest-api-cognito": principal("https://login.example.com/", "ada", "desktop"),
            "rest-api-lambda": principal("lambda-authorizer", "ada"),
            "iam": principal("iam", ARN),
        }[shape]
    )


@pytest.mark.parametrize("shape", list(AUTHORIZERS))
@pytest.mark.parametrize("other", list(AUTHORIZERS))
async def test_no_shape_is_believed_where_another_is_named(shape: str, other: str) -> None:
    if shape != other:
        with pytest.raises(Unauthorized):
            await named(shape, *AUTHORIZERS[other])


@pytest.mark.parametrize("shape", list(AUTHORIZERS))
async def test_an_event_of_the_other_payload_is_not_believed(shape: str) -> None:
    authorizer, version = AUTHORIZERS[shape]
    for wrong in ("1.0", None if version else "2.0", 2.0):
        with pytest.raises(Unauthorized):
            await gateway(shape).identify(visit(scope={EVENT: event(authorizer, wrong)}))  # pyright: ignore[reportArgumentType] - one is of a wrong type


@pytest.mark.parametrize("shape", list(AUTHORIZERS))
async def test_a_request_that_is_no_event_names_nobody_whatever_it_says(shape: str) -> None:
    claimed = json.dumps(event(*AUTHORIZERS[shape]))
    for field in (EVENT, "x-amzn-request-context", "x-amzn-oidc-identity", "authorization"):
        with pytest.raises(Unauthorized):
            await gateway(shape).identify(visit((field, claimed), body=claimed.encode()))


@pytest.mark.parametrize("shape", list(AUTHORIZERS))
@pytest.mark.parametrize("authorizer", [None, {}, [], "ada", {"jwt": None, "lambda": None}])
async def test_an_event_without_a_caller_names_nobody(shape: str, authorizer: Any) -> None:
    with pytest.raises(Unauthorized):
        await named(shape, authorizer, AUTHORIZERS[shape][1])


@pytest.mark.parametrize(
    "claims", [{"sub": "ada"}, {"iss": "a"}, {"iss": "a", "sub": ""}, {"iss": "a", "sub": ["b"]}]
)
async def test_claims_without_issuer_and_subject_name_nobody(claims: dict[str, Any]) -> None:
    with pytest.raises(Unauthorized):
        await named("http-api-jwt", {"jwt": {"claims": claims}}, "2.0")


async def test_a_lambda_authorizer_may_have_its_own_word_for_the_caller() -> None:
    for shape in ("http-api-lambda", "rest-api-lambda"):
        told = await named(shape, *AUTHORIZERS[shape], key="user")
        assert told == principal("lambda-authorizer", "ada@example.com")
        with pytest.raises(Unauthorized):
            await named(shape, *AUTHORIZERS[shape], key="missing")


async def test_callers_of_an_identity_pool_who_share_a_role_are_told_apart() -> None:
    role = "arn:aws:sts::123456789012:assumed-role/pool/CognitoIdentityCredentials"
    callers = {
        await named("iam", {"iam": {"userArn": role, "cognitoIdentity": {"identityId": id}}}, "2.0")
        for id in ("eu-west-1:a", "eu-west-1:b")
    }
    assert len(callers) == 2


# The Lambda entry point, as a gateway calls it.


def call(
    process: Process,
    kind: Callable[[HttpRequest], dict[str, Any]],
    authorizer: Any,
    **params: Any,
) -> tuple[int, dict[str, Any]]:
    """A call of the greeter that comes through a gateway."""
    came = kind(request("tools/call", id=7, **GREETER, **params))
    came["requestContext"].pop("authorizer", None)
    if authorizer is not None:
        came["requestContext"]["authorizer"] = authorizer
    answer = process.endpoint(came, Context())
    return answer["statusCode"], json.loads(answer["body"])


def other_person(shape: str) -> dict[str, Any]:
    text = json.dumps(AUTHORIZERS[shape][0]).replace("ada", "bob")
    return json.loads(text)


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ("http-api-jwt", http_api),
        ("http-api-lambda", http_api),
        ("rest-api-cognito", rest_api),
        ("rest-api-lambda", rest_api),
        ("iam", http_api),
        ("iam", function_url),
    ],
)
def test_a_call_through_a_gateway_belongs_to_whom_it_named(
    database: str, shape: str, kind: Callable[[HttpRequest], dict[str, Any]]
) -> None:
    authorizer = AUTHORIZERS[shape][0]
    with starting(database, INTERMEZZO_GATEWAY=shape) as process:
        status, asked = call(process, kind, authorizer)
        assert status == 200
        retry = {"requestState": asked["result"]["requestState"], "inputResponses": ADA}
        status, refused = call(process, kind, other_person(shape), **retry)
        assert (status, refused["error"]["code"]) == (400, -32602)
        assert refused["error"]["message"] == "Invalid or expired requestState"
        status, nobody = call(process, kind, None, **retry)
        assert (status, nobody["id"]) == (401, 7)
        status, ended = call(process, kind, authorizer, **retry)
        assert status == 200
        assert ended["result"]["content"][0]["text"] == '{"greeting":"Hello, Ada!"}'


def test_a_source_that_is_half_made_serves_nothing_on_lambda(database: str, tmp_path: Path) -> None:
    broken = tmp_path / "langgraph.json"
    agent = f"{EXAMPLES.parent}/agents/greeter.py:graph"
    broken.write_text(json.dumps({"graphs": {"greeter": agent}, "auth": {"path": "./a.py:auth"}}))
    none = tmp_path / "none.json"
    none.write_text("{")
    # What is wrong with settings alone is found before there is an application.
    halves: list[tuple[int, dict[str, str]]] = [
        (500, {"INTERMEZZO_JWT_ISSUER": "https://login.example.com/"}),
        (500, {"INTERMEZZO_GATEWAY": "iam", "INTERMEZZO_API_KEYS": f"ada:{KEY}"}),
        (200, {"INTERMEZZO_CONFIG": str(broken)}),
        (200, {"INTERMEZZO_CONFIG": str(none)}),
    ]
    for expected, half in halves:
        with starting(database, config=EXAMPLES, **half) as process:
            status, answer = call(process, http_api, IAM)
        error = answer["error"]
        assert (status, error["code"], error["message"]) == (expected, -32603, "Internal error")
        if status == 200:  # clients read no other
            assert answer["id"] == 7
            assert error["data"]["correlationId"]
