"""How long a call lives, and what the sweep deletes. Time is moved, never waited for."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from core.catalog import Catalog
from core.errors import InvalidParams, InvalidRequestState, MissingCapability
from core.protocol import InputRequired
from core.sweeper import sweep
from tests.clock import move
from tests.conversation import Instance, accept, instance, until
from tests.processes import Processes, wait_for
from tests.sessions import Sessions
from tests.tables import execute, rows, value

pytestmark = pytest.mark.anyio

MINUTE, HOUR = 60, 3600
FORM = frozenset({"form"})


async def test_a_paused_call_is_answered_until_24_hours_have_passed(
    here: Instance, database: str
) -> None:
    asked = await here.asks("one")
    move(database, seconds=24 * HOUR - MINUTE)
    await here.asks("one", {}, asked.request_state)
    move(database, seconds=24 * HOUR + 1)
    ran = here.ran()
    for answers in ({}, accept(asked, Go="yes")):
        with pytest.raises(InvalidRequestState):
            await here.call("one", answers, asked.request_state)
    assert here.ran() == ran


async def test_24_hours_count_from_the_newest_round(here: Instance, database: str) -> None:
    first = await here.asks("two")
    move(database, seconds=23 * HOUR)
    second = await here.asks("two", accept(first, First="1"), first.request_state)
    move(database, seconds=46 * HOUR)
    await here.ends("two", accept(second, Second="2"), second.request_state)


async def test_asking_again_and_repeating_do_not_make_a_call_live_longer(
    here: Instance, database: str
) -> None:
    first = await here.asks("two")
    move(database, seconds=23 * HOUR)
    await here.asks("two", {}, first.request_state)
    with pytest.raises(InvalidParams):
        await here.call("two", accept(first, First={"response": 5}), first.request_state)
    move(database, seconds=24 * HOUR + 1)
    with pytest.raises(InvalidRequestState):
        await here.call("two", {}, first.request_state)


async def test_the_outcome_of_a_finished_call_is_kept_for_10_minutes(
    here: Instance, database: str
) -> None:
    asked = await here.asks("one")
    answers = accept(asked, Go="yes")
    result = await here.ends("one", answers, asked.request_state)
    move(database, seconds=10 * MINUTE - 5)
    assert await here.ends("one", answers, asked.request_state) == result
    move(database, seconds=10 * MINUTE + 1)
    with pytest.raises(InvalidRequestState):
        await here.call("one", answers, asked.request_state)


async def _not_shown(here: Instance) -> tuple[InputRequired, dict[str, Any]]:
    """A call whose second round its client can't show: its first one, and the answers to it."""
    first = await here.asks("url_later", modes=FORM)
    answers = accept(first, Form="yes")
    with pytest.raises(MissingCapability):
        await here.call("url_later", answers, first.request_state, modes=FORM)
    return first, answers


async def test_a_round_that_the_client_could_not_be_shown_is_kept_for_10_minutes(
    here: Instance, database: str
) -> None:
    first, answers = await _not_shown(here)
    move(database, seconds=9 * MINUTE)
    with pytest.raises(MissingCapability):
        await here.call("url_later", answers, first.request_state, modes=FORM)
    move(database, seconds=10 * MINUTE + 1)
    with pytest.raises(InvalidRequestState):
        await here.call("url_later", answers, first.request_state)


async def test_a_round_that_is_asked_after_all_lives_24_hours_from_then(
    here: Instance, database: str
) -> None:
    first, answers = await _not_shown(here)
    move(database, seconds=9 * MINUTE)
    second = await here.asks("url_later", answers, first.request_state)
    move(database, seconds=24 * HOUR)
    await here.ends("url_later", {"page": {"action": "decline"}}, second.request_state)


