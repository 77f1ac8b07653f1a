"""What the log says of requests, claims and calls, and what neither it nor a table ever says."""

import errno
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from core import account
from core.account import Account
from core.protocol import InputRequired
from core.records import StoreError
from core.sweeper import sweep
from handler import logs
from tests.artifacts import environ
from tests.calling import retry
from tests.clock import move
from tests.conversation import accept, instance
from tests.gateways import http_api, request
from tests.projects import Write
from tests.runtime_api import Code, Function
from tests.served import META, Served, error, post, result, serving
from tests.tables import OURS, everything

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACED = {**META, "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}

AGENT = """
    from dataclasses import dataclass
    from langgraph.config import get_config
    from langgraph.graph import START, StateGraph
    from langgraph.runtime import Runtime
    from langgraph.types import interrupt
    from typing_extensions import TypedDict

    class State(TypedDict, total=False):
        word: str
        trace: str

    class Said(TypedDict, total=False):
        trace: str

    @dataclass
    class Context:
        key: str = ""

    def ask(state: State, runtime: Runtime[Context]) -> State:
        answer = interrupt("Say something.")
        if state.get("word") == "fail":
            raise RuntimeError(f"failed on {answer} with {runtime.context.key}")
        return {"trace": get_config()["configurable"].get("traceparent", "")}

    builder = StateGraph(State, context_schema=Context, output_schema=Said)
    graph = builder.add_node(ask).add_edge(START, "ask").compile()
"""

STRAYING = """
    import asyncio, gc, logging, threading, warnings
    import httpx
    from langchain_core.callbacks import BaseCallbackHandler
    from langgraph.graph import START, StateGraph
    from langgraph.types import RetryPolicy
    from typing_extensions import TypedDict

    class State(TypedDict, total=False):
        word: str
        url: str

    class Watching(BaseCallbackHandler):
        def on_chain_start(self, serialized, inputs, **kwargs):
            raise ValueError(f"saw {inputs}")

    tries = []

    def fail(word):
        raise ConnectionError(f"GET https://api.example.com/?q={word}")

    def lookup(word):
        try:
            fail(word)
        except ConnectionError as error:
            logging.getLogger("any.library").exception("again after %s", error)
            logging.getLogger("any.library").warning(error)
            logging.getLogger("any.library").warning("%(why)r", {"why": error})
            logging.getLogger("langchain_model").warning(f"again: {error}")

    class Left:
        def __init__(self, word):
            self.word = word

        def __del__(self):
            fail(self.word)

    async def stray(word):
        open(f"/nowhere/{word}")

    async def work(state: State) -> State:
        task = asyncio.create_task(stray(state["word"]))
        await asyncio.wait((task,))
        del task
        gc.collect()
        asyncio.get_running_loop().call_soon(fail, state["word"])
        lookup(state["word"])
        thread = threading.Thread(target=fail, args=(state["word"],))
        thread.start()
        thread.join()
        Left(state["word"])
        warnings.warn(f"about {state['word']}")
        async with httpx.AsyncClient() as http:
            await http.get(state["url"], params={"q": state["word"]})
        tries.append(1)
        if len(tries) == 1:
            fail(state["word"])
        return {}

    again = RetryPolicy(initial_interval=0.01, retry_on=ConnectionError)
    builder = StateGraph(State).add_node(work, retry_policy=again).add_edge(START, "work")
    graph = builder.compile().with_config(callbacks=[Watching()])
"""

PLANTED = {
    "argument": "planted-argument",
    "answer": "planted-answer",
    "context": "planted-context",
    "bearer": "planted-bearer",
    "method": "planted-method",
    "name": "planted-name",
}


def lines(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines()]


def told(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines about requests."""
    return [line for line in lines if "ms" in line]


def call(url: str, **params: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {PLANTED['bearer']}"}
    given = {"name": "talker", "arguments": {}, "_meta": TRACED, **params}
    return post(url, "tools/call", headers=headers, **given)


def answered(asked: Mapping[str, Any]) -> dict[str, Any]:
    return retry(asked, response=PLANTED["answer"])


def decline(asked: InputRequired) -> dict[str, Any]:
    return {key: {"action": "decline"} for key in asked.requests}


@pytest.fixture
def talker(project: Write) -> Path:
    return project({"agent.py": AGENT}, {"talker": "./agent.py:graph"})


def test_each_request_is_one_line_with_all_that_is_known_of_it(talker: Path, database: str) -> None:
    with serving(database, config=talker) as process:
        asked = result(call(process.url))
        ended = result(call(process.url, **answered(asked)))
        result(call(process.url, **answered(asked)))
        error(call(process.url, requestState="forged", inputResponses={}))
        error(post(process.url, PLANTED["method"]))
        result(post(process.url, "tools/list"))
        log = lines(process.log())
    assert json.loads(ended["content"][0]["text"])["trace"] == TRACED["traceparent"]
    first, second, repeat, forged, unknown, listed = told(log)
    identified = {name: first[name] for name in ("agent", "call", "round", "trace", "method")}
    assert identified == {
        "agent": "talker",
        "call": first["call"],
        "round": 1,
        "trace": TRACE,
        "method": "tools/call",
    }
    assert first["outcome"] == "asked"
    assert {**second, **identified} == second
    assert second["outcome"] == "result"
    assert "repeat" not in second
    assert {**repeat, **identified, "outcome": "result", "repeat": True} == repeat
    assert (forged["outcome"], forged["code"]) == ("refused", -32602)
    assert forged["reason"]
    assert (unknown["outcome"], unknown["code"]) == ("refused", -32601)
    assert (listed["method"], listed["outcome"]) == ("tools/list", "result")
    assert all(isinstance(line["ms"], int) for line in told(log))
    assert len({line["correlation"] for line in told(log)}) == 6


def test_arguments_that_do_not_fit_are_an_error_result_of_their_agent(
    talker: Path, database: str
) -> None:
    with serving(database, config=talker) as process:
        assert result(call(process.url, arguments={"word": 5}))["isError"]
        (line,) = told(lines(process.log()))
    assert (line["agent"], line["outcome"]) == ("talker", "error result")


def test_a_request_to_another_path_is_one_line_too(served: Served) -> None:
    root = served.url.removesuffix("/mcp")
    before = len(lines(served.log()))
    for path in ("/", "/favicon.ico", "/healthz"):
        httpx.get(f"{root}{path}")
    httpx.options(served.url)
    assert [line["code"] for line in lines(served.log())[before:]] == [-32600] * 3, "not of health"


def test_no_argument_answer_context_token_or_request_state_is_logged_or_stored(
    talker: Path, database: str
) -> None:
    secrets = dict(PLANTED)
    with serving(database, config=talker) as process:
        responses: list[str] = []
        stored = ""
        for word in (PLANTED["argument"], "fail"):
            given = {"arguments": {"word": word}, "context": {"key": PLANTED["context"]}}
            asked = result(call(process.url, **given))
            secrets[word] = asked["requestState"]
            answers: list[dict[str, Any]] = [
                {"inputResponses": {}},
                {"inputResponses": 5},
                answered(asked),
            ]
            for extra in answers:
                retry = {**given, "requestState": asked["requestState"], **extra}
                responses.append(call(process.url, **retry).text)
                stored += everything(database, *OURS)
        error(call(process.url, requestState=secrets["fail"][:-1] + "x", inputResponses={}))
        error(post(process.url, PLANTED["method"]))
        error(post(process.url, "tools/call", name=PLANTED["name"], arguments={}))
        httpx.post(
            process.url,
            content=f'{{"{PLANTED["argument"]}',
            headers={"Content-Type": "application/json"},
        )
        log = process.log()
    assert "agent failed: RuntimeError" in log
    assert len(lines(log)) >= 12
    for kind, secret in secrets.items():
        assert secret not in log, kind
        if kind not in ("name", "method"):
            assert secret not in stored, kind
    for kind in ("answer", "context", "bearer"):
        assert not any(PLANTED[kind] in response for response in responses), kind


def test_what_libraries_say_of_an_agent_tells_no_value_of_it(
    project: Write, database: str, served: Served
) -> None:
    config = project({"agent.py": STRAYING}, {"talker": "./agent.py:graph"})
    alive = served.url.removesuffix("/mcp") + "/healthz"
    with serving(database, config=config) as process:
        arguments = {"word": PLANTED["argument"], "url": alive}
        result(post(process.url, "tools/call", name="talker", arguments=arguments))
        log = process.log()
    said = {line["message"] for line in lines(log)}
    for words in (
        "Task exception was never retrieved",
        "Exception in callback",
        "Error in %s.%s callback",
        "Retrying task work after",
        "again after ConnectionError",
        "ConnectionError",
        "'ConnectionError'",
        "again",
        "a thread failed",
        "an exception was ignored",
        "a warning",
    ):
        assert any(message.startswith(words) for message in said), words
    assert "HTTP Request" not in log
    warned = next(line for line in lines(log) if line["message"] == "a warning")
    assert "agent.py" in warned["place"]
    assert warned["type"] == "UserWarning"
    assert PLANTED["argument"] not in log


def test_in_a_sandbox_the_platform_writes_the_same_facts(
    code: Code, database: str, talker: Path
) -> None:
    state = ""
    with Function(code, environ(database, config=talker)) as deployed:
        for word in ("fine", "fail"):
            given: dict[str, Any] = {"name": "talker", "arguments": {"word": word}}
            sent = request("tools/call", **given, context={"key": PLANTED["context"]})
            asked = json.loads(deployed.invoke(http_api(sent))["body"])["result"]
            state = asked["requestState"]
            sent = request(
                "tools/call", **given, **answered(asked), context={"key": PLANTED["context"]}
            )
            deployed.invoke(http_api(sent))
        log, found = deployed.log(), told(deployed.lines())
    assert [line["outcome"] for line in found] == ["asked", "result", "asked", "error result"]
    assert all(line["agent"] == "talker" and line["requestId"] for line in found)
    assert found[0]["call"] == found[1]["call"] != found[2]["call"]
    for secret in (PLANTED["answer"], PLANTED["context"], state):
        assert secret not in log
    assert len(log.splitlines()) == len(found) + 1, "one line each, and one for the failure"


@pytest.mark.anyio
async def test_a_claim_that_is_taken_over_is_one_line_and_one_given_back_is_none(
    database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with instance(database, tmp_path, left=1.0) as here:
        asked = await here.asks("one")
        answers = accept(asked, Go="yes")
        (tmp_path / "hold-ask").touch()
        here.seconds = 0.3
        with pytest.raises(Exception, match="ran out of time"):
            await here.call("one", answers, asked.request_state)
        (tmp_path / "hold-ask").unlink()
        here.seconds = 20
        await here.ends("one", answers, asked.request_state)
        assert caplog.text.count("lapsed and was taken over") == 1

        caplog.clear()
        later = await here.asks("slow_later")
        answers = accept(later, Go="yes")
        (tmp_path / "hold-slow").touch()
        here.seconds = 0.5
        with pytest.raises(Exception, match="ran out of time"):
            await here.call("slow_later", answers, later.request_state)
        (tmp_path / "hold-slow").unlink()
        here.seconds = 20
        await here.ends("slow_later", answers, later.request_state)
        assert "taken over" not in caplog.text


@pytest.mark.anyio
async def test_a_call_that_expires_is_one_line_which_says_whether_it_was_answered(
    database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with instance(database, tmp_path) as here:
        await here.asks("one")
        await here.asks("two")
        done = await here.asks("twice")
        await here.ends("twice", decline(done), done.request_state)
        move(database, seconds=25 * 3600)
        await sweep(here.store)
    expired = [record for record in caplog.records if "expired" in record.message]
    assert {(record.__dict__["agent"], record.message) for record in expired} == {
        ("one", "a call expired unanswered"),
        ("two", "a call expired unanswered"),
        ("twice", "a call expired"),
    }
    assert all(record.__dict__["call"] for record in expired)


def test_an_exception_is_told_by_its_class_and_place_unless_its_text_is_ours() -> None:
    def planted() -> None:
        try:
            raise ValueError(PLANTED["answer"])
        except ValueError as error:
            raise StoreError("the database refused") from error

    with pytest.raises(StoreError) as caught:
        planted()
    outer, inner = logs.chain(caught.value)
    assert (outer["type"], outer["message"]) == ("core.records.StoreError", "the database refused")
    assert inner["type"] == "builtins.ValueError"
    assert "message" not in inner
    assert "test_logs.py" in inner["places"][-1]


@pytest.mark.parametrize(
    "error",
    [
        ConnectionError(f"GET https://api.example.com/?q={PLANTED['answer']}"),
        httpx.ConnectError(PLANTED["answer"]),
        ImportError(PLANTED["answer"], name=PLANTED["answer"]),
        OSError(PLANTED["answer"], PLANTED["answer"]),
        OSError(errno.ENOENT, PLANTED["answer"], PLANTED["answer"]),
        ExceptionGroup(PLANTED["answer"], [TimeoutError(PLANTED["answer"])]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_text_of_somebody_elses_exception_is_told(error: Exception) -> None:
    assert PLANTED["answer"] not in str(logs.chain(error))


def test_an_error_of_the_system_is_told_by_its_name() -> None:
    (told,) = logs.chain(ConnectionRefusedError(errno.ECONNREFUSED, PLANTED["answer"]))
    assert told["errno"] == "ECONNREFUSED"


def test_an_error_of_the_database_is_told_by_its_state(database: str) -> None:
    with psycopg.connect(database) as connection, pytest.raises(psycopg.DataError) as caught:
        connection.execute("SELECT %s::int", [PLANTED["answer"]])
    (told,) = logs.chain(caught.value)
    assert told["sqlstate"] == "22P02"
    assert PLANTED["answer"] not in str(told)


def test_an_account_that_nobody_began_is_nobodys() -> None:
    account.current().agent = "anyone"
    assert account.current().facts() == {}
    mine = Account(correlation="1")
    account.begin(mine)
    assert account.current() is mine
