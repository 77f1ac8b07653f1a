"""Runs that are stopped: by their deadline, by a client that goes, by a database that fails.

What finished is kept and does not run again; the claim goes back when no node is executing.
"""

import asyncio
from pathlib import Path

import pytest

from core import saver
from core.errors import RetryLater
from core.rounds import NOTHING_KEPT
from tests.clock import move
from tests.conversation import Instance, accept, hang_up, ignoring, instance, said, until
from tests.sessions import Sessions
from tests.tables import claimed, rows

pytestmark = pytest.mark.anyio


async def test_a_first_call_that_runs_out_of_time_says_so_and_leaves_nothing(
    here: Instance, database: str
) -> None:
    here.seconds = 0.2
    (here.journal / "hold-before").touch()
    result = await here.ends("one")
    assert result.is_error
    assert said(result) == NOTHING_KEPT
    (here.journal / "hold-before").unlink()
    assert set(rows(database).values()) == {0}


async def test_a_resume_that_runs_out_of_time_keeps_what_it_finished(
    here: Instance, database: str
) -> None:
    asked = await here.asks("slow_later")
    answers = accept(asked, Go="yes")
    (here.journal / "hold-slow").touch()
    here.seconds = 0.5
    with pytest.raises(RetryLater, match="Send the same request again") as refusal:
        await here.call("slow_later", answers, asked.request_state)
    assert refusal.value.data == {"retryAfterMs": 1000}
    assert not claimed(database)
    (here.journal / "hold-slow").unlink()
    here.seconds = 20
    result = await here.ends("slow_later", answers, asked.request_state)
    assert '["ask=yes","lingered"]' in said(result)
    assert here.ran() == {"ask?": 2, "ask": 1, "linger?": 2, "linger": 1}


async def test_a_sync_node_past_its_deadline_keeps_the_claim_until_it_ends(
    here: Instance, database: str
) -> None:
    """Nothing can stop its thread: a retry must not start beside it."""
    asked = await here.asks("one")
    answers = accept(asked, Go="yes")
    (here.journal / "hold-ask").touch()
    here.seconds = 0.3
    with pytest.raises(RetryLater, match="ran out of time"):
        await here.call("one", answers, asked.request_state)
    assert claimed(database)
    with pytest.raises(RetryLater, match="still at work"):
        await here.call("one", answers, asked.request_state)
    (here.journal / "hold-ask").unlink()
    await until(lambda: not claimed(database))
    here.seconds = 20
    assert here.ran()["ask"] == 1
    result = await here.ends("one", answers, asked.request_state)
    assert '"ask=yes"' in said(result)
    assert here.ran()["ask"] == 2, "what it did after its deadline was not recorded"


async def test_on_a_platform_that_ends_the_process_such_a_claim_lapses_by_itself(
    database: str, tmp_path: Path
) -> None:
    async with instance(database, tmp_path, left=60.0) as here:
        asked = await here.asks("one")
        answers = accept(asked, Go="yes")
        (here.journal / "hold-ask").touch()
        here.seconds = 0.3
        with pytest.raises(RetryLater, match="ran out of time"):
            await here.call("one", answers, asked.request_state)
        (here.journal / "hold-ask").unlink()
        with pytest.raises(RetryLater, match="still at work"):
            await here.call("one", answers, asked.request_state)
        move(database, seconds=61)
        here.seconds = 20
        await here.ends("one", answers, asked.request_state)


async def test_a_run_goes_on_when_its_client_stops_waiting_and_its_retry_finds_the_outcome(
    here: Instance, database: str
) -> None:
    asked = await here.asks("slowly")
    answers = accept(asked, Slow="yes")
    (here.journal / "hold-slow").touch()
    request = asyncio.create_task(here.call("slowly", answers, asked.request_state))
    await until((here.journal / "held-slow").exists)
    await hang_up(request)
    assert claimed(database)
    (here.journal / "hold-slow").unlink()
    result = await here.ends("slowly", answers, asked.request_state)
    assert '"slow=yes"' in said(result)
    assert here.ran() == {"slow?": 2, "slow": 1, "after": 1}


