"""Tens of thousands of hostile requests: no 500, no hang, no leak, no row, no changed value.

Most go to the application in this process, by ASGI; some over a socket, where what is no HTTP goes
too. The numbers are the same in every run; `make soak` draws others.
"""

import asyncio
import json
import math
import os
import socket
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI

from handler.app import build
from handler.resources import Resources
from handler.settings import Settings
from tests.hostile import Bender, Field, Sent, fields, lawful
from tests.served import KEY, Served, serving
from tests.tables import rows

pytestmark = pytest.mark.anyio

AGENTS = Path(__file__).parent / "agents" / "values.json"

SEED = os.environ.get("HOSTILE_SEED", "0")

STATUSES = {200, 202, 400, 404, 405, 413, 415}
CODES = {-32700, -32600, -32601, -32602, -32020, -32021, -32022}
"""Everything that a client's fault leads to: -32603, which is ours, is not there."""

INSIDE = (b"Traceback", b'File "', b"site-packages", b"psycopg", b"Error(", b"Error:", KEY.encode())
"""What must never get out."""


@dataclass(slots=True)
class Told:
    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Target:
    """The application, without a socket."""

    app: FastAPI

    async def send(self, sent: Sent) -> Told:
        """What a request is told. It may take a second, and not a moment longer."""
        told, body = Told(), [sent.body]
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": sent.method,
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "headers": sent.headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }

        async def receive() -> dict[str, Any]:
            if body:
                return {"type": "http.request", "body": body.pop(), "more_body": False}
            await asyncio.Event().wait()
            raise AssertionError

        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                told.status, told.headers = message["status"], dict(message["headers"])
            else:
                told.body += message.get("body", b"")

        async with asyncio.timeout(2):
            await self.app(scope, receive, answer)
        return told

    async def call(self, name: str, value: Any, **params: Any) -> dict[str, Any]:
        """The result of a lawful call."""
        body = lawful("tools/call", name=name, arguments={"value": value}, **params)
        told = await self.send(Sent("POST", fields(body), json.dumps(body).encode()))
        assert told.status == 200, told.body
        return json.loads(told.body)["result"]


@asynccontextmanager
async def target(database: str) -> AsyncGenerator[Target]:
    settings = Settings.from_environ(
        {
            "DATABASE_URL": database,
            "REQUEST_STATE_KEYS": KEY,
            "INTERMEZZO_CONFIG": str(AGENTS),
            "INTERMEZZO_MAX_BODY_BYTES": "200000",
        }
    )
    resources = Resources(settings)
    try:
        yield Target(build(resources))
    finally:
        await resources.close()


@pytest.fixture
async def here(database: str) -> AsyncGenerator[Target]:
    async with target(database) as opened:
        yield opened


def same(left: object, right: object) -> bool:
    """Whether two JSON values are one and the same: `1`, `1.0` and `true` are three."""
    if isinstance(left, dict) and isinstance(right, dict):
        ours, theirs = cast("dict[str, Any]", left), cast("dict[str, Any]", right)
        return ours.keys() == theirs.keys() and all(same(ours[k], theirs[k]) for k in ours)
    if isinstance(left, list) and isinstance(right, list):
        return len(cast("list[Any]", left)) == len(cast("list[Any]", right)) and all(
            map(same, cast("list[Any]", left), cast("list[Any]", right))
        )
    if isinstance(left, float) and isinstance(right, float):
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    return left.__class__ is right.__class__ and left == right


