"""The bound on calls at a time."""

import asyncio
import time

import pytest

from core.errors import RetryLater
from handler.turns import Turns

pytestmark = pytest.mark.anyio


async def test_no_more_than_the_bound_run_at_once_and_all_get_their_turn() -> None:
    turns, running, most = Turns(3), 0, 0

    async def work() -> None:
        nonlocal running, most
        async with turns.turn(time.monotonic() + 30):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(work() for _ in range(20)))
    assert most == 3
    assert running == 0


async def test_a_call_whose_turn_does_not_come_in_time_is_told_to_come_again() -> None:
    turns = Turns(1)
    async with turns.turn(time.monotonic() + 30):
        with pytest.raises(RetryLater) as raised:
            async with turns.turn(time.monotonic() + 0.02):
                pytest.fail("there was no place")
    assert raised.value.data == {"retryAfterMs": 1000}


async def test_a_turn_that_fails_is_given_back() -> None:
    turns = Turns(1)
    with pytest.raises(ZeroDivisionError):
        async with turns.turn(time.monotonic() + 30):
            raise ZeroDivisionError
    async with turns.turn(time.monotonic() + 0.02):
        pass
