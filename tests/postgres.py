"""A real PostgreSQL for the tests: one server per session, a migrated template, a clone per test.

The server is the one that `serve` runs, in a temporary folder; a database made from a template
takes some 50 ms.
"""

import asyncio
import itertools
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Composed, Identifier

from core.migrate import migrate
from handler.postgres import local_server
from tests.pgbouncer import pgbouncer

POOLER: Final = "TEST_POOLER"
"""A variable: with it the tests that need a database have it behind PgBouncer, and no other test
runs."""

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A server for this session, as a connection string to its first database.

    `TEST_DATABASE_URL` names another one, whose role may make databases.
    """
    if given := os.environ.get("TEST_DATABASE_URL"):
        yield given
        return
    with passing_server() as server:
        yield server


@contextmanager
def passing_folder() -> Generator[Path]:
    """A folder for a server, of which nothing is left when the block ends. As root the server runs
    as another user, who must get in; pytest's own folders are closed to all but one."""
    with tempfile.TemporaryDirectory(prefix="intermezzo-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def passing_server() -> Generator[str]:
    """A server of which nothing is left when the block ends."""
    with passing_folder() as folder, local_server(folder) as server:
        yield server


@pytest.fixture(scope="session")
def migrated_template(postgres_server: str) -> str:
    """The name of a migrated database that nobody is connected to."""
    name = f"template_{os.getpid()}"
    _execute(postgres_server, SQL("CREATE DATABASE {}").format(Identifier(name)))
    asyncio.run(migrate(make_conninfo(postgres_server, dbname=name)))
    return name


@pytest.fixture(scope="session")
def way(postgres_server: str) -> Iterator[str]:
    """How tests reach their databases: directly, or through the pooler that `TEST_POOLER` asks
    for."""
    if not os.environ.get(POOLER):
        yield postgres_server
        return
    with pgbouncer(postgres_server) as pooled:
        yield pooled


@pytest.fixture
def empty_database(postgres_server: str, way: str) -> Iterator[str]:
    """A database without tables."""
    yield from _database(postgres_server, way, "template0")


@pytest.fixture
def database(postgres_server: str, way: str, migrated_template: str) -> Iterator[str]:
    """A migrated database of this test's own, as a connection string."""
    yield from _database(postgres_server, way, migrated_template)


@pytest.fixture(scope="module")
def module_database(postgres_server: str, way: str, migrated_template: str) -> Iterator[str]:
    """A migrated database for the tests of one file, which run one after another."""
    yield from _database(postgres_server, way, migrated_template)


@pytest.fixture(scope="session")
def shared_database(postgres_server: str, way: str, migrated_template: str) -> Iterator[str]:
    """A migrated database for tests whose calls do not meet."""
    yield from _database(postgres_server, way, migrated_template)


def _database(server: str, way: str, template: str) -> Iterator[str]:
    name = f"test_{os.getpid()}_{next(_numbers)}"
    _execute(
        server,
        SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(name), Identifier(template)),
    )
    yield make_conninfo(way, dbname=name)
    _execute(server, SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


def _execute(server: str, statement: Composed) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement)
