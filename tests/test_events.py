"""Progress and log messages over real HTTP, and what becomes of a stream that is closed."""

import asyncio
import json
import time
from collections.abc import Generator, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import Response

from core.progress import Progress
from core.protocol import CAPABILITIES_KEY, LATEST, LOG_LEVEL_KEY, VERSION_KEY
from handler.app import BUFFERED, build
from handler.events import MOST, Events, streamed
from handler.resources import Resources
from handler.response import ABANDONED, Answer
from handler.settings import Settings
from tests.conversation import AGENTS
from tests.served import KEY, META, Served, message, post, result

ACCEPT = {"Accept": "application/json, text/event-stream"}
TOKEN: dict[str, Any] = {**META, "progressToken": "t"}


def params(agent: str, journal: Path, **changes: Any) -> dict[str, Any]:
    return {"name": agent, "arguments": {"journal": str(journal)}, **changes}


@contextmanager
def streaming(
    url: str, agent: str, journal: Path, *, version: str = LATEST, **changes: Any
) -> Generator[httpx.Response]:
    """A call whose answer is read as it comes."""
    sent = {"_meta": TOKEN, **params(agent, journal, **changes)}
    headers, body = message("tools/call", **sent)
    if version != LATEST:
        headers = {"MCP-Protocol-Version": version}
    headers |= ACCEPT
    with httpx.stream("POST", url, headers=headers, json=body, timeout=30) as response:
        yield response


def messages(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """The messages of a stream, each as soon as it is there."""
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def whole(url: str, agent: str, journal: Path, **changes: Any) -> list[dict[str, Any]]:
    """All messages of a call: its notifications, and its answer."""
    with streaming(url, agent, journal, **changes) as response:
        return list(messages(response))


def reported(message: dict[str, Any]) -> tuple[Any, ...]:
    assert message["method"] == "notifications/progress"
    found = message["params"]
    assert found["progressToken"] == "t"
    return found["progress"], found.get("total"), found.get("message")


def ran(journal: Path) -> list[str]:
    return (journal / "ran").read_text().split()


# A stream and what is on it.


def test_each_report_arrives_while_the_agent_still_runs(noting: Served, tmp_path: Path) -> None:
    (tmp_path / "hold-half").touch()
    with streaming(noting.url, "halves", tmp_path) as response:
        assert response.headers["x-accel-buffering"] == "no"
        coming = messages(response)
        assert reported(next(coming)) == (1, 2, "half")
        (tmp_path / "hold-half").unlink()
        assert reported(next(coming)) == (2, 2, None)
        answer = next(coming)
    assert answer["id"] == 1
    assert answer["result"]["resultType"] == "complete"


def test_what_a_subgraph_reports_is_told_as_well(noting: Served, tmp_path: Path) -> None:
    *told, answer = whole(noting.url, "halves_inside", tmp_path)
    assert [reported(each) for each in told] == [(1, 2, "half"), (2, 2, None)]
    assert "whole" in answer["result"]["content"][0]["text"]


def test_an_agent_that_reports_nothing_is_told_of_node_by_node(
    noting: Served, tmp_path: Path
) -> None:
    first, *_, answer = whole(noting.url, "nodes", tmp_path)
    assert reported(first) == (1, None, "first")
    assert "result" in answer


def test_questions_end_a_stream_and_so_does_the_result_of_the_retry(
    noting: Served, tmp_path: Path
) -> None:
    *told, asked = whole(noting.url, "one", tmp_path)
    assert [reported(each) for each in told] == [(1, None, "before")]
    (key,) = asked["result"]["inputRequests"]
    state = asked["result"]["requestState"]
    answers = {key: {"action": "accept", "content": {"response": "yes"}}}
    ended = whole(noting.url, "one", tmp_path, inputResponses=answers, requestState=state)[-1]
    assert ended["result"]["resultType"] == "complete"


def test_an_older_client_is_told_too_and_its_result_is_bare(noting: Served, tmp_path: Path) -> None:
    *told, answer = whole(
        noting.url, "halves", tmp_path, version="2025-11-25", _meta={"progressToken": "t"}
    )
    assert [reported(each)[0] for each in told] == [1, 2]
    assert "resultType" not in answer["result"]


def test_an_error_after_the_first_report_is_on_the_stream(noting: Served, tmp_path: Path) -> None:
    silent: dict[str, Any] = {VERSION_KEY: LATEST, CAPABILITIES_KEY: {}, "progressToken": "t"}
    *told, refused = whole(noting.url, "one", tmp_path, _meta=silent)
    assert [reported(each)[2] for each in told] == ["before"]
    assert (refused["id"], refused["error"]["code"]) == (1, -32021)


def test_an_agent_that_fails_late_has_its_error_result_on_the_stream(
    noting: Served, tmp_path: Path
) -> None:
    *told, answer = whole(noting.url, "breaks_later", tmp_path)
    assert [reported(each)[2] for each in told] == ["first"]
    assert answer["result"]["isError"] is True
    assert "secret" not in json.dumps(answer)


# JSON wherever a stream has no use.


def test_an_error_before_the_first_report_is_json_with_its_status(
    noting: Served, tmp_path: Path
) -> None:
    silent: dict[str, Any] = {VERSION_KEY: LATEST, CAPABILITIES_KEY: {}, "progressToken": "t"}
    refused = {
        -32021: params("two", tmp_path, _meta=silent),
        -32602: params("unknown", tmp_path, _meta=TOKEN),
    }
    for code, sent in refused.items():
        response = post(noting.url, "tools/call", headers=ACCEPT, **sent)
        assert response.headers["content-type"] == "application/json"
        assert (response.status_code, response.json()["error"]["code"]) == (400, code)


@pytest.mark.parametrize(
    ("meta", "accept"),
    [
        (META, "application/json, text/event-stream"),
        (TOKEN, "application/json"),
        (TOKEN, "*/*"),
    ],
)
def test_a_client_that_wants_no_reports_or_can_not_read_them_gets_json(
    noting: Served, tmp_path: Path, meta: dict[str, Any], accept: str
) -> None:
    sent = params("halves", tmp_path, _meta=meta)
    response = post(noting.url, "tools/call", headers={"Accept": accept}, **sent)
    assert response.headers["content-type"] == "application/json"
    assert result(response)["resultType"] == "complete"


def test_a_list_is_json_whatever_the_client_wants(noting: Served) -> None:
    response = post(noting.url, "tools/list", headers=ACCEPT, _meta=TOKEN)
    assert response.headers["content-type"] == "application/json"


@pytest.mark.anyio
async def test_a_transport_that_passes_answers_on_as_a_whole_gets_json(tmp_path: Path) -> None:
    app = build(Resources(Settings(config=AGENTS, database_url="", request_state_keys=(KEY,))))

    async def buffered(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, BUFFERED: True}, receive, send)

    sent = {"_meta": TOKEN, **params("halves", tmp_path)}
    headers, body = message("tools/call", headers=ACCEPT, **sent)
    transport = httpx.ASGITransport(app=buffered)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        response = await client.post("/mcp", headers=headers, json=body)
    assert response.headers["content-type"] == "application/json"
    assert result(response)["resultType"] == "complete"


