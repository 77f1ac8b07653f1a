"""The database behind a pooler in transaction mode, which has two sessions for everybody."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import psycopg
import pytest

from core.errors import InvalidParams
from core.migrate import migrate
from core.store import Store
from core.sweeper import sweep
from tests.clock import move
from tests.conversation import accept, instance, said, until
from tests.faults import Lines
from tests.pooler import Pooler, pooling
from tests.processes import Processes, wait_for
from tests.tables import rows

pytestmark = [pytest.mark.anyio, pytest.mark.direct]


@pytest.fixture
def pooler(lines: Lines, database: str) -> Iterator[Pooler]:
    with pooling(lines, database) as pooler:
        yield pooler


def test_the_pooler_gives_a_client_another_session_for_each_transaction(pooler: Pooler) -> None:
    """And a prepared statement is not there any more: the other tests would notice one."""
    with psycopg.connect(pooler.conninfo, autocommit=True) as connection:
        pids = {
            row[0]
            for _ in range(4)
            for row in connection.execute("SELECT pg_backend_pid()").fetchall()
        }
        assert len(pids) == 2
        with pytest.raises(psycopg.errors.InvalidSqlStatementName):
            connection.execute("SELECT %s", [1], prepare=True)


@pytest.mark.parametrize("agent", ["two", "nested", "twice", "remembering"])
async def test_a_conversation_goes_on_whatever_session_serves_it(
    pooler: Pooler, tmp_path: Path, agent: str
) -> None:
    answers = {"First": "1", "Second": "2", "Inner": "i", "Right": "r", "Name": "n", "Colour": "c"}
    async with (
        instance(pooler.conninfo, tmp_path) as here,
        instance(pooler.conninfo, tmp_path) as there,
    ):
        told = await here.asks(agent)
        given = accept(told, **answers, Remember="tea")
        assert await there.asks(agent, {}, told.request_state) == told
        wrong = {key: {"action": "accept", "content": {"response": 5}} for key in told.requests}
        with pytest.raises(InvalidParams):
            await there.call(agent, wrong, told.request_state)
        first = await there.call(agent, given, told.request_state)
        assert await here.call(agent, given, told.request_state) == first
    assert {number for client in pooler.served for number in client} == {0, 1}


async def test_copies_over_processes_run_the_node_once(
    pooler: Pooler, database: str, tmp_path: Path
) -> None:
    processes = Processes(pooler.conninfo, tmp_path)
    try:
        async with instance(pooler.conninfo, tmp_path) as here:
            asked = await here.asks("one")
            (tmp_path / "hold-ask").touch()
            workers = [
                processes.send("one", accept(asked, Go="yes"), asked.request_state, copies=5)
                for _ in range(4)
            ]
            await asyncio.to_thread(wait_for, tmp_path / "held-ask")
            (tmp_path / "hold-ask").unlink()
            told = [each for worker in workers for each in await asyncio.to_thread(worker.told)]
        assert len(set(map(str, told))) == 1
        assert told[0].kind == "ended"
        assert here.ran() == {"before": 1, "ask?": 2, "ask": 1}
    finally:
        processes.close()


async def test_fifty_calls_at_once_share_the_two_sessions(pooler: Pooler, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        instances = [
            await stack.enter_async_context(instance(pooler.conninfo, tmp_path)) for _ in range(5)
        ]

        async def converse(number: int) -> str:
            here, there = instances[number % 5], instances[(number + 1) % 5]
            first = await here.asks("two")
            second = await there.asks("two", accept(first, First=f"{number}"), first.request_state)
            result = await here.ends("two", accept(second, Second="2"), second.request_state)
            return said(result)

        results = await asyncio.gather(*(converse(number) for number in range(50)))
    for number, result in enumerate(results):
        assert f'["first={number}","second=2"]' in result


async def test_claims_are_renewed_and_expired_calls_are_swept(
    pooler: Pooler, database: str, tmp_path: Path
) -> None:
    async with instance(pooler.conninfo, tmp_path, lease=0.5) as here:
        asked = await here.asks("slowly")
        (tmp_path / "hold-slow").touch()
        request = asyncio.create_task(
            here.ends("slowly", accept(asked, Slow="yes"), asked.request_state)
        )
        ends: set[object] = set()
        with psycopg.connect(database, autocommit=True) as connection:
            await until(
                lambda: (
                    bool(
                        ends.update(
                            connection.execute(
                                "SELECT claimed_until FROM intermezzo_rounds"
                            ).fetchall()
                        )
                    )
                    or len(ends) > 5
                )
            )
        (tmp_path / "hold-slow").unlink()
        await request
        move(database, seconds=3600)
        assert await sweep(here.store) == 1
    assert set(rows(database).values()) == {0}


async def test_an_empty_database_can_be_migrated(lines: Lines, empty_database: str) -> None:
    with pooling(lines, empty_database) as pooler:
        assert await migrate(pooler.conninfo)
        assert await migrate(pooler.conninfo) == []
    assert set(rows(empty_database).values()) == {0}


async def test_a_schema_is_found_by_configuration_alone(
    lines: Lines, empty_database: str, tmp_path: Path
) -> None:
    await migrate(empty_database, schema="My_Calls")
    with pooling(lines, empty_database) as pooler:
        store = Store(pooler.conninfo, schema="My_Calls")
        async with instance(pooler.conninfo, tmp_path, store=store) as here:
            first = await here.asks("two")
            second = await here.asks("two", accept(first, First="1"), first.request_state)
            await here.ends("two", accept(second, Second="2"), second.request_state)
            assert await sweep(here.store) == 0
