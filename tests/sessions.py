"""The sessions of a database, seen past any pooler: who waits for a lock, and how one ends."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final, LiteralString

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL

from tests.conversation import until
from tests.tables import value

ROUNDS: Final = "SELECT 1 FROM intermezzo_rounds FOR UPDATE"


class Sessions:
    """The sessions of one database. Those of this object itself are never behind a pooler.

    Attributes:
        database: a connection string for further ones.
    """

    def __init__(self, database: str) -> None:
        self.database = database

    @contextmanager
    def hold(self, statement: LiteralString = ROUNDS) -> Generator[psycopg.Connection]:
        """Hold what a statement locks, all rounds unless told, until the block ends."""
        with psycopg.connect(self.database) as connection:
            connection.execute(statement)
            yield connection

    def waiting(self) -> list[int]:
        """Those that wait for a lock, by process id."""
        return self._those("wait_event_type = 'Lock'")

    def end(self, sessions: Iterable[int]) -> None:
        """End sessions, and see them gone."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            for session in sessions:
                connection.execute("SELECT pg_terminate_backend(%s, 5000)", [session])

    async def end_waiting(self, times: int) -> None:
        """End what waits for a lock, so many times in a row."""
        for _ in range(times):
            await until(lambda: bool(self.waiting()))
            self.end(self.waiting())

    def cut(self) -> int:
        """End every session, and tell how many there were."""
        there = self._those("pid <> pg_backend_pid()")
        self.end(there)
        return len(there)

    def _those(self, condition: LiteralString) -> list[int]:
        with psycopg.connect(self.database) as connection:
            found = connection.execute(
                SQL(
                    "SELECT pid FROM pg_stat_activity"
                    " WHERE datname = current_database() AND backend_type = 'client backend' AND {}"
                ).format(SQL(condition))
            ).fetchall()
        return [pid for (pid,) in found]


def connections(database: str) -> int:
    """How many sessions a database has besides the one that asks."""
    return value(
        database,
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )


@pytest.fixture
def sessions(database: str, postgres_server: str) -> Sessions:
    """The sessions of the test's database."""
    return Sessions(make_conninfo(postgres_server, dbname=conninfo_to_dict(database)["dbname"]))