# Log messages.


def test_log_messages_come_only_from_the_level_that_the_request_sets(
    noting: Served, tmp_path: Path
) -> None:
    *told, answer = whole(noting.url, "logs", tmp_path, _meta={**META, LOG_LEVEL_KEY: "info"})
    assert [each["method"] for each in told] == ["notifications/message"] * 2
    assert [each["params"]["level"] for each in told] == ["info", "error"]
    assert told[0]["params"] == {"level": "info", "data": {"said": "info"}, "logger": "agent"}
    assert "result" in answer


def test_without_a_level_there_are_no_log_messages(noting: Served, tmp_path: Path) -> None:
    *told, _ = whole(noting.url, "logs", tmp_path)
    assert [each["method"] for each in told] == ["notifications/progress"]
    sent = params("logs", tmp_path)
    response = post(noting.url, "tools/call", headers=ACCEPT, **sent)
    assert response.headers["content-type"] == "application/json"


# To close a stream is to cancel.


def test_a_closed_stream_cancels_the_run(noting: Served, tmp_path: Path) -> None:
    (tmp_path / "hold-patient").touch()
    with streaming(noting.url, "waits", tmp_path) as response:
        reported(next(messages(response)))
    wait_for_line(tmp_path, "stopped")
    assert "patient" not in ran(tmp_path)
    wait_for_outcome(noting, "abandoned")


def test_a_resumed_run_that_was_cancelled_goes_on_when_its_answers_come_again(
    noting: Served, tmp_path: Path
) -> None:
    (tmp_path / "hold-patient").touch()
    asked = result(post(noting.url, "tools/call", **params("waits_later", tmp_path)))
    (key,) = asked["inputRequests"]
    retry: dict[str, Any] = {
        "inputResponses": {key: {"action": "accept", "content": {"response": "yes"}}},
        "requestState": asked["requestState"],
    }
    with streaming(noting.url, "waits_later", tmp_path, **retry) as response:
        coming = messages(response)
        assert reported(next(coming))[2] == "ask"
        reported(next(coming))
    wait_for_line(tmp_path, "stopped")

    (tmp_path / "hold-patient").unlink()
    ended = result(post(noting.url, "tools/call", **params("waits_later", tmp_path, **retry)))
    assert json.loads(ended["content"][0]["text"])["answers"] == ["ask=yes", "patient"]
    assert ran(tmp_path).count("ask?") == 2


