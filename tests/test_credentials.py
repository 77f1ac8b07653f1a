"""Credentials in a URL, which nobody may use, whatever the source of identity."""

import json
from pathlib import Path

import pytest

from handler.challenge import Challenge
from handler.credentials import check_url
from handler.headers import Headers
from handler.refusals import BadCredentials, Unauthorized
from tests.gateways import HTTP_JWT, http_api, request
from tests.in_process import deployment
from tests.lambdas import Context, starting
from tests.rules import project

CHALLENGE = Challenge()
BEARER = (b"authorization", b"Bearer abc")


@pytest.mark.parametrize("name", ["access_token", "api_key"])
def test_credentials_in_the_url_are_none_and_spoil_others(name: str) -> None:
    with pytest.raises(Unauthorized) as alone:
        check_url(Headers([]), [name], CHALLENGE)
    assert "error" not in alone.value.headers["www-authenticate"]
    for field in (BEARER, (b"x-api-key", b"abc")):
        with pytest.raises(BadCredentials) as both:
            check_url(Headers([field]), ["a", name], CHALLENGE)
        assert 'error="invalid_request"' in both.value.headers["www-authenticate"]


def test_other_parameters_are_nobodys_business() -> None:
    check_url(Headers([BEARER]), ["token", "Access_Token", ""], CHALLENGE)


@pytest.mark.anyio
async def test_a_custom_auth_is_not_asked_about_them(database: str, tmp_path: Path) -> None:
    async with deployment(database, project(tmp_path)) as here:
        here.http.params = {"access_token": "abc"}
        assert (await here.call("tells", "ada~x")).status_code == 400
        assert (await here.call("tells")).status_code == 401


def test_a_gateway_is_not_believed_about_them(database: str) -> None:
    event = http_api(request("tools/list"))
    event["requestContext"]["authorizer"] = HTTP_JWT
    with starting(database, INTERMEZZO_GATEWAY="http-api-jwt") as process:
        assert process.endpoint(event, Context())["statusCode"] == 200
        event["rawQueryString"] = "access_token=abc"
        answer = process.endpoint(event, Context())
    assert (answer["statusCode"], json.loads(answer["body"])["error"]["code"]) == (401, -32600)


@pytest.mark.anyio
async def test_without_a_source_a_url_is_a_url(database: str) -> None:
    async with deployment(database) as here:
        here.http.params = {"access_token": "abc"}
        assert (await here.post("tools/list")).status_code == 200
