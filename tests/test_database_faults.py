"""A database that fails: what the client is told, what runs again, and what is left behind.

A claim is tried again unseen, because nothing has run yet. What fails later is told as something to
come back with, and what nodes have finished is not lost by it.
"""

import asyncio
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL

from core.agent_store import AgentStore
from core.errors import InternalError, InvalidParams, RetryLater
from core.migrate import migrate
from core.protocol import ToolResult
from core.request_state import KeyRing
from core.rounds import Rounds
from core.store import Store
from core.sweeper import sweep
from handler.postgres import local_server
from tests.clock import move
from tests.conversation import KEY, Instance, accept, catalog, instance, said, until
from tests.faults import Line, When
from tests.postgres import passing_folder
from tests.served import serving
from tests.sessions import Sessions
from tests.tables import execute, full_disk, limited_role, rows, setting, value

pytestmark = [pytest.mark.anyio, pytest.mark.direct]


def rounds(database: str) -> list[tuple[int, str, bool]]:
    """Each round's number and state, and whether somebody holds it now."""
    with psycopg.connect(database) as connection:
        return connection.execute(
            "SELECT number, state, coalesce(claimed_until > intermezzo_now(), false)"
            " FROM intermezzo_rounds ORDER BY number"
        ).fetchall()


# The server.


