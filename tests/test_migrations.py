"""Migrating: any number at once, again without effect, and by older code too."""

import asyncio
import re
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from core import migrate as migrating
from core.migrate import DIRECTORY, MigrationError, check, migrate
from tests.tables import execute, tables

pytestmark = pytest.mark.anyio

MIGRATIONS = [path.name for path in sorted(DIRECTORY.glob("*.sql"))]


async def test_an_empty_database_gets_every_table(empty_database: str) -> None:
    assert await migrate(empty_database) == MIGRATIONS
    assert tables(empty_database) == {
        "intermezzo_migrations",
        "intermezzo_calls",
        "intermezzo_rounds",
        "checkpoint_migrations",
        "checkpoints",
        "checkpoint_blobs",
        "checkpoint_writes",
        "store",
        "store_migrations",
    }


async def test_migrating_again_does_nothing(database: str) -> None:
    assert await migrate(database) == []


async def test_eight_processes_migrate_an_empty_database_at_once(empty_database: str) -> None:
    program = (
        "import asyncio, sys; from core.migrate import migrate;"
        " print(asyncio.run(migrate(sys.argv[1])))"
    )
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, empty_database, stdout=asyncio.subprocess.PIPE
        )
        for _ in range(8)
    ]
    outputs = [(await process.communicate())[0].decode().strip() for process in processes]
    assert [process.returncode for process in processes] == [0] * 8
    assert sorted(outputs) == [str(MIGRATIONS)] + ["[]"] * 7


@pytest.mark.direct
async def test_migrating_waits_for_no_session_that_only_idles_in_a_transaction(
    empty_database: str,
) -> None:
    async with await psycopg.AsyncConnection.connect(empty_database) as other:
        await other.execute("SELECT 1")
        assert other.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        assert await asyncio.wait_for(migrate(empty_database), 30) == MIGRATIONS


async def test_a_lock_that_is_held_for_too_long_is_told(empty_database: str) -> None:
    async with await psycopg.AsyncConnection.connect(empty_database) as other:
        await other.execute("SELECT pg_advisory_xact_lock(115923220459117)")
        with pytest.raises(MigrationError, match="another migration"):
            await migrate(empty_database, wait=0.3)
    assert tables(empty_database) == set()


async def test_a_database_that_is_ahead_of_this_code_is_left_as_it_is(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    execute(database, "INSERT INTO intermezzo_migrations (name) VALUES ('9999_later.sql')")
    assert await migrate(database) == []
    assert [record.getMessage() for record in caplog.records] == [
        "the database is ahead of this code by 9999_later.sql"
    ]
    await check(database)


async def test_a_database_that_lacks_a_file_of_this_code_does_not_fit(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DELETE FROM intermezzo_migrations WHERE name = %s", [MIGRATIONS[-1]])
    with pytest.raises(MigrationError, match="run `python -m handler migrate`"):
        await check(database)


async def test_without_a_file_nothing_is_migrated_and_no_database_fits(
    empty_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "DIRECTORY", tmp_path)
    with pytest.raises(MigrationError, match="no migrations"):
        await migrate(empty_database)
    with pytest.raises(MigrationError, match="no migrations"):
        await check(empty_database)
    assert tables(empty_database) == set()


async def test_a_schema_of_its_own_is_made_and_filled(empty_database: str) -> None:
    await migrate(empty_database, schema="My_Calls")
    assert "intermezzo_rounds" in tables(empty_database, "My_Calls")
    assert "checkpoint_writes" in tables(empty_database, "My_Calls")
    assert tables(empty_database) == set()
    assert await migrate(empty_database, schema="My_Calls") == []


def test_every_file_is_numbered_and_begins_with_its_reason() -> None:
    for number, path in enumerate(sorted(DIRECTORY.glob("*")), 1):
        assert re.fullmatch(rf"{number:04}_[a-z_]+\.sql", path.name)
        assert path.read_text(encoding="utf-8").startswith("-- ")


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("state = 'claimed'", "intermezzo_claimed_has_holder"),
        ("claim = gen_random_uuid()", "intermezzo_claimed_has_holder"),
        ("answers = '{}'", "intermezzo_open_round_is_unanswered"),
        ("state = 'settled'", "intermezzo_settled_is_answered"),
        ("outcome = ''", "intermezzo_only_settled_has_outcome"),
        ("modes = '{voice}'", "intermezzo_rounds_modes_check"),
        ("keys = '{}'", "intermezzo_rounds_keys_check"),
    ],
)
def test_a_round_in_no_lawful_state_is_refused_by_the_table(
    database: str, change: str, constraint: str
) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("INSERT INTO intermezzo_calls VALUES (gen_random_uuid(), 'a', now())")
        connection.execute(
            "INSERT INTO intermezzo_rounds (call_id, number, state, keys, modes, questions)"
            " SELECT id, 1, 'asked', '{k}', '{form}', '' FROM intermezzo_calls"
        )
        update = sql.SQL("UPDATE intermezzo_rounds SET {}").format(sql.SQL(change))  # pyright: ignore[reportArgumentType] - the changes are listed above
        with pytest.raises(psycopg.errors.CheckViolation) as violation:
            connection.execute(update)
        assert violation.value.diag.constraint_name == constraint


def test_a_call_has_one_open_round_at_most(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("INSERT INTO intermezzo_calls VALUES (gen_random_uuid(), 'a', now())")
        with pytest.raises(psycopg.errors.UniqueViolation) as violation:
            connection.execute(
                "INSERT INTO intermezzo_rounds (call_id, number, state, keys, modes, questions)"
                " SELECT id, n, 'asked', '{k}', '{form}', '' FROM intermezzo_calls,"
                " generate_series(1, 2) AS n"
            )
        assert violation.value.diag.constraint_name == "intermezzo_one_open_round"
