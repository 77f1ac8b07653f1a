"""Moving the database's clock, by which every lifetime is measured."""

import psycopg


def move(database: str, *, seconds: float) -> None:
    """Let so many seconds pass, counted from now, for every connection at once."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION intermezzo_now() RETURNS timestamptz LANGUAGE sql STABLE"  # pyright: ignore[reportArgumentType] - a number of ours
            f" PARALLEL SAFE AS 'SELECT now() + interval ''{seconds} seconds'''"
        )