def strict(data: bytes) -> Any:
    """A value of strict JSON, in which no key is there twice."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), pairs
        return dict(pairs)

    return json.loads(data.decode("utf-8"), parse_constant=refuse, object_pairs_hook=members)


@dataclass(slots=True)
class Findings:
    """What was seen of the answers so far."""

    statuses: Counter[int] = field(default_factory=Counter[int])
    codes: Counter[int] = field(default_factory=Counter[int])
    states: set[str] = field(default_factory=set[str])
    results: int = 0
    unchanged: int = 0
    slowest: float = 0.0

    def judge(self, sent: Sent, told: Told) -> dict[str, Any] | None:
        """What is true of every answer; the result, when it is one."""
        self.statuses[told.status] += 1
        assert told.status in STATUSES, (sent, told)
        assert not [word for word in INSIDE if word in told.body], (sent, told)
        if not told.body:
            assert told.status == 202 or sent.method in ("HEAD", "OPTIONS"), (sent, told)
            return None
        kind = told.headers[b"content-type"]
        if kind.startswith(b"text/event-stream"):
            *_, told.body = [
                line.removeprefix(b"data: ")
                for line in told.body.split(b"\n")
                if line.startswith(b"data: ")
            ]
        else:
            assert kind == b"application/json", told
        message = strict(told.body)
        assert message["jsonrpc"] == "2.0"
        if "error" in message:
            self.codes[message["error"]["code"]] += 1
            assert message["error"]["code"] in CODES, (sent, told)
            return None
        self.results += 1
        result = message["result"]
        assert "failed (error" not in str(result), (sent, told)
        assert "can't be stored" not in str(result), (sent, told)
        if "requestState" in result:
            self.states.add(result["requestState"])
        return result

    def unchanged_value(self, given: Any, result: dict[str, Any], member: str) -> None:
        """A result that ended well holds what was given, to the last bit."""
        if result.get("resultType") == "complete" and not result.get("isError"):
            output = json.loads(result["content"][0]["text"])
            assert same(given, output[member]), (given, output)
            self.unchanged += 1


async def sent_to(here: Target, sent: Sent, seen: Findings) -> dict[str, Any] | None:
    started = time.perf_counter()
    told = await here.send(sent)
    seen.slowest = max(seen.slowest, time.perf_counter() - started)
    return seen.judge(sent, told)


async def test_requests_bent_anywhere(here: Target, database: str) -> None:
    """Body, header fields, encodings: 20,000 of them. Most get no further than the edge."""
    seen, bender = Findings(), Bender(f"{SEED} anywhere")
    asked = await here.call("keeps", 1)
    seen.states.add(asked["requestState"])
    answers = {
        key: {"action": "accept", "content": {"response": "a"}} for key in asked["inputRequests"]
    }
    bodies = [
        lawful("server/discover"),
        lawful("tools/list"),
        lawful("tools/list", version="2099-01-01"),
        lawful("resources/list"),
        {**lawful("notifications/cancelled", requestId=1), "id": None},
        lawful("tools/call", name="says", arguments={"value": "a"}),
        lawful("tools/call", name="keeps", arguments={"value": {"a": [1, 2.5, None]}}),
        lawful(
            "tools/call",
            name="keeps",
            arguments={"value": 2},
            requestState=asked["requestState"],
            inputResponses=answers,
        ),
    ]
    for number in range(20_000):
        await sent_to(here, bender.bend(bodies[number % len(bodies)], deep=False), seen)
    assert seen.codes.keys() >= {-32700, -32600, -32601, -32602, -32020, -32022}
    assert seen.statuses.keys() >= {200, 202, 400, 404, 405, 413, 415}
    assert seen.results > 1500
    assert rows(database)["intermezzo_calls"] == len(seen.states)


async def test_values_bent_inside_lawful_requests(here: Target, database: str) -> None:
    """They get far, and come back as they were: 12,000 at once, 3,000 through a pause."""
    seen, bender = Findings(), Bender(f"{SEED} inside")
    says = lawful("tools/call", name="says", arguments={"value": {"a": [1, "b", {"c": None}]}})
    keeps = lawful("tools/call", name="keeps", arguments={"value": {"a": [1, "b", {"c": None}]}})
    for number in range(15_000):
        body = keeps if number % 5 == 0 else says
        sent = bender.bend(body, deep=True)
        result = await sent_to(here, sent, seen)
        if result is None:
            continue
        params = strict(sent.body)["params"]
        if result.get("isError"):
            assert "value" not in params.get("arguments", {}), (sent, result)
            continue
        if params.get("name") == "says":
            seen.unchanged_value(params["arguments"]["value"], result, "answer")
        if result.get("resultType") == "input_required" and "requestState" not in params:
            seen.unchanged_value(
                params["arguments"]["value"], await resumed(here, params, result, seen), "value"
            )
    assert seen.unchanged > 4000
    assert rows(database)["intermezzo_calls"] == len(seen.states)


async def resumed(
    here: Target, params: dict[str, Any], asked: dict[str, Any], seen: Findings
) -> dict[str, Any]:
    answers = {
        key: {"action": "accept", "content": {"response": "a"}} for key in asked["inputRequests"]
    }
    retry = {**params, "requestState": asked["requestState"], "inputResponses": answers}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": retry}
    headers = fields(lawful("tools/call", name="keeps"))
    result = await sent_to(here, Sent("POST", headers, json.dumps(body).encode()), seen)
    assert result is not None
    return result


async def test_answers_bent_inside_a_round(here: Target, database: str) -> None:
    """What fits the form arrives as it is; whatever does not leaves the round open."""
    seen, bender = Findings(), Bender(f"{SEED} answers")
    good = {
        "text": "a",
        "number": 1.5,
        "whole": 7,
        "truth": False,
        "choice": "b",
        "choices": ["a", "b"],
        "day": "2026-07-28",
    }
    ended = 0
    asked = await here.call("fills", 1)
    for _ in range(2500):
        seen.states.add(asked["requestState"])
        [key] = asked["inputRequests"]
        body = lawful(
            "tools/call",
            name="fills",
            arguments={"value": 1},
            requestState=asked["requestState"],
            inputResponses={key: {"action": "accept", "content": good}},
        )
        sent = bender.bend(body, deep=True)
        result = await sent_to(here, sent, seen)
        if result is None or result.get("resultType") == "input_required":
            continue
        ended += 1
        answers = strict(sent.body)["params"].get("inputResponses")
        if not result.get("isError") and isinstance(answers, dict):
            content: dict[str, Any] = cast("dict[str, Any]", answers)[key]["content"]
            output = json.loads(result["content"][0]["text"])["answer"]
            asked_for = {name: value for name, value in content.items() if name in good}
            assert delivered(asked_for, output), (sent, output)
        asked = await here.call("fills", 1)
    assert ended > 200
    assert seen.codes[-32602] > 300
    assert rows(database)["intermezzo_calls"] == len(seen.states | {asked["requestState"]})


def delivered(content: dict[str, Any], output: dict[str, Any]) -> bool:
    """Whether the agent got what was answered: a whole float is the integer that was asked for."""
    whole = content.get("whole")
    if isinstance(whole, float) and whole.is_integer():
        content = {**content, "whole": int(whole)}
    return same(content, output)


# Request states.


async def state_is_refused(here: Target, token: str, **changes: Any) -> None:
    params: dict[str, Any] = {"name": "keeps", "arguments": {"value": 1}, "inputResponses": {}}
    body = lawful("tools/call", **{**params, **changes}, requestState=token)
    told = await here.send(Sent("POST", fields(body), json.dumps(body).encode()))
    error = strict(told.body)["error"]
    assert told.status == 400, (token, told)
    assert error == {"code": -32602, "message": "Invalid or expired requestState"}, token


async def test_a_state_with_any_bit_changed_is_refused(here: Target) -> None:
    token = (await here.call("keeps", 1))["requestState"]
    for position, character in enumerate(token):
        for bit in range(7):
            changed = chr(ord(character) ^ (1 << bit))
            await state_is_refused(here, token[:position] + changed + token[position + 1 :])
    await resumes(here, token)


async def test_a_state_that_is_cut_or_grown_anywhere_is_refused(here: Target) -> None:
    token = (await here.call("keeps", 1))["requestState"]
    for position in range(len(token)):
        await state_is_refused(here, token[:position])
        await state_is_refused(here, token[position + 1 :])
        await state_is_refused(here, token[:position] + token[position + 1 :])
        for more in ("A", "=", ".", "\0", "\n", " ", "é", "%00"):
            await state_is_refused(here, token[:position] + more + token[position:])
    await state_is_refused(here, token + token)
    await resumes(here, token)


async def test_a_state_serves_its_own_call_round_tool_and_arguments_alone(here: Target) -> None:
    first, second = [(await here.call("keeps", value))["requestState"] for value in (1, 2)]
    other = (await here.call("fills", 1))["requestState"]
    await state_is_refused(here, second)
    await state_is_refused(here, other)
    await state_is_refused(here, first, name="fills")
    for value in (1.0, True, "1", [1], None):
        await state_is_refused(here, first, arguments={"value": value})
    for left in (first, second, other):
        for right in (first, second, other):
            if left != right:
                await state_is_refused(here, f"{left.split('.')[0]}.{right.split('.')[1]}")
    await resumes(here, first)


async def resumes(here: Target, token: str) -> None:
    """The state itself is as good as ever."""
    told = await here.call("keeps", 1, requestState=token, inputResponses={})
    assert told["requestState"] == token


# Over a socket.


@pytest.fixture(scope="module")
def address(module_database: str) -> Iterator[tuple[Served, tuple[str, int]]]:
    with serving(module_database, config=AGENTS) as served:
        parts = urlsplit(served.url)
        assert parts.hostname is not None
        yield served, (parts.hostname, parts.port or 80)


def exchanged(address: tuple[str, int], data: bytes, *, whole: bool) -> bytes:
    """Bytes, and what comes back; of a request that is not whole, what comes back soon."""
    received = b""
    with socket.create_connection(address, timeout=5 if whole else 0.05) as connection:
        try:
            connection.sendall(data)
            while more := connection.recv(65536):
                received += more
        except TimeoutError:
            assert not whole, (data, received)
        except ConnectionError:
            pass
    return received


def head(sent: Sent, host: bytes) -> bytes:
    lines = [f"{sent.method} /mcp HTTP/1.1".encode()]
    lines += [b"%s: %s" % each for each in sent.headers if each[0] != b"host"]
    return b"\r\n".join([*lines, b"host: " + host, b"connection: close", b"", b""])


def with_length(sent: Sent) -> Sent:
    named: list[Field] = [each for each in sent.headers if each[0] != b"content-length"]
    return Sent(sent.method, [*named, (b"content-length", b"%d" % len(sent.body))], sent.body)


async def test_over_a_socket_too_nothing_is_a_fault_of_ours(
    address: tuple[Served, tuple[str, int]],
) -> None:
    served, place = address
    bender = Bender(f"{SEED} socket")
    body = lawful("tools/call", name="says", arguments={"value": "a"})
    host = b"%s:%d" % (place[0].encode(), place[1])
    statuses: Counter[bytes] = Counter()
    for number in range(600):
        sent = with_length(bender.bend(body, deep=number % 2 == 0))
        data, whole = head(sent, host) + sent.body, number % 5 > 0
        if not whole:
            at = bender.random.randrange(len(data))
            data = bender.random.choice(
                (
                    data[:at],
                    data[:at] + bender.random.randbytes(20) + data[at:],
                    bender.random.randbytes(at),
                )
            )
        received = await asyncio.to_thread(exchanged, place, data, whole=whole)
        if received:
            statuses[received.split(b" ", 2)[1][:1]] += 1
            assert not [word for word in INSIDE if word in received], (data, received)
    assert statuses.keys() <= {b"2", b"4"}, statuses
    assert min(statuses[b"2"], statuses[b"4"]) > 50
    assert served.process.poll() is None
    assert "Traceback" not in served.log()
