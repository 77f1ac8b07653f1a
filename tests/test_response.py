"""Results and refusals as HTTP."""

import json
from typing import Any

import pytest

from core.errors import (
    HeaderMismatch,
    InternalError,
    InvalidParams,
    InvalidRequest,
    InvalidRequestState,
    MethodNotFound,
    MissingCapability,
    ParseError,
    Refusal,
    RetryLater,
    UnsupportedVersion,
)
from handler.refusals import (
    BodyTooLarge,
    BodyTooSlow,
    ForeignOrigin,
    MethodNotAllowed,
    NotFound,
    SeveralHosts,
    UnknownHost,
    UnsupportedMediaType,
)
from handler.response import ACCEPTED, failure, success

MODERN = [
    (ParseError("x"), 400, -32700),
    (InvalidRequest("x"), 400, -32600),
    (MethodNotFound("x"), 404, -32601),
    (InvalidParams("x"), 400, -32602),
    (InvalidRequestState("x"), 400, -32602),
    (HeaderMismatch("x"), 400, -32020),
    (MissingCapability({"url"}, {"url"}), 400, -32021),
    (UnsupportedVersion("x"), 400, -32022),
    (RetryLater("x"), 200, 1001),
    (InternalError("x"), 200, -32603),
]
HTTP = [
    (ForeignOrigin("x"), 403),
    (NotFound("x"), 404),
    (MethodNotAllowed("x"), 405),
    (BodyTooLarge("x"), 413),
    (BodyTooSlow("x"), 408),
    (SeveralHosts("x"), 400),
    (UnsupportedMediaType("x"), 415),
    (UnknownHost("x"), 421),
]


@pytest.mark.parametrize(("refusal", "status", "code"), MODERN)
def test_an_error_has_the_status_of_its_code(refusal: Refusal, status: int, code: int) -> None:
    answer = failure(refusal, identifier=1, modern=True)
    assert answer.status == status
    assert json.loads(answer.body)["error"]["code"] == code


@pytest.mark.parametrize(("refusal", "status", "code"), MODERN)
def test_an_older_client_gets_every_error_at_200(refusal: Refusal, status: int, code: int) -> None:
    answer = failure(refusal, identifier=1, modern=False)
    assert answer.status == 200
    assert json.loads(answer.body)["error"]["code"] == code


@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize(("refusal", "status"), HTTP)
def test_what_http_has_a_status_for_gets_it_in_both_eras(
    refusal: Refusal, status: int, modern: bool
) -> None:
    answer = failure(refusal, identifier=None, modern=modern)
    assert answer.status == status
    assert json.loads(answer.body) == {
        "jsonrpc": "2.0",
        "error": {"code": -32600, "message": "x"},
    }


def test_a_method_that_is_not_allowed_names_the_one_that_is() -> None:
    answer = failure(MethodNotAllowed("x"), identifier=None, modern=True)
    assert answer.headers == {"allow": "POST"}


@pytest.mark.parametrize("identifier", [0, "", "a", 1.5])
def test_the_id_is_sent_back_even_when_it_is_falsy(identifier: Any) -> None:
    body = json.loads(failure(InvalidParams("x"), identifier=identifier, modern=True).body)
    assert body["id"] == identifier
    assert json.loads(success(identifier, {}).body)["id"] == identifier


def test_an_id_that_could_not_be_read_is_left_out() -> None:
    assert "id" not in json.loads(failure(ParseError("x"), identifier=None, modern=True).body)


def test_data_is_sent_and_the_reason_is_not() -> None:
    answer = failure(InvalidParams("x", data=[1], reason="secret"), identifier=1, modern=True)
    assert json.loads(answer.body)["error"] == {"code": -32602, "message": "x", "data": [1]}
    assert b"secret" not in answer.body


def test_a_body_is_compact_and_readable() -> None:
    assert success(1, {"a": "é", "b": [1, 2]}).body == (
        '{"jsonrpc":"2.0","id":1,"result":{"a":"é","b":[1,2]}}'.encode()
    )


def test_a_result_that_is_not_json_is_no_answer() -> None:
    with pytest.raises(ValueError, match="JSON"):
        success(1, {"a": float("nan")})


def test_a_notification_gets_202_and_nothing_else() -> None:
    assert (ACCEPTED.status, ACCEPTED.body) == (202, b"")
