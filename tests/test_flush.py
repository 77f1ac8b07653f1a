"""What a flush promises: when it returns, all that was put before it is durable."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from core.records import Rows, Unavailable
from core.saver import CallState, RunOver
from tests.conversation import hang_up, until

pytestmark = pytest.mark.anyio


class Database:
    """Where rows go: each statement waits until it is let go, or fails."""

    def __init__(self) -> None:
        self.waiting = 0
        self.written: list[str] = []
        self.go = asyncio.Event()
        self.failure: Exception | None = None

    async def __call__(self, rows: Rows) -> None:
        self.waiting += 1
        await self.go.wait()
        if self.failure is not None:
            raise self.failure
        self.written += [channel for *_, channel, _, _ in rows.writes]


@pytest.fixture
async def database() -> Database:
    return Database()


@pytest.fixture
async def state(database: Database) -> CallState:
    return CallState("t", JsonPlusSerializer(), sink=database)


def finish(state: CallState, node: str) -> None:
    """A node ends, whose one write goes to a channel of its name."""
    state.put_writes("", "c", [(node, "done")], f"task-{node}", node)


async def cancel_a_flush(state: CallState, database: Database) -> None:
    """Cancel one that waits for the database."""
    flush = asyncio.create_task(state.flush())
    await until(lambda: database.waiting == 1)
    await hang_up(flush)


async def test_what_a_finished_node_wrote_is_flushed_soon_without_being_asked_for(
    state: CallState, database: Database
) -> None:
    finish(state, "a")
    database.go.set()
    await until(lambda: database.written == ["a"])


async def test_a_flush_that_is_cancelled_made_nothing_durable_and_the_next_one_does(
    state: CallState, database: Database
) -> None:
    finish(state, "a")
    await cancel_a_flush(state, database)
    database.go.set()
    await state.flush()
    assert database.written == ["a"]


async def test_after_a_cancelled_flush_a_finished_node_does_not_wait_for_its_sibling(
    state: CallState, database: Database
) -> None:
    finish(state, "a")
    await cancel_a_flush(state, database)
    database.go.set()
    await until(lambda: database.written == ["a"])


async def test_closing_while_one_flush_is_under_way_and_another_waits_is_no_failure(
    state: CallState, database: Database
) -> None:
    failures: list[Exception] = []
    state.on_loss(failures.append)
    finish(state, "a")
    first = asyncio.create_task(state.flush())
    await until(lambda: database.waiting == 1)
    finish(state, "b")
    second = asyncio.create_task(state.flush())
    closing = asyncio.create_task(state.close())
    await asyncio.sleep(0)
    database.go.set()
    await asyncio.wait((first, second, closing))
    assert isinstance(second.exception(), RunOver)
    assert failures == []
    assert database.written == ["a"]
    assert [channel for *_, channel, _, _ in state.rows().writes] == ["b"]


async def test_nothing_begins_after_a_flush_failed(state: CallState, database: Database) -> None:
    failures: list[Exception] = []
    state.on_loss(failures.append)
    database.failure = Unavailable("down")
    database.go.set()
    finish(state, "a")
    for _ in range(2):
        with pytest.raises(Unavailable):
            await state.flush()
    assert failures == [database.failure]
    assert database.waiting == 1


async def test_nothing_begins_once_the_run_is_over(state: CallState) -> None:
    await state.close()
    with pytest.raises(RunOver):
        await state.flush()
    with ThreadPoolExecutor(1) as thread, pytest.raises(RunOver):
        await asyncio.get_running_loop().run_in_executor(thread, state.flush_from_thread)


async def test_a_thread_waits_for_the_flush_of_the_event_loop(
    state: CallState, database: Database
) -> None:
    finish(state, "a")
    with ThreadPoolExecutor(1) as thread:
        flushing = asyncio.get_running_loop().run_in_executor(thread, state.flush_from_thread)
        await until(lambda: database.waiting == 1)
        assert not flushing.done()
        database.go.set()
        await flushing
    assert database.written == ["a"]


async def test_a_thread_does_not_wait_for_an_event_loop_that_a_graph_holds_up_but_later_it_does(
    state: CallState, database: Database
) -> None:
    database.go.set()
    finish(state, "a")
    with ThreadPoolExecutor(1) as thread:
        state.used_by_sync_call()
        thread.submit(state.flush_from_thread).result(5)  # the event loop waits here
        assert database.written == []
        await asyncio.sleep(0)
        await asyncio.get_running_loop().run_in_executor(thread, state.flush_from_thread)
    assert database.written == ["a"]