class Server:
    """A server of the test's own, which can be stopped like a crash and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running = ExitStack()
        self.conninfo = self.running.enter_context(local_server(folder))

    def crash(self) -> None:
        """End it without a word to anybody; the data are recovered when it starts again."""
        folder = value(self.conninfo, "SHOW data_directory")
        pid = int(Path(folder, "postmaster.pid").read_text("utf-8").split()[0])
        os.kill(pid, signal.SIGQUIT)
        while Path(f"/proc/{pid}").exists():
            pass

    def start(self) -> None:
        assert self.running.enter_context(local_server(self.folder)) == self.conninfo


@pytest.fixture
def server() -> Generator[Server]:
    with passing_folder() as folder:
        made = Server(folder)
        with made.running:
            yield made


async def test_a_server_that_crashed_and_is_back_meanwhile_is_not_noticed(
    server: Server, tmp_path: Path
) -> None:
    await migrate(server.conninfo)
    async with instance(server.conninfo, tmp_path) as here:
        asked = await here.asks("one")
        server.crash()
        server.start()
        result = await here.ends("one", accept(asked, Go="yes"), asked.request_state)
        assert '"ask=yes"' in said(result)
        assert here.ran() == {"before": 1, "ask?": 2, "ask": 1}


async def test_a_server_that_crashes_under_a_run_costs_the_node_at_work_and_no_other(
    server: Server, tmp_path: Path
) -> None:
    await migrate(server.conninfo)
    store = Store(server.conninfo, timeout=0.5)
    async with instance(server.conninfo, tmp_path, store=store, lease=1.0) as here:
        asked = await here.asks("then")
        answers = accept(asked, Go="yes")
        (tmp_path / "hold-charge").touch()
        request = asyncio.create_task(here.call("then", answers, asked.request_state))
        await until((tmp_path / "held-charge").exists)
        server.crash()
        (tmp_path / "hold-charge").unlink()
        with pytest.raises(RetryLater):
            await request
        server.start()
        move(server.conninfo, seconds=11)
        result = await here.ends("then", answers, asked.request_state)
        assert '["ask=yes","charge","ship"]' in said(result)
        assert here.ran() == {"ask?": 2, "ask": 1, "charge": 2, "ship": 1}


# The way to it.


async def test_a_database_that_can_not_be_reached_for_a_moment_is_waited_for(
    line: Line, tmp_path: Path
) -> None:
    async with instance(line.conninfo, tmp_path) as here:
        asked = await here.asks("one")
        line.go_down()
        request = asyncio.create_task(
            here.call("one", accept(asked, Go="yes"), asked.request_state)
        )
        await until(lambda: line.refused >= 1)
        line.down = False
        assert '"ask=yes"' in said(await request)  # pyright: ignore[reportArgumentType] - a result


async def test_a_database_that_can_not_be_reached_is_told_and_leaves_nothing(
    line: Line, database: str, tmp_path: Path
) -> None:
    async with instance(line.conninfo, tmp_path, store=Store(line.conninfo, timeout=0.3)) as here:
        line.go_down()
        assert (await here.puts_off("one")).message == (
            "The database can't be reached now. Nothing was kept. Send the same request again."
        )
        assert said(await here.ends("done")).endswith('["work"]}'), "it needs no database"
        assert set(rows(database).values()) == {0}


async def test_after_an_outage_the_database_is_found_again_at_once(
    line: Line, tmp_path: Path
) -> None:
    """However long it lasted: a pool left alone would wait for longer after each failure."""
    async with instance(line.conninfo, tmp_path, store=Store(line.conninfo, timeout=0.5)) as here:
        asked = await here.asks("one")
        line.go_down()
        while line.refused < 4:
            await here.puts_off("one", accept(asked, Go="yes"), asked.request_state)
        line.down = False
        await here.ends("one", accept(asked, Go="yes"), asked.request_state)


@pytest.mark.parametrize("statement", ["pause", "claim"])
async def test_a_connection_over_which_nothing_comes_any_more_is_given_up_for_another(
    line: Line, tmp_path: Path, statement: str
) -> None:
    """The other side is gone without a word, as behind a router that forgot the connection."""
    store = Store(line.conninfo, patience=0.3)
    async with instance(line.conninfo, tmp_path, store=store) as here:
        asked = await here.asks("one")
        hole = line.at_named(statement, 1, "before", line.swallow)
        if statement == "pause":
            asked = await here.asks("one")
        await here.ends("one", accept(asked, Go="yes"), asked.request_state)
        assert hole.happened


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_what_finished_is_stored_over_another_connection_when_nobody_answers(
    line: Line, tmp_path: Path, number: int, when: When
) -> None:
    """Stored twice it is the same, so no node has to run again for it."""
    store = Store(line.conninfo, patience=0.3)
    async with instance(line.conninfo, tmp_path, store=store) as here:
        asked = await here.asks("then")
        hole = line.at_named("flush", number, when, line.swallow)
        result = await here.ends("then", accept(asked, Go="yes"), asked.request_state)
        assert hole.happened
        assert '["ask=yes","charge","ship"]' in said(result)
        assert here.ran() == {"ask?": 2, "ask": 1, "charge": 1, "ship": 1}


async def test_an_outcome_that_nobody_takes_is_told_and_nothing_runs_twice(
    line: Line, tmp_path: Path
) -> None:
    store = Store(line.conninfo, patience=0.3)
    async with instance(line.conninfo, tmp_path, store=store) as here:
        asked = await here.asks("then")
        answers = accept(asked, Go="yes")
        hole = line.at_named("settle", 1, "before", line.swallow)
        await here.puts_off("then", answers, asked.request_state)
        assert hole.happened
        result = await here.ends("then", answers, asked.request_state)
        assert '["ask=yes","charge","ship"]' in said(result)
        assert here.ran() == {"ask?": 2, "ask": 1, "charge": 1, "ship": 1}


async def test_an_agents_own_store_is_not_met_by_connections_that_died(
    database: str, sessions: Sessions
) -> None:
    store = Store(database)
    try:
        opened = await AgentStore(store)()
        await opened.aput(("notes",), "last", {"text": "tea"})
        sessions.cut()
        kept = await opened.aget(("notes",), "last")
        assert kept is not None
        assert kept.value == {"text": "tea"}
    finally:
        await store.close()


def test_event_loops_come_and_go_and_connections_die_between_them(
    database: str, tmp_path: Path, sessions: Sessions
) -> None:
    """As on a platform that makes a loop for each event and freezes the process in between."""
    store = Store(database)
    rounds = Rounds(catalog=catalog, store=lambda: store, keys=KeyRing([KEY]))
    here = Instance(store=store, rounds=rounds, journal=tmp_path)

    async def converse() -> str:
        try:
            asked = await here.asks("one")
            return said(await here.ends("one", accept(asked, Go="yes"), asked.request_state))
        finally:
            await store.close()

    async def left_open() -> str:
        asked = await here.asks("one")
        return said(await here.ends("one", accept(asked, Go="yes"), asked.request_state))

    with asyncio.Runner() as lasting:
        for number in range(20):
            if number % 3 == 0:
                sessions.cut()
            assert '"ask=yes"' in asyncio.run(converse())
            assert '"ask=yes"' in lasting.run(left_open())
        lasting.run(store.close())


# What the database says.


async def test_a_claim_that_takes_too_long_is_told_and_changes_nothing(
    here: Instance, database: str
) -> None:
    asked = await here.asks("one")
    answers = accept(asked, Go="yes")
    setting(database, "statement_timeout", "200ms")
    await here.store.close()
    with psycopg.connect(database) as holding:
        holding.execute("SELECT 1 FROM intermezzo_rounds FOR UPDATE")
        await here.puts_off("one", answers, asked.request_state)
    assert rounds(database) == [(1, "asked", False)]
    await here.ends("one", answers, asked.request_state)
    assert here.ran() == {"before": 1, "ask?": 2, "ask": 1}


async def test_settling_that_takes_too_long_is_told_and_the_claim_lapses(
    here: Instance, database: str
) -> None:
    asked = await here.asks("one")
    answers = accept(asked, Go="yes")
    setting(database, "statement_timeout", "200ms")
    await here.store.close()
    (here.journal / "hold-ask").touch()
    request = asyncio.create_task(here.call("one", answers, asked.request_state))
    await until((here.journal / "held-ask").exists)
    with psycopg.connect(database) as holding:
        holding.execute("SELECT 1 FROM intermezzo_rounds FOR UPDATE")
        (here.journal / "hold-ask").unlink()
        with pytest.raises(RetryLater):
            await request
    assert rounds(database) == [(1, "claimed", True)]
    move(database, seconds=11)
    await here.ends("one", answers, asked.request_state)
    assert here.ran() == {"before": 1, "ask?": 3, "ask": 2}


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.parametrize("at", ["claim", "flush", "settle"])
async def test_what_a_change_in_between_made_fail_is_tried_again_unseen(
    here: Instance, database: str, sessions: Sessions, isolation: str, at: str
) -> None:
    """Under a stricter isolation the statement that waited for a row that was changed fails."""
    setting(database, "default_transaction_isolation", isolation)
    asked = await here.asks("then")
    answers = accept(asked, Go="yes")
    node = {"claim": "", "flush": "ask", "settle": "ship"}[at]
    hold, held = here.journal / f"hold-{node}", here.journal / f"held-{node}"
    with psycopg.connect(database) as changing:
        change = "UPDATE intermezzo_rounds SET claimed_until = claimed_until"
        if node:
            hold.touch()
        else:
            changing.execute(change)
        request = asyncio.create_task(here.ends("then", answers, asked.request_state))
        if node:
            await until(held.exists)
            changing.execute(change)
            hold.unlink()
        await until(lambda: len(sessions.waiting()) == 1)
        changing.commit()
    assert '["ask=yes","charge","ship"]' in said(await request)
    assert here.ran() == {"ask?": 2, "ask": 1, "charge": 1, "ship": 1}


async def test_copies_that_meet_under_a_stricter_isolation_are_all_told_the_outcome(
    here: Instance, database: str
) -> None:
    setting(database, "default_transaction_isolation", "serializable")
    first = await here.asks("two")
    answers = accept(first, First="1")
    copies = [here.asks("two", answers, first.request_state) for _ in range(8)]
    asked = await asyncio.gather(*copies)
    assert len({each.request_state for each in asked}) == 1
    assert here.ran() == {"first?": 2, "first": 1, "second?": 1}


async def test_a_pool_of_which_every_connection_is_busy_is_told_and_changes_nothing(
    database: str, tmp_path: Path
) -> None:
    store = Store(database, max_size=1, timeout=0.2)
    async with instance(database, tmp_path, store=store) as here:
        asked = await here.asks("one")
        async with store.connection(10.0):
            await here.puts_off("one", accept(asked, Go="yes"), asked.request_state)
        assert rounds(database) == [(1, "asked", False)]
        await here.ends("one", accept(asked, Go="yes"), asked.request_state)


@pytest.fixture
def limited(database: str) -> Iterator[str]:
    """A role that has one connection at a time."""
    with limited_role(database, connections=1) as made:
        yield made


async def test_the_rights_to_read_and_write_rows_are_all_that_serving_and_sweeping_need(
    limited: str, database: str, tmp_path: Path
) -> None:
    async with instance(limited, tmp_path, store=Store(limited, max_size=1)) as here:
        first = await here.asks("two")
        second = await here.asks("two", accept(first, First="1"), first.request_state)
        await here.ends("two", accept(second, Second="2"), second.request_state)
        move(database, seconds=3600)
        assert await sweep(here.store) == 1
    assert set(rows(database).values()) == {0}


async def test_a_sweep_that_fails_for_any_reason_is_tried_again_and_tells_only_what_it_deleted(
    limited: str, database: str, tmp_path: Path
) -> None:
    async with instance(database, tmp_path) as here:
        await here.asks("one")
    move(database, seconds=25 * 3600)
    role = conninfo_to_dict(limited)["user"]
    execute(database, f"REVOKE DELETE ON checkpoint_writes FROM {role}")
    with serving(limited, environ={"INTERMEZZO_SWEEP_INTERVAL": "0.05"}) as process:
        await until(lambda: process.log().count("the sweep failed") > 1)
        assert "a call expired" not in process.log()
        execute(database, f"GRANT DELETE ON checkpoint_writes TO {role}")
        await until(lambda: "a call expired unanswered" in process.log())
        assert process.stop() == 0
        assert process.log().count("a call expired") == 1
    assert set(rows(database).values()) == {0}


async def test_a_server_that_takes_no_more_connections_is_told(
    limited: str, database: str, tmp_path: Path
) -> None:
    store = Store(limited, max_size=1, timeout=0.3)
    async with instance(limited, tmp_path, store=store) as here:
        with psycopg.connect(limited):
            await here.puts_off("one")
        await here.asks("one")


async def test_a_standby_is_left_for_the_server_that_takes_its_place(
    here: Instance, database: str
) -> None:
    """A session that may only read, as on a server that just became a standby."""
    asked = await here.asks("one")
    answers = accept(asked, Go="yes")
    setting(database, "default_transaction_read_only", "on")
    await here.store.close()
    await here.puts_off("one")
    await here.puts_off("one", answers, asked.request_state)
    setting(database, "default_transaction_read_only", "off")
    # Each connection to it that the pool still holds is given up by one more request.
    for _ in range(4):
        with suppress(RetryLater):
            await here.ends("one", answers, asked.request_state)
            break
    else:
        pytest.fail("no connection reached the server that took its place")
    assert here.ran() == {"before": 2, "ask?": 3, "ask": 1}


@pytest.mark.parametrize("table", ["intermezzo_calls", "intermezzo_rounds", "checkpoint_writes"])
async def test_a_pause_that_does_not_fit_on_the_disk_leaves_nothing(
    here: Instance, database: str, table: str
) -> None:
    with full_disk(database, table):
        await here.puts_off("one")
    assert set(rows(database).values()) == {0}
    await here.asks("one")


async def test_a_run_that_does_not_fit_on_the_disk_goes_on_when_there_is_room(
    here: Instance, database: str
) -> None:
    asked = await here.asks("then")
    answers = accept(asked, Go="yes")
    with full_disk(database, "checkpoints"):
        await here.puts_off("then", answers, asked.request_state)
        assert here.ran() == {"ask?": 2, "ask": 1}, "no node begins before the last one is stored"
    move(database, seconds=11)
    result = await here.ends("then", answers, asked.request_state)
    assert '["ask=yes","charge","ship"]' in said(result)
    assert here.ran() == {"ask?": 3, "ask": 2, "charge": 1, "ship": 1}


async def test_a_next_round_that_does_not_fit_on_the_disk_is_asked_when_there_is_room(
    here: Instance, database: str
) -> None:
    first = await here.asks("two")
    answers = accept(first, First="1")
    with full_disk(database, "intermezzo_rounds"):
        await here.puts_off("two", answers, first.request_state)
    assert rounds(database) == [(1, "claimed", False)]
    second = await here.asks("two", answers, first.request_state)
    await here.ends("two", accept(second, Second="2"), second.request_state)
    assert here.ran() == {"first?": 2, "first": 1, "second?": 3, "second": 1}


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE intermezzo_calls DROP COLUMN metadata",
        "DROP FUNCTION intermezzo_claim",
        "ALTER TABLE intermezzo_rounds RENAME TO rounds",
        "ALTER TABLE checkpoints RENAME TO points",
    ],
)
async def test_a_schema_that_is_older_than_the_code_is_told_with_the_command(
    here: Instance, database: str, change: str
) -> None:
    asked = await here.asks("one")
    execute(database, change)
    told = "run `python -m handler migrate`"
    if "FUNCTION" not in change:
        with pytest.raises(InternalError, match=told):
            await here.call("one")
    with pytest.raises(InternalError, match=told):
        await here.call("one", accept(asked, Go="yes"), asked.request_state)
    assert here.ran()["ask"] == 0


# The renewal of claims.


async def test_a_row_that_somebody_holds_keeps_no_other_claim_from_being_renewed(
    database: str, tmp_path: Path
) -> None:
    async with instance(database, tmp_path, lease=1.0) as here:
        asked = [await here.asks("slowly") for _ in range(2)]
        (tmp_path / "hold-slow").touch()
        requests = [
            asyncio.create_task(here.call("slowly", accept(each, Slow="yes"), each.request_state))
            for each in asked
        ]
        await until(lambda: here.ran()["slow?"] == 4)
        with psycopg.connect(database) as holding:
            row = holding.execute(
                "SELECT call_id, claimed_until FROM intermezzo_rounds ORDER BY 1 LIMIT 1 FOR UPDATE"
            ).fetchone()
            assert row is not None
            other = SQL("SELECT claimed_until FROM intermezzo_rounds WHERE call_id <> {}").format(
                row[0]
            )
            ends: set[object] = set()
            while len(ends) < 5:
                with psycopg.connect(database) as looking:
                    ends.update(looking.execute(other).fetchall())
                await asyncio.sleep(0)
        (tmp_path / "hold-slow").unlink()
        results = await asyncio.gather(*requests, return_exceptions=True)
        [finished] = (each for each in results if isinstance(each, ToolResult))
        assert '"slow=yes"' in said(finished)
        [held] = (each for each in results if isinstance(each, RetryLater))
        assert "Nothing is lost." in str(held)


async def test_a_run_whose_claim_nobody_renews_any_more_is_stopped_before_others_start(
    line: Line, tmp_path: Path
) -> None:
    """The renewal hangs, so that no failure tells of it."""
    async with instance(line.conninfo, tmp_path, lease=1.0) as here:
        asked = await here.asks("slowly")
        answers = accept(asked, Slow="yes")
        (tmp_path / "hold-slow").touch()
        hole = line.at_named("renew", 1, "before", line.swallow)
        await here.puts_off("slowly", answers, asked.request_state)
        assert hole.happened
        (tmp_path / "hold-slow").unlink()
        assert '"slow=yes"' in said(await here.ends("slowly", answers, asked.request_state))
        assert here.ran() == {"slow?": 3, "slow": 1, "after": 1}


# A claim goes back only when none of its run's threads is at work, and then as the client was told.


async def test_a_refused_answer_opens_the_round_when_the_last_thread_has_ended(
    line: Line, tmp_path: Path
) -> None:
    agent = "picking_beside_a_thread"
    async with instance(line.conninfo, tmp_path) as here:
        asked = await here.asks(agent)
        (tmp_path / "hold-charge").touch()
        wrong, right = (accept(asked, How={"number": number}) for number in (3, 4))
        refused = asyncio.create_task(here.call(agent, wrong, asked.request_state))
        await until((tmp_path / "held-charge").exists)
        line.taken()
        corrected = asyncio.create_task(here.ends(agent, right, asked.request_state))
        await until(lambda: line.statements.count("claim") > 3)
        assert here.ran()["charge?"] == 2, "once for the question, once for the answer"
        (tmp_path / "hold-charge").unlink()
        with pytest.raises(InvalidParams):
            await refused
        assert '"charged,4"' in said(await corrected)


async def test_an_answer_that_is_refused_too_late_is_refused_another_time(
    here: Instance,
) -> None:
    """Its request ran out of time while a thread was at work."""
    agent = "picking_beside_a_thread"
    asked = await here.asks(agent)
    (here.journal / "hold-charge").touch()
    wrong, right = (accept(asked, How={"number": number}) for number in (3, 4))
    here.seconds = 0.5
    with pytest.raises(RetryLater, match="ran out of time"):
        await here.call(agent, wrong, asked.request_state)
    (here.journal / "hold-charge").unlink()
    here.seconds = 20
    with pytest.raises(InvalidParams):
        await here.call(agent, wrong, asked.request_state)
    assert '"charged,4"' in said(await here.ends(agent, right, asked.request_state))


async def test_a_run_that_can_not_be_settled_keeps_its_claim_while_a_thread_is_at_work(
    line: Line, tmp_path: Path
) -> None:
    """A node failed beside it, which would have ended the call."""
    agent = "failing_beside_a_thread"
    async with instance(line.conninfo, tmp_path) as here:
        asked = await here.asks(agent)
        answers = accept(asked, Break="b", Charge="c")
        (tmp_path / "hold-charge").touch()
        lost = line.at_named("settle", 1, "before", line.cut)
        await here.puts_off(agent, answers, asked.request_state)
        assert lost.happened
        line.taken()
        again = asyncio.create_task(here.ends(agent, answers, asked.request_state))
        await until(lambda: line.statements.count("claim") > 3)
        assert here.ran()["charge?"] == 1
        (tmp_path / "hold-charge").unlink()
        assert "failed" in said(await again)


async def test_a_refused_answer_whose_round_could_not_be_opened_is_refused_another_time(
    line: Line, database: str, tmp_path: Path
) -> None:
    """A renewal has marked the round with it; nobody who was told to correct it would get in."""
    store = Store(line.conninfo, timeout=0.3)
    async with instance(line.conninfo, tmp_path, store=store, lease=0.6) as here:
        asked = await here.asks("choosy")
        wrong, right = (accept(asked, How={"number": number}, Right="r") for number in (3, 4))
        (tmp_path / "hold-right").touch()
        refused = asyncio.create_task(here.call("choosy", wrong, asked.request_state))
        await until((tmp_path / "held-right").exists)
        await until(lambda: "renew" in line.statements)
        line.at_named("reopen", 1, "before", line.cut_off)
        (tmp_path / "hold-right").unlink()
        with pytest.raises(RetryLater):
            await refused
        line.down = False
        move(database, seconds=11)
        with pytest.raises(InvalidParams):
            await here.call("choosy", wrong, asked.request_state)
        await here.ends("choosy", right, asked.request_state)


async def test_a_claim_that_was_made_but_not_heard_of_is_given_back(
    line: Line, tmp_path: Path
) -> None:
    """On a platform that ends its processes, where a claim lasts as long as one can live."""

    async def cut_and_swallow_the_next() -> bool:
        line.at_named("claim", 1, "before", line.swallow)
        return False

    store = Store(line.conninfo, patience=0.3)
    async with instance(line.conninfo, tmp_path, store=store, left=600.0) as here:
        asked = await here.asks("one")
        answers = accept(asked, Go="yes")
        line.at_named("claim", 1, "after", cut_and_swallow_the_next)
        await here.puts_off("one", answers, asked.request_state)
        here.seconds = 5
        assert '"ask=yes"' in said(await here.ends("one", answers, asked.request_state))
