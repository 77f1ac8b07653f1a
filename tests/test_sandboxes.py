"""The built artifact under Lambda's own runtime client, in sandboxes that are frozen and killed."""

import asyncio
import base64
import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from mcp import Client, types
from mcp.client import ClientRequestContext

from core.catalog import BUILT, Catalog, build
from core.rounds import NOTHING_KEPT
from handler.lambdas import MARGIN
from tests.agents.journal import noted
from tests.artifacts import environ
from tests.calling import retry
from tests.gateways import (
    GATEWAYS,
    Gateway,
    behind,
    call,
    http_api,
    request,
    result,
    shape,
)
from tests.lambdas import ADA, GREETER
from tests.runtime_api import Code, Function, FunctionError, Sandbox
from tests.served import CHECKOUT, KEY
from tests.sessions import Sessions
from tests.tables import rows
from tests.vault import Vault

ANSWERS: dict[str, Any] = {
    "What is your name?": {"name": "Ada"},
    "Which region should the service deploy to?": {"response": "eu-west-1"},
    "Where should the service deploy?": {"region": "eu-west-1", "replicas": 3},
    "What goes on the left?": {"response": "one"},
    "What goes on the right?": {"response": "two"},
    "What would you like to review?": {"response": "tea"},
    "How do you rate it?": {"response": 5},
    "Why 5 for tea?": {"response": "warm"},
}


@pytest.fixture
def function(code: Code, database: str) -> Iterator[Function]:
    with Function(code, environ(database)) as deployed:
        yield deployed


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The tests' agents, where nothing but themselves can be imported."""
    shutil.copytree(CHECKOUT / "tests" / "agents", tmp_path / "tests" / "agents")
    names = ("stalls", "lingers", "waits", "grows")
    graphs = {name: f"./tests/agents/sandboxed.py:{name}" for name in names}
    config = tmp_path / "langgraph.json"
    config.write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    (tmp_path / BUILT).write_bytes(asyncio.run(build(Catalog.read(config))))
    return config


@pytest.fixture
def agents(code: Code, database: str, project: Path) -> Iterator[Function]:
    """A function with the tests' agents."""
    with Function(code, environ(database, config=project)) as deployed:
        yield deployed


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    folder = tmp_path / "journal"
    folder.mkdir()
    return folder


def two_rounds(function: Function) -> str:
    asked = result(function, "greeter")
    ended = result(function, "greeter", inputResponses=ADA, requestState=asked["requestState"])
    return ended["content"][0]["text"]


async def _answer(
    context: ClientRequestContext, params: types.ElicitRequestParams
) -> types.ElicitResult:
    if params.mode == "url":
        return types.ElicitResult(action="accept")
    content = ANSWERS.get(params.message, {"decision": "approve"})
    return types.ElicitResult(action="accept", content=content)


async def _said(client: Client, name: str, arguments: dict[str, Any]) -> str:
    ended = await client.call_tool(name, arguments)
    assert not ended.is_error, ended
    (block,) = ended.content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.anyio
async def test_the_official_client_runs_the_examples_each_round_in_another_sandbox(
    code: Code, database: str
) -> None:
    deployed = Function(code, environ(database), rotate=3)
    with deployed, behind(http_api, deployed) as url:
        async with Client(url, elicitation_callback=_answer) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            said = {name: await _said(client, name, {}) for name in tools[:6]}
            said["echo"] = await _said(client, "echo", {"message": "Hello"})
        invocations = [sandbox.invocations for sandbox in deployed.sandboxes]
    assert said == {
        "greeter": '{"greeting":"Hello, Ada!"}',
        "calendar": '{"status":"connected"}',
        "region": '{"region":"eu-west-1"}',
        "deployment": '{"region":"eu-west-1","replicas":3}',
        "pair": '{"left":"one","right":"two","pair":"one | two"}',
        "survey": '{"topic":"tea","rating":5,"reason":"warm"}',
        "echo": '{"echo":"Hello"}',
    }
    assert len(invocations) == 3
    assert max(invocations) - min(invocations) <= 1, "they take turns, whatever is asked"


@pytest.mark.anyio
@pytest.mark.parametrize("gateway", GATEWAYS.values(), ids=GATEWAYS)
async def test_the_official_client_is_answered_behind_every_gateway(
    gateway: Gateway, function: Function
) -> None:
    with behind(gateway, function) as url:
        async with Client(url, elicitation_callback=_answer) as client:
            assert len((await client.list_tools()).tools) > 5
            assert await _said(client, "greeter", {}) == '{"greeting":"Hello, Ada!"}'


@pytest.mark.parametrize("gateway", GATEWAYS.values(), ids=GATEWAYS)
def test_a_body_may_come_in_base64_and_an_answer_never_does(
    gateway: Gateway, function: Function
) -> None:
    typed = {"Content-Type": "application/json; charset=utf-8", "Cookie": "a=1; b=2"}
    plain = request("tools/list", headers=typed)
    encoded = replace(plain, query="a=b", base64=True)
    assert base64.b64decode(gateway(encoded)["body"]) == plain.body
    answers = [function.invoke(gateway(each)) for each in (plain, encoded)]
    assert answers[0]["body"] == answers[1]["body"]
    assert json.loads(answers[0]["body"])["result"]["tools"]
    assert not any(answer.get("isBase64Encoded") for answer in answers)


