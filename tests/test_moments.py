"""Two things at the very same moment: an expiry and a claim, a migration and calls."""

import asyncio
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from core import migrate as migrating
from core.errors import InvalidRequestState
from core.migrate import migrate
from core.request_state import make_key
from core.sweeper import sweep
from tests.conversation import Instance, accept, said, until
from tests.served import post, result, run, serving
from tests.sessions import Sessions
from tests.tables import execute, rows

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 7, 28, 12, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)


def at_noon(database: str, *, expires: datetime, claimed_until: datetime | None = None) -> None:
    """Stop the clock at noon, and let the only call expire then or a moment later."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            SQL(
                "CREATE OR REPLACE FUNCTION intermezzo_now() RETURNS timestamptz"
                " LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT {}::timestamptz'"
            ).format(SQL(f"''{NOON.isoformat()}''"))  # pyright: ignore[reportArgumentType] - a constant
        )
        connection.execute("UPDATE intermezzo_calls SET expires_at = %s", [expires])
        if claimed_until is not None:
            connection.execute(
                "UPDATE intermezzo_rounds SET state = 'claimed', claim = gen_random_uuid(),"
                " claimed_until = %s",
                [claimed_until],
            )


# An expiry and a claim.


async def test_at_the_moment_of_its_expiry_a_call_is_gone_for_claims_and_for_the_sweep(
    here: Instance, database: str
) -> None:
    asked = await here.asks("one")
    at_noon(database, expires=NOON)
    with pytest.raises(InvalidRequestState):
        await here.call("one", accept(asked, Go="yes"), asked.request_state)
    assert here.ran() == {"before": 1, "ask?": 1}
    assert await sweep(here.store) == 1
    assert set(rows(database).values()) == {0}


async def test_a_moment_before_its_expiry_a_call_is_there_for_claims_and_for_the_sweep(
    here: Instance, database: str
) -> None:
    asked = await here.asks("one")
    at_noon(database, expires=NOON + MOMENT)
    assert await sweep(here.store) == 0
    await here.ends("one", accept(asked, Go="yes"), asked.request_state)


async def test_at_the_moment_of_its_lapse_a_claim_is_over_for_the_next_and_for_the_sweep(
    here: Instance, database: str
) -> None:
    asked = await here.asks("one")
    at_noon(database, expires=NOON + MOMENT, claimed_until=NOON)
    await here.ends("one", accept(asked, Go="yes"), asked.request_state)
    await here.asks("one")
    at_noon(database, expires=NOON)
    assert await sweep(here.store) == 2


async def test_a_moment_before_its_lapse_a_claim_keeps_its_call_from_the_next_and_from_the_sweep(
    here: Instance, database: str
) -> None:
    asked = await here.asks("one")
    at_noon(database, expires=NOON, claimed_until=NOON + MOMENT)
    assert await sweep(here.store) == 0
    with pytest.raises(InvalidRequestState):
        await here.call("one", accept(asked, Go="yes"), asked.request_state)
    assert here.ran() == {"before": 1, "ask?": 1}


async def test_a_claim_that_began_in_time_wins_though_the_call_expires_while_it_waits(
    here: Instance, database: str, sessions: Sessions
) -> None:
    asked = await here.asks("one")
    with sessions.hold():
        request = asyncio.create_task(
            here.ends("one", accept(asked, Go="yes"), asked.request_state)
        )
        await until(lambda: len(sessions.waiting()) == 1)
        execute(database, "UPDATE intermezzo_calls SET expires_at = now()")
        assert await sweep(here.store) == 0, "its row is held"
    assert '"ask=yes"' in said(await request)
    assert await sweep(here.store) == 0


async def test_a_call_that_is_swept_while_its_claim_waits_is_refused_and_nothing_runs(
    here: Instance, database: str, sessions: Sessions
) -> None:
    """The sweep has the row first, and deletes it."""
    asked = await here.asks("one")
    with sessions.hold() as sweeping:
        request = asyncio.create_task(
            here.call("one", accept(asked, Go="yes"), asked.request_state)
        )
        await until(lambda: len(sessions.waiting()) == 1)
        for table in ("checkpoint_writes", "checkpoint_blobs", "checkpoints", "intermezzo_calls"):
            sweeping.execute(SQL("DELETE FROM {}").format(Identifier(table)))
    with pytest.raises(InvalidRequestState):
        await request
    assert here.ran() == {"before": 1, "ask?": 1}
    assert set(rows(database).values()) == {0}


# A migration and calls.


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The migrations of a later version, with one more that alters a table in use."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrating.DIRECTORY, folder)
    name = "9999_later.sql"
    (folder / name).write_text(
        "-- A column that old code does not know.\n"
        "ALTER TABLE intermezzo_rounds ADD COLUMN later text;\n"
        "ALTER TABLE intermezzo_calls ADD COLUMN later text NOT NULL DEFAULT 'x';\n"
    )
    monkeypatch.setattr(migrating, "DIRECTORY", folder)
    return name


async def test_calls_go_on_while_the_database_is_migrated_by_a_later_version(
    here: Instance, database: str, newer: str
) -> None:
    """As while a deployment rolls out: this code serves before, during and after."""
    ended = asyncio.Event()

    async def converse() -> int:
        count = 0
        while count < 5 or not ended.is_set():
            first = await here.asks("two")
            second = await here.asks("two", accept(first, First="1"), first.request_state)
            result = await here.ends("two", accept(second, Second="2"), second.request_state)
            assert '["first=1","second=2"]' in said(result)
            count += 1
        return count

    asked = await here.asks("one")
    conversing = [asyncio.create_task(converse()) for _ in range(4)]
    assert await migrate(database) == [newer]
    ended.set()
    assert min(await asyncio.gather(*conversing)) >= 5
    await here.ends("one", accept(asked, Go="yes"), asked.request_state)


async def test_a_migration_waits_for_a_claim_that_is_being_made_and_loses_nothing(
    here: Instance, database: str, newer: str, sessions: Sessions
) -> None:
    asked = await here.asks("one")
    with sessions.hold():
        request = asyncio.create_task(
            here.ends("one", accept(asked, Go="yes"), asked.request_state)
        )
        await until(lambda: len(sessions.waiting()) == 1)
        migration = asyncio.create_task(migrate(sessions.database))
        await until(lambda: len(sessions.waiting()) == 2)
    assert '"ask=yes"' in said(await request)
    assert await migration == [newer]


def test_this_code_does_not_begin_to_serve_a_database_that_lacks_something(
    empty_database: str,
) -> None:
    """It is told with what to do, before the first request."""
    served = run("serve", "--port", "0", DATABASE_URL=empty_database, REQUEST_STATE_KEYS=make_key())
    assert served.returncode == 1
    assert "run `python -m handler migrate`" in served.stderr
    assert "Traceback" not in served.stderr


def test_this_code_begins_to_serve_a_database_that_is_ahead_of_it_and_says_so_once(
    database: str,
) -> None:
    """As where a process starts again while newer code is being deployed."""
    execute(database, "INSERT INTO intermezzo_migrations (name) VALUES ('9999_later.sql')")
    with serving(database) as process:
        asked = result(post(process.url, "tools/call", name="region", arguments={}))
        assert asked["resultType"] == "input_required"
        assert process.log().count("the database is ahead of this code by 9999_later.sql") == 1
