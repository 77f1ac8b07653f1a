"""Moving the database's clock, by which every lifetime is measured."""

import psycopg
from psycopg.sql import SQL


def move(database: str, *, seconds: float) -> None:
    """Let so many seconds pass, counted from now, for every connection at once."""
    with psycopg.connect(database, autocommit=True) as connection:
        set_ahead(connection, seconds)


def set_ahead(connection: psycopg.Connection, seconds: float) -> None:
    """Set the clock so many seconds ahead, by a connection in autocommit mode."""
    connection.execute(
        SQL(
            "CREATE OR REPLACE FUNCTION intermezzo_now() RETURNS timestamptz"
            " LANGUAGE sql STABLE PARALLEL SAFE AS"
            " 'SELECT now() + make_interval(secs => {})'"
        ).format(SQL(repr(float(seconds))))  # pyright: ignore[reportArgumentType] - a number
    )