@pytest.mark.parametrize("gateway", GATEWAYS.values(), ids=GATEWAYS)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_no_stream_to_open_and_no_session_to_end(
    gateway: Gateway, method: str, function: Function
) -> None:
    started = time.monotonic()
    with behind(gateway, function) as url:
        answer = httpx.request(method, url, timeout=10)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("name", ["http_api", "rest_api", "function_url", "load_balancer"])
def test_the_recorded_events_are_answered_as_they_are(name: str, function: Function) -> None:
    answer = function.invoke(shape(name))
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["result"]["tools"]


def test_fifty_warm_invocations_all_succeed_half_of_them_paused_and_resumed(
    function: Function,
) -> None:
    ends = [two_rounds(function) for _ in range(25)]
    assert ends == ['{"greeting":"Hello, Ada!"}'] * 25
    assert [sandbox.invocations for sandbox in function.sandboxes] == [50]


def test_twenty_at_once_all_succeed_from_cold(function: Function) -> None:
    with ThreadPoolExecutor(20) as threads:
        ends = list(threads.map(two_rounds, [function] * 20))
    assert ends == ['{"greeting":"Hello, Ada!"}'] * 20


def test_connections_that_are_cut_while_a_sandbox_is_frozen_are_replaced(
    function: Function, sessions: Sessions
) -> None:
    asked = result(function, "greeter")
    assert sessions.cut() > 0
    ended = result(function, "greeter", inputResponses=ADA, requestState=asked["requestState"])
    assert ended["content"][0]["text"] == '{"greeting":"Hello, Ada!"}'
    assert [sandbox.invocations for sandbox in function.sandboxes] == [2]