@pytest.mark.parametrize(
    ("minutes", "paused", "kept"), [(5, 5, 5), (60, 60, 10), (10_000, 24 * 60, 10)]
)
async def test_a_shorter_default_ttl_shortens_both_lifetimes(
    database: str, tmp_path: Path, minutes: float, paused: float, kept: float
) -> None:
    stories = Path(__file__).parent / "agents" / "stories.py"
    config = tmp_path / "langgraph.json"
    content = {
        "dependencies": ["."],
        "graphs": {"one": f"{stories}:one"},
        "checkpointer": {"ttl": {"default_ttl": minutes}},
    }
    config.write_text(json.dumps(content), encoding="utf-8")
    async with instance(database, tmp_path, catalog=Catalog.read(config)) as here:
        asked = await here.asks("one")
        answers = accept(asked, Go="yes")
        assert _lives(database) == pytest.approx(paused * MINUTE, abs=5)
        await here.ends("one", answers, asked.request_state)
        assert _lives(database) == pytest.approx(kept * MINUTE, abs=5)


def _lives(database: str) -> float:
    """Seconds until the only call expires."""
    return value(
        database, "SELECT extract(epoch FROM expires_at - now())::float FROM intermezzo_calls"
    )


# The sweep.


async def _hundred_calls(here: Instance) -> None:
    """40 calls that never ask, 30 that finish after a question, 30 that are never answered."""
    for _ in range(40):
        await here.ends("done")
    for _ in range(30):
        asked = await here.asks("one")
        await here.ends("one", accept(asked, Go="yes"), asked.request_state)
        await here.asks("nested")


async def test_the_sweep_deletes_every_row_of_what_has_expired_and_of_nothing_else(
    here: Instance, database: str
) -> None:
    await _hundred_calls(here)
    assert rows(database)["intermezzo_calls"] == 60
    assert await sweep(here.store) == 0
    move(database, seconds=10 * MINUTE + 5)
    assert await sweep(here.store) == 30
    assert rows(database)["intermezzo_calls"] == rows(database)["intermezzo_rounds"] == 30
    move(database, seconds=24 * HOUR + 5)
    assert await sweep(here.store, batch=7) == 30
    assert set(rows(database).values()) == {0}


async def test_only_one_sweep_works_at_a_time(here: Instance, database: str) -> None:
    for _ in range(20):
        await here.asks("one")
    move(database, seconds=24 * HOUR + 5)
    async with instance(database, here.journal) as there:
        swept = await asyncio.gather(sweep(here.store), sweep(there.store), sweep(there.store))
    assert sum(swept) == 20
    assert set(rows(database).values()) == {0}


async def test_a_call_that_is_being_resumed_is_not_swept_however_late_it_is(
    here: Instance, database: str, processes: Processes
) -> None:
    asked = await here.asks("one")
    (here.journal / "hold-ask").touch()
    worker = processes.send("one", accept(asked, Go="yes"), asked.request_state, lease=7200.0)
    wait_for(here.journal / "held-ask")
    execute(database, "UPDATE intermezzo_calls SET expires_at = now() - interval '1 day'")
    assert await sweep(here.store) == 0
    (here.journal / "hold-ask").unlink()
    assert worker.one().kind == "ended"
    assert _lives(database) == pytest.approx(10 * MINUTE, abs=5)


async def test_a_claim_that_is_just_being_made_is_not_swept(here: Instance, database: str) -> None:
    """The claim's transaction is open when the sweep looks: the sweep passes the call by."""
    await here.asks("one")
    execute(database, "UPDATE intermezzo_calls SET expires_at = now()")
    async with await psycopg.AsyncConnection.connect(database) as claiming:
        await claiming.execute(
            "UPDATE intermezzo_rounds SET state = 'claimed', claim = gen_random_uuid(),"
            " claimed_until = now() + interval '1 minute'"
        )
        assert await sweep(here.store) == 0
        await claiming.commit()
    assert await sweep(here.store) == 0
    assert rows(database)["intermezzo_calls"] == 1


