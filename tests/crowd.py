"""Stored calls by the hundred thousand, and the plans of the statements that are run among them."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from core.store import Store
from tests.tables import LANGGRAPHS, execute, setting


def copy_calls(database: str, count: int) -> None:
    """Store every call so many times more; ids are random, so that copies lie anywhere."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute("SET maintenance_work_mem = '256MB'")
        connection.execute(
            "CREATE TEMP TABLE copies AS SELECT id AS original, gen_random_uuid() AS copy"
            f" FROM intermezzo_calls, generate_series(1, {count:d})".encode()
        )
        connection.execute("ANALYZE copies")
        connection.execute(
            "INSERT INTO intermezzo_calls (id, agent, expires_at)"
            " SELECT copy, agent, expires_at + random() * interval '1 hour'"
            " FROM copies JOIN intermezzo_calls ON id = original"
        )
        for table in ("intermezzo_rounds", *LANGGRAPHS):
            _copy_rows(connection, table)


def _copy_rows(connection: psycopg.Connection, table: str) -> None:
    owner = "call_id" if table == "intermezzo_rounds" else "thread_id"
    columns = [
        row[0]
        for row in connection.execute(
            "SELECT attname FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
            " AND attgenerated = '' AND attname <> %s",
            [table, owner],
        ).fetchall()
    ]
    named = SQL(", ").join(map(Identifier, columns))
    copy = SQL("copy" if owner == "call_id" else "copy::text")
    original = SQL("original" if owner == "call_id" else "original::text")
    connection.execute(
        SQL(
            "INSERT INTO {table} ({owner}, {named}) SELECT {copy}, {named}"
            " FROM copies JOIN {table} ON {owner} = {original}"
        ).format(
            table=Identifier(table),
            owner=Identifier(owner),
            named=named,
            copy=copy,
            original=original,
        )
    )


@dataclass(slots=True)
class Plans:
    """Plans of statements as they were run, with those inside of functions."""

    texts: list[str] = field(default_factory=list[str])

    def hear(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.message_primary and "plan:" in diagnostic.message_primary:
            self.texts.append(diagnostic.message_primary)

    def taken(self) -> "Plans":
        """What was heard since this was last asked."""
        texts, self.texts = self.texts, []
        return Plans(texts)

    @property
    def scanned(self) -> list[str]:
        """The tables that were read from end to end."""
        found = [re.findall(r"Seq Scan on (\w+)", text) for text in self.texts]
        return [table for tables in found for table in tables if table not in _OF_A_STATEMENT]

    @property
    def pages(self) -> int:
        """How many pages of the database they touched."""
        return sum(_pages(text) for text in self.texts)


_OF_A_STATEMENT = ("u", "copies")


def _pages(text: str) -> int:
    """Of the plan's root, which counts what is below it; not of planning."""
    found = re.search(r"^ *Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?", text, re.MULTILINE)
    return sum(int(each or 0) for each in found.groups()) if found else 0


@contextmanager
def explained(database: str) -> Generator[None]:
    """Every session that begins in this block tells the plans of what it runs."""
    settings = {
        "session_preload_libraries": "auto_explain",
        "auto_explain.log_min_duration": "0",
        "auto_explain.log_nested_statements": "on",
        "auto_explain.log_analyze": "on",
        "auto_explain.log_buffers": "on",
        "auto_explain.log_timing": "off",
        "auto_explain.log_level": "notice",
    }
    for name, value in settings.items():
        setting(database, name, value)
    try:
        yield
    finally:
        execute(database, f"ALTER DATABASE {conninfo_to_dict(database)['dbname']} RESET ALL")


async def hear(store: Store) -> Plans:
    """The plans of a store that has one connection, from now on."""
    plans = Plans()
    async with store.connection(10.0) as connection:
        connection.add_notice_handler(plans.hear)
    return plans
