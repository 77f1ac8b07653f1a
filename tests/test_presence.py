"""Work that stops when the client hangs up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from handler.presence import while_present

pytestmark = pytest.mark.anyio


def hangs_up(once: asyncio.Event) -> Callable[[], Awaitable[dict[str, Any]]]:
    """A client that hangs up once something has happened."""

    async def receive() -> dict[str, Any]:
        await once.wait()
        return {"type": "http.disconnect"}

    return receive


async def stays() -> dict[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError("nothing ever comes")


async def test_the_result_comes_back_and_nothing_is_left_running() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    before = asyncio.all_tasks()
    assert await while_present(stays, work()) == 7
    assert asyncio.all_tasks() == before


async def test_what_the_work_raises_is_raised() -> None:
    async def work() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await while_present(stays, work())


async def test_a_client_that_hangs_up_ends_the_work_before_it_is_told() -> None:
    hung_up, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        hung_up.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    before = asyncio.all_tasks()
    with pytest.raises(ClientDisconnect):
        await while_present(hangs_up(hung_up), work())
    assert ended.is_set()
    assert asyncio.all_tasks() == before


async def test_work_that_fails_on_being_stopped_leaves_no_trace() -> None:
    hung_up = asyncio.Event()

    async def work() -> None:
        hung_up.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise ZeroDivisionError

    with pytest.raises(ClientDisconnect):
        await while_present(hangs_up(hung_up), work())


async def test_a_client_that_hangs_up_just_as_the_work_ends_is_no_error() -> None:
    now = asyncio.Event()
    problems: list[dict[str, Any]] = []

    async def work() -> int:
        await asyncio.sleep(0)  # so that the client is the first to wait
        asyncio.get_running_loop().call_soon(now.set)
        await now.wait()
        return 7

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: problems.append(context))
    try:
        assert await while_present(hangs_up(now), work()) == 7
        await asyncio.sleep(0)
    finally:
        loop.set_exception_handler(None)
    assert problems == []
