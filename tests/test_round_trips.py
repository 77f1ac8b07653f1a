"""How often a request waits for the database: counted on the wire, on a warm connection."""

import tempfile
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from core.caller import Permit
from core.errors import InvalidParams, InvalidRequestState
from core.rounds import CANNOT_RESUME
from tests.conversation import Instance, accept, instance, said
from tests.wire import RoundTrips, counting

pytestmark = pytest.mark.anyio


@pytest.fixture
async def wire(database: str) -> AsyncGenerator[RoundTrips]:
    with tempfile.TemporaryDirectory(prefix="wire-") as folder:
        async with counting(database, Path(folder)) as trips:
            yield trips


@pytest.fixture
async def here(wire: RoundTrips, tmp_path: Path) -> AsyncGenerator[Instance]:
    """An instance whose connection is open and warm."""
    async with instance(wire.conninfo, tmp_path) as one:
        asked = await one.asks("one")
        await one.ends("one", accept(asked, Go="yes"), asked.request_state)
        wire.taken()
        yield one


async def test_a_call_that_does_not_pause_makes_none(here: Instance, wire: RoundTrips) -> None:
    await here.ends("done")
    assert wire.taken() == 0


async def test_a_pause_makes_one_and_a_resume_that_finishes_two(
    here: Instance, wire: RoundTrips
) -> None:
    asked = await here.asks("one")
    assert wire.taken() == 1
    await here.ends("one", accept(asked, Go="yes"), asked.request_state)
    assert wire.taken() == 2


async def test_a_resume_that_asks_again_makes_two(here: Instance, wire: RoundTrips) -> None:
    first = await here.asks("twice")
    wire.taken()
    await here.asks("twice", accept(first, Name="Ada"), first.request_state)
    assert wire.taken() == 2


async def test_every_further_superstep_makes_one_more(here: Instance, wire: RoundTrips) -> None:
    asked = await here.asks("steps")
    wire.taken()
    await here.ends("steps", accept(asked, Go="yes"), asked.request_state)
    assert wire.taken() == 2 + 4


async def test_parallel_questions_make_no_more_than_one(here: Instance, wire: RoundTrips) -> None:
    asked = await here.asks("pair")
    assert wire.taken() == 1
    await here.ends("pair", accept(asked, Left="l", Right="r"), asked.request_state)
    assert wire.taken() == 2


async def test_a_replay_makes_one(here: Instance, wire: RoundTrips) -> None:
    first = await here.asks("two")
    answers = accept(first, First="1")
    second = await here.asks("two", answers, first.request_state)
    wire.taken()
    await here.asks("two", answers, first.request_state)
    assert wire.taken() == 1
    await here.ends("two", accept(second, Second="2"), second.request_state)
    wire.taken()
    await here.ends("two", accept(second, Second="2"), second.request_state)
    assert wire.taken() == 1


async def test_missing_and_refused_answers_make_one(here: Instance, wire: RoundTrips) -> None:
    asked = await here.asks("pair")
    wire.taken()
    await here.asks("pair", accept(asked, Left="l"), asked.request_state)
    assert wire.taken() == 1
    await here.ends("pair", accept(asked, Left="l", Right="r"), asked.request_state)
    wire.taken()
    with pytest.raises(InvalidParams):
        await here.call("pair", accept(asked, Left="l", Right="other"), asked.request_state)
    assert wire.taken() == 1


async def test_an_invalid_answer_makes_two(here: Instance, wire: RoundTrips) -> None:
    asked = await here.asks("one")
    wire.taken()
    with pytest.raises(InvalidParams):
        await here.call("one", accept(asked, Go={"response": 5}), asked.request_state)
    assert wire.taken() == 2


async def test_a_forged_state_makes_none(here: Instance, wire: RoundTrips) -> None:
    asked = await here.asks("one")
    wire.taken()
    with pytest.raises(InvalidRequestState):
        await here.call("one", accept(asked, Go="yes"), asked.request_state[:-1] + "~")
    assert wire.taken() == 0


class Rules:
    """Rules about threads that know whose they are by a mark."""

    def __init__(self, owner: str) -> None:
        self.owner = owner

    async def start(self, agent: str) -> None:
        pass

    async def keep(self, thread: UUID, agent: str) -> Mapping[str, Any]:
        return {"owner": self.owner}

    async def resume(self, thread: UUID, agent: str) -> Permit | None:
        if self.owner == "nobody":
            raise InvalidRequestState("may not read")
        return lambda metadata: metadata.get("owner") == self.owner


async def test_rules_about_threads_add_none(here: Instance, wire: RoundTrips) -> None:
    await here.ends("done", threads=Rules("ada"))
    assert wire.taken() == 0
    asked = await here.asks("one", threads=Rules("ada"))
    assert wire.taken() == 1
    answers = accept(asked, Go="yes")
    with pytest.raises(InvalidRequestState):
        await here.call("one", answers, asked.request_state, threads=Rules("nobody"))
    assert wire.taken() == 0
    denied = await here.ends("one", answers, asked.request_state, threads=Rules("bob"))
    assert said(denied) == CANNOT_RESUME
    assert wire.taken() == 2  # claimed, and given back
    await here.ends("one", answers, asked.request_state, threads=Rules("ada"))
    assert wire.taken() == 2