def test_nothing_is_left_at_work_in_a_frozen_sandbox(function: Function, database: str) -> None:
    two_rounds(function)
    with psycopg.connect(database) as connection:
        states = connection.execute(
            "SELECT state FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    assert {state for (state,) in states} <= {"idle"}


def test_a_retry_finishes_what_a_deadline_killed_in_the_middle_of_a_resume(
    agents: Function, journal: Path
) -> None:
    arguments = {"arguments": {"journal": str(journal)}}
    asked = result(agents, "stalls", **arguments)
    answers = retry(asked, response="yes")
    agents.seconds = MARGIN + 2.0
    (journal / "hold-stall").touch()
    event = http_api(request("tools/call", name="stalls", **arguments, **answers))
    with pytest.raises(FunctionError, match=r"Sandbox\.Timedout"):
        agents.invoke(event)
    assert not agents.sandboxes[0].alive
    (journal / "hold-stall").unlink()
    agents.seconds = 29.0
    ended = result(agents, "stalls", **arguments, **answers)
    assert len(agents.sandboxes) == 2
    assert '["ask=yes","charge","stalled"]' in ended["content"][0]["text"]
    assert noted(journal) == {"ask?": 2, "ask": 1, "charge": 1, "stall?": 2, "stall": 1}


def test_a_first_call_is_stopped_before_its_deadline_and_keeps_nothing(
    code: Code, database: str, project: Path, journal: Path
) -> None:
    (journal / "hold-slow").touch()
    config = environ(database, config=project)
    with Function(code, config, seconds=MARGIN + 2.0) as deployed:
        ended = result(deployed, "waits", arguments={"journal": str(journal)})
        assert deployed.sandboxes[0].alive
    assert ended["isError"]
    assert ended["content"][0]["text"] == NOTHING_KEPT
    assert set(rows(database).values()) == {0}


def test_a_resume_is_stopped_before_its_deadline_and_its_retry_finishes_it(
    agents: Function, journal: Path
) -> None:
    arguments = {"arguments": {"journal": str(journal)}}
    asked = result(agents, "lingers", **arguments)
    answers = retry(asked, response="yes")
    agents.seconds = MARGIN + 2.0
    (journal / "hold-slow").touch()
    error = call(agents, "lingers", **arguments, **answers)["error"]
    assert error["code"] == 1001
    assert "Send the same request again" in error["message"]
    assert agents.sandboxes[0].alive
    (journal / "hold-slow").unlink()
    started = time.monotonic()
    ended = result(agents, "lingers", **arguments, **answers)
    assert time.monotonic() - started < 1.5, "the claim was given back, nobody waits for it"
    assert '["ask=yes","charge","lingered"]' in ended["content"][0]["text"]
    assert noted(journal) == {"ask?": 2, "ask": 1, "charge": 1, "linger?": 2, "linger": 1}


def test_the_claim_of_a_sync_node_past_its_deadline_lapses_and_a_retry_finishes_the_work(
    agents: Function, journal: Path
) -> None:
    """Nothing can stop its thread, which is frozen with its process: its claim stays with it."""
    arguments = {"arguments": {"journal": str(journal)}}
    asked = result(agents, "lingers", **arguments)
    answers = retry(asked, response="yes")
    agents.seconds = MARGIN + 2.0
    (journal / "hold-ask").touch()
    codes = [call(agents, "lingers", **arguments, **answers)["error"]["code"]]
    (journal / "hold-ask").unlink()
    ended: dict[str, Any] = {}
    while not ended and len(codes) < 5:
        response = call(agents, "lingers", **arguments, **answers)
        ended = response.get("result", {})
        codes += [response["error"]["code"]] if "error" in response else []
    assert set(codes) == {1001}
    assert '["ask=yes","charge","lingered"]' in ended["content"][0]["text"]
    assert noted(journal)["charge"] == 1


def test_a_setting_stops_a_run_before_a_gateway_gives_up(
    code: Code, database: str, project: Path, journal: Path
) -> None:
    (journal / "hold-slow").touch()
    variables = environ(database, config=project, INTERMEZZO_CALL_TIMEOUT="2")
    with Function(code, variables, seconds=60) as deployed:
        started = time.monotonic()
        ended = result(deployed, "waits", arguments={"journal": str(journal)})
        assert time.monotonic() - started < 20
    assert ended["content"][0]["text"] == NOTHING_KEPT


@pytest.mark.parametrize("size", [3_500_000, 7_000_000])
def test_a_result_that_lambda_would_not_pass_on_is_an_error_result_for_good(
    agents: Function, journal: Path, size: int
) -> None:
    arguments = {"arguments": {"journal": str(journal)}}
    asked = result(agents, "grows", **arguments)
    answers = retry(asked, response=str(size))
    ended = result(agents, "grows", **arguments, **answers)
    again = result(agents, "grows", **arguments, **answers)
    assert [sandbox.alive for sandbox in agents.sandboxes] == [True]
    assert ended == again
    assert ended.get("isError", False) == (size > 6_000_000)
    if size > 6_000_000:
        assert "too large" in ended["content"][0]["text"]
    assert noted(journal) == {"grow?": 2, "grow": 1}


def test_an_answer_that_is_too_large_for_another_reason_is_an_error_and_ends_no_sandbox(
    function: Function,
) -> None:
    body = {"jsonrpc": "2.0", "id": '"' * 1_900_000, "method": "ping"}
    headers = [("Content-Type", "application/json")]
    for _ in range(2):
        sent = replace(request("ping"), headers=headers, body=json.dumps(body).encode())
        answer = function.invoke(http_api(sent))
        assert answer["statusCode"] == 200
        assert json.loads(answer["body"])["error"]["message"] == "The answer is too large."
    assert [sandbox.invocations for sandbox in function.sandboxes] == [2]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"DATABASE_URL": ""}, "DATABASE_URL is not set"),
        ({"REQUEST_STATE_KEYS": "short"}, "REQUEST_STATE_KEYS"),
        ({"INTERMEZZO_TYPO": "1"}, "INTERMEZZO_TYPO is not a setting"),
        ({"INTERMEZZO_CONFIG": "nowhere.json"}, "nowhere.json can't be served"),
    ],
)
def test_a_deployment_that_can_not_start_says_why_in_the_log_and_nothing_on_the_wire(
    code: Code, database: str, change: dict[str, str], told: str
) -> None:
    with Function(code, {**environ(database), **change}) as deployed:
        answer = deployed.invoke(shape("http_api"))
        log = deployed.log()
    assert told in log
    assert told not in answer["body"]
    assert json.loads(answer["body"])["error"]["code"] == -32603


def test_a_handler_that_is_not_there_fails_the_init_phase(code: Code, database: str) -> None:
    with (
        Function(code, environ(database), handler="handler.lambdas.nothing") as deployed,
        pytest.raises(FunctionError, match=r"Runtime\.HandlerNotFound"),
    ):
        deployed.invoke(shape("http_api"))


def test_a_snapshot_holds_nothing_that_is_open_drawn_or_signed(
    code: Code, database: str, vault: Vault, sessions: Sessions
) -> None:
    variables = {
        **environ(database, REQUEST_STATE_KEYS=vault.keep("keys", KEY)),
        **vault.environ,
        "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start",
    }
    sandbox = Sandbox(code, "handler.lambdas.endpoint", variables)
    try:
        sandbox.started()
        assert sandbox.restored
        assert sessions.cut() == 0
        assert vault.requests == []
        event = http_api(request("tools/call", **GREETER))
        assert "input_required" in sandbox.invoke(event, 29)["body"]
    finally:
        sandbox.close()


def test_the_sandbox_can_neither_write_to_its_code_nor_import_the_checkout(
    function: Function,
) -> None:
    two_rounds(function)
    (sandbox,) = function.sandboxes
    folder = Path(f"/proc/{sandbox.process.pid}/cwd")
    variables = Path(f"/proc/{sandbox.process.pid}/environ").read_text()
    assert not any(path.stat().st_mode & 0o222 for path in folder.resolve().rglob("*"))
    assert str(CHECKOUT) not in variables
    assert not (folder / "tests").exists()
