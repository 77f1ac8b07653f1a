"""Secrets that are rotated while a process serves: nothing that is under way notices."""

import asyncio
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from core.request_state import make_key
from handler import secrets_manager
from handler.lambdas import Process
from handler.secrets_manager import FRESH, RECENT, Secrets
from tests.agents.journal import noted
from tests.conversation import until
from tests.in_process import Deployment, deployment
from tests.lambdas import Context
from tests.projects import Write
from tests.served import KEY, post, result, serving
from tests.vault import Vault

pytestmark = [pytest.mark.anyio, pytest.mark.direct]

AGENTS = """
    from tests.agents.sandboxed import lingers
"""


class Roles:
    """Two that may do everything; one of them at a time may connect, as with a rotated password."""

    def __init__(self, database: str, connection: psycopg.Connection) -> None:
        self._database = database
        self._connection = connection

    def only(self, name: str) -> str:
        """From now on only this one connects; whoever is connected stays so."""
        for each in NAMES:
            may = sql.SQL("LOGIN" if each == name else "NOLOGIN")
            self._connection.execute(sql.SQL("ALTER ROLE {} {}").format(sql.Identifier(each), may))
        return make_conninfo(self._database, user=name)


NAMES = ("before_rotation", "after_rotation")


@pytest.fixture
def roles(database: str) -> Iterator[Roles]:
    with psycopg.connect(database, autocommit=True) as connection:
        for name in NAMES:
            connection.execute(sql.SQL("CREATE ROLE {} SUPERUSER").format(sql.Identifier(name)))
        yield Roles(database, connection)
        for name in NAMES:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


async def asks(here: Deployment, journal: Path) -> dict[str, Any]:
    return result(await here.call("lingers", arguments={"journal": str(journal)}))


async def answers(here: Deployment, journal: Path, asked: dict[str, Any]) -> httpx.Response:
    return await here.call("lingers", asked=asked, arguments={"journal": str(journal)})


async def test_a_run_goes_on_while_new_connections_are_made_with_the_new_secret(
    aws: Vault, roles: Roles, project: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = project({"agent.py": AGENTS}, {"lingers": "./agent.py:lingers"})
    secret = aws.keep("database", roles.only("before_rotation"))
    async with deployment(secret, config) as here:
        asked = await asks(here, tmp_path)
        (tmp_path / "hold-slow").touch()
        running = asyncio.ensure_future(answers(here, tmp_path, asked))
        await until(lambda: noted(tmp_path)["linger?"] == 1)
        aws.keep("database", roles.only("after_rotation"))
        monkeypatch.setattr(secrets_manager, "FRESH", 0.0)
        monkeypatch.setattr(secrets_manager, "RECENT", 0.0)
        many = [asks(here, tmp_path) for _ in range(8)]
        assert all(each["resultType"] == "input_required" for each in await asyncio.gather(*many))
        (tmp_path / "hold-slow").unlink()
        ended = result(await running)
        assert result(await answers(here, tmp_path, asked)) == ended
    assert noted(tmp_path)["charge"] == 1


async def test_a_database_that_lets_in_only_the_new_secret_is_found_at_the_next_try(
    aws: Vault, roles: Roles, project: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = project({"agent.py": AGENTS}, {"lingers": "./agent.py:lingers"})
    secret = aws.keep("database", roles.only("before_rotation"))
    new = roles.only("after_rotation")
    monkeypatch.setattr(secrets_manager, "RECENT", 0.0)
    async with deployment(secret, config) as here:
        calling = asyncio.ensure_future(asks(here, tmp_path))
        await until(lambda: bool(aws.requests))
        aws.keep("database", new)
        assert (await calling)["resultType"] == "input_required"
    assert len(aws.requests) > 1


async def test_keys_that_are_rotated_leave_the_running_call_its_connections(
    aws: Vault, database: str, project: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = project({"agent.py": AGENTS}, {"lingers": "./agent.py:lingers"})
    old = make_key()
    environ = {"REQUEST_STATE_KEYS": aws.keep("keys", old)}
    async with deployment(database, config, environ=environ) as here:
        asked = await asks(here, tmp_path)
        (tmp_path / "hold-slow").touch()
        running = asyncio.ensure_future(answers(here, tmp_path, asked))
        await until(lambda: noted(tmp_path)["linger?"] == 1)
        aws.keep("keys", f"{make_key()},{old}")
        monkeypatch.setattr(secrets_manager, "FRESH", 0.0)
        await asks(here, tmp_path)
        (tmp_path / "hold-slow").unlink()
        assert "lingered" in result(await running)["content"][0]["text"]
    assert noted(tmp_path)["charge"] == 1


def test_a_sweep_and_a_migration_take_the_secret_as_it_is_now(aws: Vault, roles: Roles) -> None:
    process = Process({"DATABASE_URL": aws.keep("database", roles.only("before_rotation"))})
    assert process.sweep({}, Context()) == {"deleted": 0}
    assert process.migrate({}, Context()) == {"applied": []}
    aws.keep("database", roles.only("after_rotation"))
    assert process.sweep({}, Context()) == {"deleted": 0}
    assert process.migrate({}, Context()) == {"applied": []}
    process.close()


def test_whoever_connects_reads_a_secret_again_but_not_more_often_than_every_few_seconds(
    vault: Vault,
) -> None:
    now = [0.0]
    secrets = Secrets(vault.environ, clock=lambda: now[0])
    arn = vault.keep("database", "first")
    assert secrets.value(arn, fresh=FRESH) == "first"
    vault.keep("database", "second")
    now[0] = RECENT - 1
    assert secrets.value(arn, fresh=RECENT) == "first"
    now[0] = RECENT
    assert secrets.value(arn, fresh=FRESH) == "first", "it is as good as read"
    assert secrets.value(arn, fresh=RECENT) == "second"
    assert len(vault.requests) == 2


@contextmanager
def held(vault: Vault) -> Generator[threading.Event]:
    """A vault that answers nobody until the block ends; the event says that somebody asks."""
    asked, let_go = threading.Event(), threading.Event()
    answer = vault.answer

    def answer_later(body: Any) -> tuple[int, dict[str, Any]]:
        asked.set()
        assert let_go.wait(30)
        return answer(body)

    vault.answer = answer_later
    try:
        yield asked
    finally:
        let_go.set()


@pytest.mark.parametrize("name", ["DATABASE_URL", "REQUEST_STATE_KEYS"])
def test_while_a_secret_is_read_others_are_answered(name: str, database: str, vault: Vault) -> None:
    values = {"DATABASE_URL": database, "REQUEST_STATE_KEYS": KEY}
    environ = {**vault.environ, name: vault.keep("secret", values[name])}
    with serving(environ.get("DATABASE_URL", database), environ=environ) as process:
        calls: list[httpx.Response] = []

        def call() -> None:
            calls.append(post(process.url, "tools/call", name="region", arguments={}))

        result(post(process.url, "tools/list"))  # it has imported what answers
        calling = threading.Thread(target=call)
        with held(vault) as asked:
            calling.start()
            assert asked.wait(30)
            assert result(post(process.url, "tools/list"))["tools"]
            assert not calls, "it waits for the secret"
        calling.join(30)
        assert result(calls[0])["resultType"] == "input_required"
