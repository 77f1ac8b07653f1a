"""A request's body: what is read of it, and what is not waited for."""

import asyncio
import time

import pytest
from starlette.requests import Request
from starlette.types import Message

from handler.body import PATIENCE, Body
from handler.headers import Headers
from handler.refusals import BodyTooLarge, BodyTooSlow
from handler.visit import Visit
from tests.visits import visit

pytestmark = pytest.mark.anyio

LIMIT = 10


class Sender:
    """A client that sends a byte at a time, so many of them, and then waits or ends."""

    def __init__(self, size: int, *, announced: str = "", ends: bool = True) -> None:
        self.left, self.ends, self.taken = size, ends, 0
        lines = [(b"content-length", announced.encode())] if announced else []
        http = Request({"type": "http", "headers": lines}, self.receive)
        self.body = Body(http, Headers(lines), LIMIT, time.monotonic() + 0.2)

    async def receive(self) -> Message:
        if not self.left:
            await asyncio.sleep(0 if self.ends else 60)
            return {"type": "http.request", "body": b"", "more_body": False}
        self.left -= 1
        self.taken += 1
        return {"type": "http.request", "body": b"x", "more_body": True}


async def test_a_body_is_read_once_however_often_it_is_asked_for() -> None:
    sender = Sender(LIMIT, announced=str(LIMIT))
    assert await sender.body.read() == await sender.body.read() == b"x" * LIMIT


@pytest.mark.parametrize("announced", ["", str(LIMIT + 1), str(LIMIT * PATIENCE), "many"])
async def test_one_that_is_a_little_too_large_is_read_to_its_end(announced: str) -> None:
    sender = Sender(LIMIT + 1, announced=announced)
    for _ in range(2):
        with pytest.raises(BodyTooLarge):
            await sender.body.read()
    assert sender.taken == LIMIT + 1


@pytest.mark.parametrize("announced", [str(LIMIT * PATIENCE + 1), "9" * 5000])
async def test_one_that_says_it_is_far_too_large_is_not_read(announced: str) -> None:
    sender = Sender(LIMIT, announced=announced)
    with pytest.raises(BodyTooLarge):
        await sender.body.read()
    assert sender.taken == 0


async def test_one_that_turns_out_far_too_large_is_not_read_to_its_end() -> None:
    sender = Sender(LIMIT * 100)
    with pytest.raises(BodyTooLarge):
        await sender.body.read()
    assert sender.taken == LIMIT * PATIENCE + 1


async def test_one_that_does_not_come_in_time_is_given_up() -> None:
    sender = Sender(LIMIT - 1, ends=False)
    for _ in range(2):
        with pytest.raises(BodyTooSlow):
            await sender.body.read()


async def test_code_that_is_not_ours_gets_the_body_once_and_then_what_comes_after_it() -> None:
    comes: list[Message] = [
        {"type": "http.request", "body": b"{}", "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return comes.pop(0)

    seen = visit()
    http = Request(seen.http.scope, receive)
    body = Body(http, seen.headers, LIMIT, time.monotonic() + 5)
    request = Visit(http, seen.headers, body).request()
    assert await request.body() == b"{}"
    assert await request.receive() == {"type": "http.disconnect"}
    assert await body.read() == b"{}"
