"""Several requests for one round at once, from several processes: one runs, all are told alike."""

from asyncio import create_task
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from tests.conversation import accept, instance, until
from tests.processes import Processes, Told, wait_for
from tests.sessions import Sessions
from tests.tables import execute

pytestmark = pytest.mark.anyio


async def test_twenty_copies_over_four_processes_run_the_node_once(
    database: str, tmp_path: Path, processes: Processes
) -> None:
    async with instance(database, tmp_path) as here:
        asked = await here.asks("one")
        (tmp_path / "hold-ask").touch()
        workers = [
            processes.send("one", accept(asked, Go="yes"), asked.request_state, copies=5)
            for _ in range(4)
        ]
        wait_for(tmp_path / "held-ask")
        (tmp_path / "hold-ask").unlink()
        told = [each for worker in workers for each in worker.told()]
    assert len(told) == 20
    assert len(set(map(str, told))) == 1
    assert told[0].kind == "ended"
    assert here.ran() == {"before": 1, "ask?": 2, "ask": 1}


async def test_copies_of_a_first_round_that_leads_to_a_second_are_all_told_the_same_question(
    database: str, tmp_path: Path, processes: Processes
) -> None:
    async with instance(database, tmp_path) as here:
        first = await here.asks("same")
        workers = [
            processes.send("same", accept(first, Sure="yes"), first.request_state, copies=5)
            for _ in range(2)
        ]
        told = [each for worker in workers for each in worker.told()]
    assert {each.kind for each in told} == {"asked"}
    assert len({each.state for each in told}) == 1
    assert here.ran() == {"first?": 2, "first": 1, "second?": 1}


async def test_of_two_different_answers_at_once_one_runs_and_the_other_is_refused(
    database: str, tmp_path: Path, processes: Processes
) -> None:
    async with instance(database, tmp_path) as here:
        asked = await here.asks("one")
        (tmp_path / "hold-ask").touch()
        workers = [
            processes.send("one", accept(asked, Go=answer), asked.request_state)
            for answer in ("yes", "no")
        ]
        wait_for(tmp_path / "held-ask")
        (tmp_path / "hold-ask").unlink()
        told = Counter(worker.one().kind for worker in workers)
    assert told == {"ended": 1, "refused": 1}
    assert here.ran()["ask"] == 1


async def test_an_invalid_answer_beside_the_right_one_never_shuts_it_out(
    database: str, tmp_path: Path, processes: Processes
) -> None:
    async with instance(database, tmp_path) as here:
        asked = await here.asks("one")
        wrong = processes.send(
            "one", accept(asked, Go={"response": 5}), asked.request_state, copies=8
        )
        right = processes.send("one", accept(asked, Go="yes"), asked.request_state, copies=4)
        assert {each.kind for each in wrong.told()} == {"refused"}
        assert {each.kind for each in right.told()} == {"ended"}
    assert here.ran()["ask"] == 1


async def test_an_answer_that_the_node_refuses_beside_the_right_one_never_shuts_it_out(
    database: str, tmp_path: Path, processes: Processes
) -> None:
    async with instance(database, tmp_path) as here:
        asked = await here.asks("choosy_alone")
        wrong = processes.send(
            "choosy_alone", accept(asked, How={"number": 3}), asked.request_state, copies=3
        )
        right = processes.send(
            "choosy_alone", accept(asked, How={"number": 4}), asked.request_state, copies=3
        )
        assert {each.kind for each in wrong.told()} == {"refused"}
        assert {each.kind for each in right.told()} == {"ended"}
    assert here.ran()["picky"] == 1


async def test_a_duplicate_that_runs_out_of_time_is_told_to_come_back(
    database: str, tmp_path: Path, processes: Processes
) -> None:
    async with instance(database, tmp_path) as here:
        asked = await here.asks("slowly")
        answers = accept(asked, Slow="yes")
        (tmp_path / "hold-slow").touch()
        runner = processes.send("slowly", answers, asked.request_state)
        wait_for(tmp_path / "held-slow")
        late = processes.send("slowly", answers, asked.request_state, seconds=0.3)
        assert late.one() == Told(
            "refused",
            "1001 Another copy of this request is still at work. Send the same request again.",
        )
        (tmp_path / "hold-slow").unlink()
        told = runner.one()
        assert told.kind == "ended"
        assert processes.send("slowly", answers, asked.request_state).one() == told
    assert here.ran() == {"slow?": 2, "slow": 1, "after": 1}


async def test_a_runner_that_lost_its_claim_writes_nothing_and_runs_no_further_node(
    database: str, tmp_path: Path
) -> None:
    async with instance(database, tmp_path) as here, instance(database, tmp_path) as there:
        asked = await here.asks("then")
        answers = accept(asked, Go="yes")
        (tmp_path / "hold-ask").touch()
        slow = create_task(here.call("then", answers, asked.request_state))
        await until((tmp_path / "held-ask").exists)
        (tmp_path / "held-ask").unlink()
        execute(database, "UPDATE intermezzo_rounds SET claimed_until = now()")
        fast = create_task(there.call("then", answers, asked.request_state))
        await until((tmp_path / "held-ask").exists)
        (tmp_path / "hold-ask").unlink()
        assert await slow == await fast
    assert here.ran() == {"ask?": 3, "ask": 2, "charge": 1, "ship": 1}


async def test_a_claim_is_renewed_while_its_run_lives_even_when_it_blocks_the_event_loop(
    database: str, tmp_path: Path, processes: Processes, sessions: Sessions
) -> None:
    """The node blocks for five times as long as a claim lasts; a copy waits and does not run."""
    async with instance(database, tmp_path) as here:
        asked = await here.asks("blocking")
        answers = accept(asked, Block="yes")
        (tmp_path / "hold-block").touch()
        runner = processes.send("blocking", answers, asked.request_state, lease=0.4)
        wait_for(tmp_path / "held-block")
        copy = processes.send("blocking", answers, asked.request_state, lease=0.4)
        await _renewed(sessions.database, times=6)
        (tmp_path / "hold-block").unlink()
        assert runner.one() == copy.one()
    assert here.ran() == {"block?": 2, "block": 1}


async def _renewed(database: str, *, times: int) -> None:
    claims: set[object] = set()
    ends: set[object] = set()
    with psycopg.connect(database, autocommit=True) as connection:
        while len(ends) <= times:
            row = connection.execute(
                "SELECT claim, claimed_until FROM intermezzo_rounds"
            ).fetchone()
            assert row is not None
            claims.add(row[0])
            ends.add(row[1])
    assert len(claims) == 1


async def test_a_run_whose_claim_can_not_be_renewed_is_stopped(
    database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its round was taken away meanwhile, so nothing that it would do may count."""
    async with (
        instance(database, tmp_path, lease=0.5) as here,
        instance(database, tmp_path) as there,
    ):
        asked = await here.asks("slowly")
        answers = accept(asked, Slow="yes")
        (tmp_path / "hold-slow").touch()
        stopped = create_task(here.call("slowly", answers, asked.request_state))
        await until((tmp_path / "held-slow").exists)
        (tmp_path / "held-slow").unlink()
        execute(database, "UPDATE intermezzo_rounds SET claimed_until = now()")
        taker = create_task(there.call("slowly", answers, asked.request_state))
        await until((tmp_path / "held-slow").exists)
        await until(lambda: "a claim was lost" in caplog.text)
        (tmp_path / "hold-slow").unlink()
        assert await stopped == await taker
    assert here.ran() == {"slow?": 3, "slow": 1, "after": 1}
