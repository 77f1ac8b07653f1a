"""What a database holds, and what its administrator does to it."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, LiteralString

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Identifier, Literal

OURS: Final = ("intermezzo_calls", "intermezzo_rounds")
LANGGRAPHS: Final = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")

# What it holds.


def value(database: str, query: LiteralString, *parameters: object) -> Any:
    """The first value of the first row that a query finds; it must find one."""
    with psycopg.connect(database) as connection:
        row = connection.execute(query, parameters or None).fetchone()
    assert row is not None, query
    return row[0]


def tables(database: str, schema: str = "public") -> set[str]:
    """The names of its tables."""
    with psycopg.connect(database) as connection:
        found = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", [schema]
        ).fetchall()
    return {name for (name,) in found}


def rows(database: str) -> dict[str, int]:
    """How many rows each table of calls holds."""
    counts: dict[str, int] = {}
    with psycopg.connect(database) as connection:
        for table in (*OURS, *LANGGRAPHS):
            query = SQL("SELECT count(*) FROM {}").format(Identifier(table))
            [(counts[table],)] = connection.execute(query).fetchall()
    return counts


def everything(database: str, *named: str) -> str:
    """Every row of these tables, or of all; bytes as the characters that they are."""
    found: list[Any] = []
    with psycopg.connect(database) as connection:
        for table in named or tables(database):
            found += connection.execute(SQL("SELECT * FROM {}").format(Identifier(table)))
    return str(found)


def claimed(database: str) -> bool:
    """Whether somebody holds a round; there must be one."""
    found = value(
        database,
        "SELECT bool_or(state = 'claimed' AND claimed_until > intermezzo_now())"
        " FROM intermezzo_rounds",
    )
    assert found is not None, "there is no round"
    return found


# What its administrator does.


def execute(database: str, *statements: str) -> None:
    """Each statement for itself."""
    with psycopg.connect(database, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def setting(database: str, name: str, value: str) -> None:
    """A setting for every session that begins from now on."""
    writing = "-c default_transaction_read_only=off"
    with psycopg.connect(database, autocommit=True, options=writing) as connection:
        connection.execute(
            SQL("ALTER DATABASE {} SET {} = {}").format(
                Identifier(connection.info.dbname), Identifier(name), Literal(value)
            )
        )


@contextmanager
def limited_role(database: str, *, connections: int = -1) -> Generator[str]:
    """A role that may read and write rows and no more, over so many connections at a time, as a
    connection string."""
    name = f"limited_{conninfo_to_dict(database)['dbname']}"
    execute(
        database,
        f"CREATE ROLE {name} LOGIN CONNECTION LIMIT {connections}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}",
    )
    try:
        yield make_conninfo(database, user=name)
    finally:
        execute(database, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


_FULL: Final = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full';
END $$
"""


@contextmanager
def full_disk(database: str, table: str) -> Generator[None]:
    """No row of this table can be stored, as on a disk that is full."""
    execute(
        database,
        _FULL,
        f"CREATE TRIGGER full_disk BEFORE INSERT ON {table} EXECUTE FUNCTION full_disk()",
    )
    yield
    execute(database, "DROP FUNCTION full_disk CASCADE")