async def test_a_client_that_closes_its_stream_cancels_the_run_and_may_come_back(
    here: Instance, database: str
) -> None:
    asked = await here.asks("slowly")
    answers = accept(asked, Slow="yes")
    (here.journal / "hold-slow").touch()
    request = asyncio.create_task(
        here.call("slowly", answers, asked.request_state, progress=ignoring)
    )
    await until((here.journal / "held-slow").exists)
    await hang_up(request)
    assert not claimed(database)
    (here.journal / "hold-slow").unlink()
    await here.ends("slowly", answers, asked.request_state)
    assert here.ran() == {"slow?": 3, "slow": 1, "after": 1}


async def test_connections_that_the_server_cut_meanwhile_are_replaced_without_a_failure(
    here: Instance, sessions: Sessions
) -> None:
    asked = await here.asks("two")
    sessions.cut()
    second = await here.asks("two", accept(asked, First="1"), asked.request_state)
    sessions.cut()
    await here.ends("two", accept(second, Second="2"), second.request_state)
    sessions.cut()
    await here.asks("one")


async def test_a_connection_that_breaks_during_the_claim_is_tried_once_more(
    here: Instance, sessions: Sessions
) -> None:
    """The claim waits for a row that the test holds, and its session is ended there."""
    asked = await here.asks("one")
    with sessions.hold():
        request = asyncio.create_task(
            here.call("one", accept(asked, Go="yes"), asked.request_state)
        )
        await until(lambda: bool(sessions.waiting()))
        sessions.end(sessions.waiting())
    assert '"ask=yes"' in said(await request)  # pyright: ignore[reportArgumentType] - a result
    assert here.ran()["ask"] == 1


async def test_a_connection_that_breaks_after_a_node_ran_is_told_and_nothing_is_lost(
    here: Instance, sessions: Sessions
) -> None:
    asked = await here.asks("then")
    answers = accept(asked, Go="yes")
    (here.journal / "hold-charge").touch()
    request = asyncio.create_task(here.call("then", answers, asked.request_state))
    await until((here.journal / "held-charge").exists)
    with sessions.hold():
        (here.journal / "hold-charge").unlink()
        await sessions.end_waiting(times=2)
    with pytest.raises(RetryLater):
        await request
    result = await here.ends("then", answers, asked.request_state)
    assert '["ask=yes","charge","ship"]' in said(result)
    assert (here.ran()["ask"], here.ran()["ship"]) == (1, 1)


async def test_a_state_that_can_not_be_stored_is_an_error_result_that_names_it(
    here: Instance, database: str
) -> None:
    result = await here.ends("huge")
    assert result.is_error
    assert said(result) == (
        "huge can't pause: its state can't be stored: \"number\" holds a dict with a value that"
        " LangGraph can't serialize."
    )
    assert set(rows(database).values()) == {0}


async def test_a_state_that_the_database_has_no_room_for_is_told_and_leaves_nothing(
    here: Instance, database: str
) -> None:
    result = await here.ends("wordy")
    assert result.is_error
    assert said(result) == "wordy can't pause: the database can't hold it."
    assert set(rows(database).values()) == {0}


async def test_a_state_that_can_not_be_stored_later_ends_the_call_in_the_same_way(
    here: Instance,
) -> None:
    asked = await here.asks("huge_later")
    answers = accept(asked, Go="yes")
    result = await here.ends("huge_later", answers, asked.request_state)
    assert "can't be stored" in said(result)
    assert await here.ends("huge_later", answers, asked.request_state) == result
    assert here.ran() == {"ask?": 2, "ask": 1}


async def test_what_need_not_be_stored_may_be_anything(
    here: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that ends needs no checkpoint, however soon one would have been made of its state."""
    for soon in (3600.0, 0.0):
        monkeypatch.setattr(saver, "FLUSH_AFTER", soon)
        asked = await here.asks("huge_last")
        result = await here.ends("huge_last", accept(asked, Go="yes"), asked.request_state)
        assert said(result).endswith(f'"number":{{"n":{2**70}}}}}')
