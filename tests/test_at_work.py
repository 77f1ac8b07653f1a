"""Nodes that are still at work when their run is over: nothing of their call begins beside them."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from core import rounds
from core.errors import InternalError, InvalidParams, RetryLater
from core.protocol import ToolResult
from core.store import Store
from core.sweeper import sweep
from tests.clock import move
from tests.conversation import Instance, accept, ignoring, instance, said, until
from tests.faults import Line
from tests.processes import Processes, wait_for
from tests.tables import claimed, execute, full_disk, limited_role, value

pytestmark = [pytest.mark.anyio, pytest.mark.direct]


@pytest.fixture
def role(database: str) -> Iterator[str]:
    with limited_role(database) as made:
        yield made


def hold(folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"hold-{name}").touch()


def let_go(folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"hold-{name}").unlink()


# Claims that can't be renewed.


async def test_a_node_in_a_thread_has_none_beside_it_when_its_claim_can_not_be_renewed(
    role: str, database: str, tmp_path: Path
) -> None:
    """The role may have one connection, which the requests have."""
    execute(database, f"ALTER ROLE {conninfo_to_dict(role)['user']} CONNECTION LIMIT 1")
    store = Store(role, max_size=1, timeout=0.5)
    async with instance(database, tmp_path, store=store, lease=0.5, seconds=2.0) as here:
        asked = await here.asks("then")
        answers = accept(asked, Go="yes")
        hold(tmp_path, "charge")
        for _ in range(2):
            await here.puts_off("then", answers, asked.request_state)
        let_go(tmp_path, "charge")
        result = await here.ends("then", answers, asked.request_state)
        assert '["ask=yes","charge","ship"]' in said(result)
        assert here.ran() == {"ask?": 2, "ask": 1, "charge": 2, "ship": 1}


async def test_a_claim_that_no_thread_can_renew_is_given_back(
    here: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await here.asks("slowly")
    answers = accept(asked, Slow="yes")
    hold(here.journal, "slow")
    begin = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name == "renewals":
            raise RuntimeError("can't start new thread")
        begin(thread)

    with monkeypatch.context() as exhausted:
        exhausted.setattr(threading.Thread, "start", start)
        await here.puts_off("slowly", answers, asked.request_state)
    let_go(here.journal, "slow")
    await here.ends("slowly", answers, asked.request_state)
    assert here.ran() == {"slow?": 2, "slow": 1, "after": 1}


# Nodes that do not end when they are told to.


async def test_an_async_node_that_takes_its_time_keeps_the_claim_though_its_client_left(
    here: Instance, database: str, tmp_path: Path
) -> None:
    asked = await here.asks("cleans")
    answers = accept(asked, Go="yes")
    hold(tmp_path, "cleaning", "cleaned")
    request = asyncio.create_task(
        here.call("cleans", answers, asked.request_state, progress=ignoring)
    )
    await until((tmp_path / "held-cleaning").exists)
    for _ in range(3):
        request.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await request
    assert claimed(database)
    let_go(tmp_path, "cleaning", "cleaned")
    result = await here.ends("cleans", answers, asked.request_state)
    assert '["ask=yes","clean"]' in said(result)
    assert here.ran() == {"ask?": 2, "ask": 1, "cleaning": 2, "cleaned": 2}


async def test_a_request_is_answered_in_time_though_its_node_does_not_end(
    here: Instance, database: str, tmp_path: Path
) -> None:
    asked = await here.asks("cleans")
    answers = accept(asked, Go="yes")
    hold(tmp_path, "cleaning", "cleaned")
    here.seconds = 0.5
    begun = time.monotonic()
    await here.puts_off("cleans", answers, asked.request_state)
    assert time.monotonic() - begun < 2
    assert claimed(database)
    with pytest.raises(RetryLater, match="still at work"):
        await here.call("cleans", answers, asked.request_state)
    let_go(tmp_path, "cleaning", "cleaned")
    here.seconds = 20
    await here.ends("cleans", answers, asked.request_state)
    assert here.ran()["cleaning"] == 2


async def test_a_thread_keeps_its_claim_while_the_process_waits_for_it_to_end(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "PATIENCE", 1.0)
    async with (
        instance(database, tmp_path, lease=1.0) as here,
        instance(database, tmp_path, lease=1.0, seconds=3.0) as other,
    ):
        asked = await here.asks("then")
        answers = accept(asked, Go="yes")
        hold(tmp_path, "charge")
        request = asyncio.create_task(here.call("then", answers, asked.request_state))
        await until((tmp_path / "held-charge").exists)
        await here.rounds.close()
        with suppress(asyncio.CancelledError):
            await request
        with pytest.raises(RetryLater, match="still at work"):
            await other.call("then", answers, asked.request_state)
        let_go(tmp_path, "charge")
        await other.ends("then", answers, asked.request_state)
        assert here.ran() == {"ask?": 2, "ask": 1, "charge": 2, "ship": 1}


# The event loop.


@pytest.mark.parametrize(
    ("agent", "ran"),
    [("invoking", {"left": 1, "right": 1}), ("invoking_tools", {"inner": 1})],
)
async def test_a_graph_does_not_wait_for_the_event_loop_that_waits_for_it(
    database: str, tmp_path: Path, processes: Processes, agent: str, ran: dict[str, int]
) -> None:
    async with instance(database, tmp_path) as here:
        asked = await here.asks(agent)
        answers = accept(asked, Go="yes")
        told = processes.send(agent, answers, asked.request_state).one()
        assert told.kind == "ended", told
        assert here.ran() == {"ask?": 2, "ask": 1, **ran}


@pytest.mark.parametrize("agent", ["both", "in_turn"])
async def test_a_node_that_waits_its_turn_does_not_hold_up_what_the_one_before_it_left(
    database: str, tmp_path: Path, processes: Processes, agent: str
) -> None:
    async with instance(database, tmp_path) as here:
        asked = await here.asks(agent)
        answers = accept(asked, Go="yes")
        hold(tmp_path, "slow")
        worker = processes.send(agent, answers, asked.request_state)
        wait_for(tmp_path / "held-slow")
        await until(lambda: _has_written(database, "charge"))
        worker.kill()
        let_go(tmp_path, "slow")
        move(database, seconds=11)
        await here.ends(agent, answers, asked.request_state)
        assert here.ran() == {"ask?": 2, "ask": 1, "charge": 1, "slow": 2}


def _has_written(database: str, node: str) -> bool:
    written = value(
        database,
        "SELECT count(*) FROM checkpoint_writes WHERE channel = 'answers' AND task_path LIKE %s",
        f"%{node}%",
    )
    return written == 1


# What agents raise that is no exception.


@pytest.mark.parametrize("agent", ["halting", "cancelling", "pressing"])
async def test_whatever_a_node_raises_ends_its_call_once(here: Instance, agent: str) -> None:
    asked = await here.asks(agent)
    answers = accept(asked, Go="yes")
    result = await here.ends(agent, answers, asked.request_state)
    assert result.is_error
    assert said(result).startswith(f"{agent} failed (error ")
    assert await here.ends(agent, answers, asked.request_state) == result
    assert sum(here.ran().values()) == 4, here.ran()


@pytest.mark.parametrize("agent", ["halting_first", "cancelling_first"])
async def test_whatever_a_node_raises_ends_a_first_call(here: Instance, agent: str) -> None:
    result = await here.ends(agent)
    assert result.is_error
    assert said(result).startswith(f"{agent} failed (error ")


# A database that takes claims and not what nodes leave.


async def test_an_approved_node_whose_result_finds_no_room_runs_once_until_there_is_room(
    here: Instance, database: str
) -> None:
    asked = await here.asks("then")
    answers = accept(asked, Go="yes")
    with full_disk(database, "checkpoints"):
        for _ in range(3):
            await here.puts_off("then", answers, asked.request_state)
        assert here.ran()["ask"] == 1
        with pytest.raises(InvalidParams, match="already answered with other answers"):
            await here.call("then", accept(asked, Go="no"), asked.request_state)
    result = await here.ends("then", answers, asked.request_state)
    assert '["ask=yes","charge","ship"]' in said(result)


async def test_what_the_database_never_holds_ends_the_call_as_what_has_no_stored_form(
    here: Instance,
) -> None:
    asked = await here.asks("wordy_later")
    answers = accept(asked, Go="yes")
    results = [await here.ends("wordy_later", answers, asked.request_state) for _ in range(2)]
    assert said(results[0]) == "wordy_later can't pause: the database can't hold it."
    assert results[0] == results[1]
    assert here.ran() == {"ask?": 2, "ask": 1, "charge": 1}


@pytest.mark.parametrize(
    ("break_it", "mend_it"),
    [
        ("REVOKE INSERT ON checkpoints FROM {}", "GRANT INSERT ON checkpoints TO {}"),
        (
            "ALTER TABLE checkpoints ADD CONSTRAINT no_more CHECK (false) NOT VALID",
            "ALTER TABLE checkpoints DROP CONSTRAINT no_more",
        ),
    ],
)
async def test_what_the_database_refuses_is_no_failure_of_the_agent(
    role: str, database: str, tmp_path: Path, break_it: str, mend_it: str
) -> None:
    user = str(conninfo_to_dict(role)["user"])
    async with instance(database, tmp_path, store=Store(role)) as here:
        asked = await here.asks("then")
        answers = accept(asked, Go="yes")
        execute(database, break_it.format(user))
        for _ in range(2):
            with pytest.raises(InternalError, match="the database failed"):
                await here.call("then", answers, asked.request_state)
        execute(database, mend_it.format(user))
        result = await here.ends("then", answers, asked.request_state)
        assert isinstance(result, ToolResult)
        assert '["ask=yes","charge","ship"]' in said(result)
        assert here.ran() == {"ask?": 3, "ask": 2, "charge": 1, "ship": 1}


async def test_a_sweep_over_a_connection_where_nobody_answers_ends(
    line: Line, tmp_path: Path
) -> None:
    store = Store(line.conninfo)
    async with instance(line.conninfo, tmp_path, store=store) as here:
        await here.asks("one")
        line.at(2, "before", line.swallow)
        with pytest.raises(Exception, match="the connection to the database broke"):
            await sweep(store, patience=0.3)
        assert await sweep(store) == 0