def wait_for_line(journal: Path, line: str) -> None:
    """Wait until an agent has noted this."""
    deadline = time.monotonic() + 10
    while line not in ran(journal):
        assert time.monotonic() < deadline, f"{line} was not noted"
        time.sleep(0.005)


def wait_for_outcome(process: Served, outcome: str) -> None:
    """Wait until the last line of a process's log is of a request that ended so."""
    deadline = time.monotonic() + 10
    while f'"outcome": "{outcome}"' not in "".join(process.log().splitlines()[-1:]):
        assert time.monotonic() < deadline, process.log()
        time.sleep(0.005)


# A stream by itself.


def respond(answer: Answer) -> Response:
    return Response(answer.body, answer.status)


class Client:
    """The far end of a stream: what it was sent."""

    def __init__(self) -> None:
        self.start: dict[str, Any] = {}
        self.body = b""
        self.more = asyncio.Event()

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.start = dict(message)
        self.body += message.get("body", b"")
        self.more.set()

    async def until(self, part: bytes) -> None:
        async with asyncio.timeout(10):
            while part not in self.body:
                self.more.clear()
                await self.more.wait()


async def receive() -> dict[str, Any]:
    raise AssertionError("whoever does the work listens for the client")


def telling_of(*reports: int) -> Events:
    events = Events(Progress(token="t", level=None))
    for report in reports:
        events.tell("custom", {"progress": report})
    return events


@pytest.mark.anyio
async def test_a_silent_stream_says_that_it_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.events.KEEP_ALIVE", 0.01)
    client, may_end = Client(), asyncio.Event()

    async def work() -> Answer:
        await may_end.wait()
        return Answer(status=200, body=b"{}")

    response = await streamed(work(), telling_of(1), respond)
    sending = asyncio.ensure_future(response({}, receive, client.send))
    await client.until(b":\n\n:\n\n")
    may_end.set()
    await sending
    assert client.start["status"] == 200
    assert client.body.startswith(b"event: message\ndata: {")
    assert client.body.endswith(b"event: message\ndata: {}\n\n")


@pytest.mark.anyio
async def test_a_client_that_reads_slowly_misses_the_oldest_reports_and_not_the_answer() -> None:
    client, may_end = Client(), asyncio.Event()

    async def work() -> Answer:
        await may_end.wait()
        return Answer(status=200, body=b"{}")

    response = await streamed(work(), telling_of(*range(MOST + 10)), respond)
    may_end.set()
    await response({}, receive, client.send)
    events = client.body.decode().split("\n\n")
    assert len(events) == MOST + 2
    assert '"progress":10,' not in events[0]
    assert '"progress":10}' in events[0]
    assert events[-2].endswith("data: {}")


@pytest.mark.anyio
async def test_nothing_is_left_running_when_the_far_end_breaks() -> None:
    ended = asyncio.Event()

    async def work() -> Answer:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError("nothing ever comes")

    async def send(message: MutableMapping[str, Any]) -> None:
        raise OSError("broken pipe")

    before = asyncio.all_tasks()
    response = await streamed(work(), telling_of(1), respond)
    with pytest.raises(OSError, match="broken pipe"):
        await response({}, receive, send)
    assert ended.is_set()
    assert asyncio.all_tasks() == before


@pytest.mark.anyio
async def test_a_stream_whose_client_has_left_ends_quietly() -> None:
    client, leave = Client(), asyncio.Event()

    async def work() -> Answer:
        await leave.wait()
        return ABANDONED

    response = await streamed(work(), telling_of(1), respond)
    sending = asyncio.ensure_future(response({}, receive, client.send))
    await client.until(b"progress")
    told = client.body
    leave.set()
    await sending
    assert client.body == told


@pytest.mark.anyio
async def test_work_that_tells_nothing_is_answered_plainly_and_stopped_with_its_request() -> None:
    async def work() -> Answer:
        return Answer(status=404, body=b"{}")

    assert (await streamed(work(), telling_of(), respond)).status_code == 404

    started, ended = asyncio.Event(), asyncio.Event()

    async def endless() -> Answer:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError("nothing ever comes")

    request = asyncio.ensure_future(streamed(endless(), telling_of(), respond))
    await started.wait()
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    assert ended.is_set()
