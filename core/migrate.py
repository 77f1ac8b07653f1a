"""Bringing a database to the schema that this code expects. Serving never does this by itself.

A migration only adds: the code before it goes on working. So a database that is ahead of the code
needs nothing, and a deployment that is rolled back finds one.

First our numbered files, each in a transaction with its ledger row; then LangGraph's own tables,
on an autocommit connection, because its setup builds indexes concurrently. One lock covers both,
so that many deployments may migrate at once. It is taken by polling with a fresh transaction per
try: a session that waits inside `pg_advisory_xact_lock` holds a snapshot, and a concurrent index
build waits for every snapshot.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection
from psycopg.errors import UndefinedTable
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Identifier

log = logging.getLogger(__name__)

DIRECTORY = Path(__file__).parent.parent / "migrations"

# Without parameters, so that psycopg sends a simple query: the portal of an extended one would keep
# its snapshot to the end of the transaction.
_TRY_LOCK = "SELECT pg_try_advisory_xact_lock(115923220459117) AS locked"
_POLL_SECONDS = 0.1
_LOCK_SECONDS = 120.0

_LEDGER = """
CREATE TABLE IF NOT EXISTS intermezzo_migrations (
    name text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""


class MigrationError(Exception):
    """The database cannot be brought to this code's schema; the text says what to do."""


async def migrate(
    conninfo: str, *, schema: str = "public", wait: float = _LOCK_SECONDS
) -> list[str]:
    """Apply what is missing, and return the names of the files applied now.

    Safe to run any number of times, by any number of processes at once.

    Args:
        schema: where the tables go; made when it does not exist. A schema other than the role's
            default needs a direct connection, not one through a transaction pooler.
        wait: seconds to wait for another migration.

    Raises:
        MigrationError: another migration holds the lock for too long.
    """
    async with (
        _connect(conninfo) as guard,
        _connect(conninfo) as connection,
        _locked(guard, wait),
    ):
        applied = await _apply_files(connection, schema)
        await _set_up_langgraph(connection, schema)
        return applied


async def check(conninfo: str, *, schema: str = "public") -> None:
    """Pass when nothing is missing; changes nothing.

    Raises:
        MigrationError: the database lacks a file of this code.
    """
    async with _connect(conninfo) as connection:
        ledger = SQL("SELECT name FROM {}.intermezzo_migrations").format(Identifier(schema))
        try:
            rows = await (await connection.execute(ledger)).fetchall()
        except UndefinedTable:
            rows = []
    if _missing({row["name"] for row in rows}):
        raise MigrationError(
            "the database is not at this code's schema: run `python -m handler migrate`"
        )


def _missing(known: set[str]) -> list[Path]:
    """The files that a database lacks which knows these, in order."""
    files = sorted(DIRECTORY.glob("*.sql"))
    if not files:
        raise MigrationError(f"there are no migrations in {DIRECTORY}: install this code anew")
    if unknown := sorted(known - {file.name for file in files}):
        log.warning("the database is ahead of this code by %s", ", ".join(unknown))
    return [file for file in files if file.name not in known]


@asynccontextmanager
async def _connect(conninfo: str) -> AsyncGenerator[AsyncConnection[DictRow]]:
    connection = await AsyncConnection[DictRow].connect(
        conninfo, autocommit=True, prepare_threshold=None, row_factory=dict_row
    )
    async with connection:
        yield connection


@asynccontextmanager
async def _locked(guard: AsyncConnection[Any], wait: float) -> AsyncGenerator[None]:
    """Hold the lock in a transaction that idles, without a snapshot, while the work goes on."""
    deadline = asyncio.get_running_loop().time() + wait
    while True:
        async with guard.transaction():
            cursor = await guard.execute(_TRY_LOCK)
            row = await cursor.fetchone()
            if row is not None and row["locked"]:
                yield
                return
        if asyncio.get_running_loop().time() > deadline:
            raise MigrationError(
                f"another migration has held the lock for {wait:.0f} seconds: see that it ends,"
                " then run this again"
            )
        await asyncio.sleep(_POLL_SECONDS)


async def _apply_files(connection: AsyncConnection[DictRow], schema: str) -> list[str]:
    async with connection.transaction():
        await connection.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(schema)))
        await _search_in(connection, schema)
        await connection.execute(_LEDGER)
        cursor = await connection.execute("SELECT name FROM intermezzo_migrations")
        missing = _missing({row["name"] for row in await cursor.fetchall()})
    for file in missing:
        async with connection.transaction():
            await _search_in(connection, schema)
            await connection.execute(
                "INSERT INTO intermezzo_migrations (name) VALUES (%s)", [file.name]
            )
            await connection.execute(file.read_bytes())
    return [file.name for file in missing]


async def _search_in(connection: AsyncConnection[Any], schema: str) -> None:
    await connection.execute(SQL("SET LOCAL search_path TO {}").format(Identifier(schema)))


async def _set_up_langgraph(connection: AsyncConnection[DictRow], schema: str) -> None:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres.aio import AsyncPostgresStore

    # LangGraph's statements name no schema, and some can't run in a transaction, where the search
    # path could be local. Where the role's own default leads to the schema nothing need be set.
    cursor = await connection.execute("SELECT current_schema() AS schema")
    row = await cursor.fetchone()
    if row is None or row["schema"] != schema:
        await connection.execute(SQL("SET search_path TO {}").format(Identifier(schema)))
    await AsyncPostgresSaver(connection).setup()
    await AsyncPostgresStore(connection).setup()
