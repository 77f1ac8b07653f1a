"""The Lambda entry points, given the events that gateways send."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from handler import lambdas
from handler.lambdas import Process
from tests.clock import move
from tests.gateways import GATEWAYS, http_api, request, shape
from tests.lambdas import ADA, GREETER, Context, call, result, starting, two_rounds
from tests.sessions import Sessions


@pytest.fixture
def process(database: str) -> Iterator[Process]:
    with starting(database) as started:
        yield started


def test_fifty_warm_invocations_all_succeed_half_of_them_paused_and_resumed(
    process: Process,
) -> None:
    ends = [two_rounds(process) for _ in range(25)]
    assert ends == ['{"greeting":"Hello, Ada!"}'] * 25


def test_twenty_at_once_in_a_cold_process_all_succeed(process: Process) -> None:
    with ThreadPoolExecutor(20) as threads:
        ends = list(threads.map(two_rounds, [process] * 20))
    assert ends == ['{"greeting":"Hello, Ada!"}'] * 20


def test_a_paused_call_survives_that_every_connection_is_cut(
    process: Process, sessions: Sessions
) -> None:
    asked = call(process)
    assert sessions.cut() > 0
    ended = call(process, inputResponses=ADA, requestState=asked["requestState"])
    assert ended["content"][0]["text"] == '{"greeting":"Hello, Ada!"}'


def test_every_kind_of_event_gets_the_same_answer(process: Process) -> None:
    sent = request("tools/list")
    answers = [process.endpoint(event(sent), Context()) for event in GATEWAYS.values()]
    assert all(answer["statusCode"] == 200 for answer in answers)
    assert len({answer["body"] for answer in answers}) == 1


def test_a_body_in_base64_is_a_body(process: Process) -> None:
    typed = {"Content-Type": "application/json; charset=utf-8"}
    event = http_api(replace(request("tools/list", headers=typed), base64=True))
    assert result(process.endpoint(event, Context()))["tools"]


def staged(path: str, stage: str) -> dict[str, Any]:
    """The event of a path at a stage, wherever the stage stands."""
    event = http_api(request("tools/list"))
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    event["requestContext"]["stage"] = stage
    return event


@pytest.mark.parametrize(
    ("path", "stage"),
    [("/prod/mcp", "prod"), ("/mcp", "prod"), ("/mcp/mcp", "mcp"), ("/mcp", "mcp")],
)
def test_a_named_stage_before_the_path_is_not_part_of_it(
    process: Process, path: str, stage: str
) -> None:
    assert result(process.endpoint(staged(path, stage), Context()))["tools"]


@pytest.mark.parametrize("path", ["/production/mcp", "/prod", "/prod/", "/prodmcp", "/"])
def test_what_only_begins_like_a_stage_is_another_path(process: Process, path: str) -> None:
    assert process.endpoint(staged(path, "prod"), Context())["statusCode"] == 404


def test_any_host_is_ours(process: Process) -> None:
    event = http_api(request("server/discover"))
    event["headers"]["host"] = "anything.example.com"
    assert process.endpoint(event, Context())["statusCode"] == 200


def test_get_is_405_at_once(process: Process) -> None:
    event = http_api(request("tools/list"))
    event["requestContext"]["http"]["method"] = "GET"
    answer = process.endpoint(event, Context())
    assert (answer["statusCode"], answer["headers"]["allow"]) == (405, "POST")


def test_a_notification_is_202(process: Process) -> None:
    event = http_api(request("tools/list"))
    event["body"] = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
    answer = process.endpoint(event, Context())
    assert (answer["statusCode"], answer["body"]) == (202, "")


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"headers": None, "body": None}, 415, -32600),
        ({"headers": None}, 415, -32600),
        ({"body": None}, 400, -32700),
        ({"body": ""}, 400, -32700),
    ],
)
def test_an_event_that_lacks_something_is_a_bad_request(
    process: Process, change: dict[str, Any], status: int, code: int
) -> None:
    answer = process.endpoint({**http_api(request("tools/list")), **change}, Context())
    assert answer["statusCode"] == status
    assert json.loads(answer["body"])["error"]["code"] == code


@pytest.mark.parametrize("event", [{}, {"detail-type": "Scheduled Event"}, {"version": "2.0"}])
def test_an_event_that_is_no_http_request_is_a_json_error_at_500(
    process: Process, event: dict[str, Any]
) -> None:
    answer = process.endpoint(event, Context())
    assert answer["statusCode"] == 500
    assert answer["headers"]["content-type"] == "application/json"
    assert json.loads(answer["body"])["error"]["code"] == -32603


def test_wrong_settings_are_a_json_error_at_500_and_tell_the_log_everything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    process = Process({})
    answer = process.endpoint(http_api(request("tools/list")), Context())
    process.close()
    assert answer["statusCode"] == 500
    assert "DATABASE_URL" not in answer["body"]
    assert "DATABASE_URL is not set" in caplog.text
    assert "REQUEST_STATE_KEYS is not set" in caplog.text


def test_an_invocation_about_to_end_says_so_instead_of_running(process: Process) -> None:
    started = time.monotonic()
    event = http_api(request("tools/call", **GREETER))
    answer = process.endpoint(event, Context(seconds=lambdas.MARGIN + 0.001))
    assert time.monotonic() - started < 5
    assert answer["statusCode"] == 200
    told = json.loads(answer["body"])
    assert "error" in told or told["result"]["isError"]


def test_the_sweep_deletes_what_has_expired_and_the_endpoint_goes_on(
    process: Process, database: str
) -> None:
    call(process)
    assert process.sweep({"source": "aws.scheduler"}, Context()) == {"deleted": 0}
    move(database, seconds=25 * 3600)
    assert process.sweep({"source": "aws.scheduler"}, Context()) == {"deleted": 1}
    move(database, seconds=0)
    assert two_rounds(process) == '{"greeting":"Hello, Ada!"}'


def test_migrate_brings_an_empty_database_up_once(empty_database: str) -> None:
    process = Process({"DATABASE_URL": empty_database})
    first = process.migrate({}, Context())
    second = process.migrate({}, Context())
    process.close()
    assert first["applied"]
    assert second == {"applied": []}


def test_migrate_says_what_it_did_to_whoever_asks_for_it_in_a_deployment(
    empty_database: str,
) -> None:
    process = Process({"DATABASE_URL": empty_database})
    event = {**shape("deployment"), "ResponseURL": "data:,"}  # that every answer reaches
    assert process.migrate(event, Context())["applied"]
    assert process.migrate(event, Context()) == {"applied": []}
    process.close()


@pytest.mark.parametrize("encoded", [True, False])
def test_an_answer_that_is_too_large_for_the_platform_keeps_its_id(
    process: Process, monkeypatch: pytest.MonkeyPatch, encoded: bool
) -> None:
    monkeypatch.setattr(lambdas, "LARGEST", 100)
    event = http_api(replace(request("tools/list"), base64=encoded))
    answer = process.endpoint(event, Context())
    told = json.loads(answer["body"])
    assert (answer["statusCode"], told["id"]) == (200, 1)
    assert told["error"]["message"] == "The answer is too large."


def test_the_entry_points_are_those_of_one_process() -> None:
    entries = (lambdas.endpoint, lambdas.sweep, lambdas.migrate)
    assert len({id(entry.__self__) for entry in entries}) == 1