async def test_calls_that_can_not_be_swept_yet_hold_no_others_up(
    here: Instance, database: str, processes: Processes
) -> None:
    """The oldest ones are being resumed: they fill the first batches."""
    for _ in range(10):
        await here.asks("one")
    execute(
        database,
        "UPDATE intermezzo_calls AS c SET expires_at = now() - interval '1 minute' * n.number"
        " FROM (SELECT id, row_number() OVER () AS number FROM intermezzo_calls) AS n"
        " WHERE c.id = n.id",
        "UPDATE intermezzo_rounds SET state = 'claimed', claim = gen_random_uuid(),"
        " claimed_until = now() + interval '1 hour' WHERE call_id IN"
        " (SELECT id FROM intermezzo_calls ORDER BY expires_at LIMIT 5)",
    )
    assert await sweep(here.store, batch=2) == 5
    assert rows(database)["intermezzo_calls"] == 5


async def test_a_claim_that_lapsed_does_not_keep_its_call(
    here: Instance, database: str, processes: Processes
) -> None:
    asked = await here.asks("one")
    (here.journal / "crash-ask").touch()
    assert processes.send("one", accept(asked, Go="yes"), asked.request_state).killed()
    move(database, seconds=24 * HOUR + 5)
    assert await sweep(here.store) == 1
    assert set(rows(database).values()) == {0}


async def test_a_sweep_that_dies_is_finished_by_the_next(
    here: Instance, database: str, sessions: Sessions
) -> None:
    for _ in range(5):
        await here.asks("one")
    move(database, seconds=24 * HOUR + 5)
    with sessions.hold("SELECT 1 FROM checkpoints FOR UPDATE"):
        dying = asyncio.create_task(sweep(here.store))
        await until(lambda: bool(sessions.waiting()))
        dying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dying
    assert rows(database)["intermezzo_calls"] == 5
    assert await sweep(here.store) == 5
    assert set(rows(database).values()) == {0}


async def test_a_round_that_is_asked_after_all_while_the_sweep_looks_is_not_swept(
    here: Instance, database: str, sessions: Sessions
) -> None:
    """Whichever time the sweep reads the clock: it waits there until the round was asked."""
    for turn in itertools.count(1):
        await _not_shown(here)
        with psycopg.connect(sessions.database, autocommit=True) as connection:
            connection.execute("UPDATE intermezzo_calls SET expires_at = now()")
            connection.execute(_STOPPING_CLOCK)
            connection.execute("SELECT pg_advisory_lock(%s)", [turn])
            sweeping = asyncio.create_task(sweep(here.store))
            await until(lambda task=sweeping: task.done() or bool(sessions.waiting()))
            asked = not sweeping.done() and _ask(database)
            connection.execute("SELECT pg_advisory_unlock(%s)", [turn])
            await sweeping
            connection.execute("DROP SEQUENCE turns")
        assert rows(database)["intermezzo_calls"] == asked
        move(database, seconds=24 * HOUR + 5)
        await sweep(here.store)
        if not asked:
            assert turn > 2, "it asked while the sweep looked"
            return


_STOPPING_CLOCK = """
    CREATE SEQUENCE turns;
    CREATE OR REPLACE FUNCTION intermezzo_now() RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
    DECLARE
        turn bigint := nextval('turns');
    BEGIN
        PERFORM pg_advisory_lock_shared(turn), pg_advisory_unlock_shared(turn);
        RETURN now();
    END $$
"""
"""Each time that somebody reads it has a number, which a test may lock."""


def _ask(database: str) -> bool:
    """Ask the round that was withheld; False when the sweep has it already."""
    with psycopg.connect(database) as connection:
        connection.execute("SET lock_timeout = '0.2 s'")
        try:
            connection.execute(
                "WITH asked AS (UPDATE intermezzo_rounds SET state = 'asked'"
                " WHERE state = 'withheld' RETURNING call_id)"
                " UPDATE intermezzo_calls SET expires_at = now() + interval '1 day'"
                " FROM asked WHERE id = asked.call_id"
            )
        except psycopg.errors.LockNotAvailable:
            return False
    return True
