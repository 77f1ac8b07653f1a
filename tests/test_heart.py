"""Runs that are stopped, that fail or that lose their claim at an unlucky moment.

An answer reaches the question that it was given for, whatever happened to the node in between, and
nothing begins any more once its run is over.
"""

import asyncio
import json
import threading
from pathlib import Path

import psycopg
import pytest
from langgraph.checkpoint.base.id import uuid6

from core import saver
from core.catalog import Catalog
from core.errors import RetryLater
from core.rounds import NOTHING_KEPT
from tests.clock import move
from tests.conversation import Instance, accept, hang_up, ignoring, instance, messages, said, until
from tests.processes import Processes, wait_for
from tests.sessions import Sessions
from tests.tables import claimed, execute, value

pytestmark = pytest.mark.anyio


# A node that is stopped after it used an answer has that answer still; its next question has none.


async def test_an_answer_that_was_used_before_the_deadline_is_not_given_to_the_next_question(
    here: Instance,
) -> None:
    first = await here.asks("approvals_beside")
    answers = accept(first, **{"Delete A": "yes", "Right": "r"})
    (here.journal / "hold-between").touch()
    here.seconds = 0.5
    with pytest.raises(RetryLater):
        await here.call("approvals_beside", answers, first.request_state)
    (here.journal / "hold-between").unlink()
    here.seconds = 20
    second = await here.asks("approvals_beside", answers, first.request_state)
    assert messages(second) == ["Delete B?"]
    result = await here.ends(
        "approvals_beside", accept(second, **{"Delete B": "no"}), second.request_state
    )
    assert '["approving=yes,no","right=r"]' in said(result)


async def test_an_answer_that_was_used_before_the_stream_closed_is_not_given_to_the_next_question(
    here: Instance,
) -> None:
    first = await here.asks("approvals")
    answers = accept(first, **{"Delete A": "yes"})
    (here.journal / "hold-between").touch()
    request = asyncio.create_task(
        here.call("approvals", answers, first.request_state, progress=ignoring)
    )
    await until(lambda: here.ran()["approving-first"] == 1)
    await hang_up(request)
    (here.journal / "hold-between").unlink()
    second = await here.asks("approvals", answers, first.request_state)
    assert messages(second) == ["Delete B?"]
    result = await here.ends(
        "approvals", accept(second, **{"Delete B": "no"}), second.request_state
    )
    assert '["approving=yes,no"]' in said(result)


async def test_a_node_that_failed_after_its_answer_is_not_asked_about_beside_its_error_handler(
    here: Instance,
) -> None:
    first = await here.asks("handled")
    second = await here.asks("handled", accept(first, Pay="yes"), first.request_state)
    assert messages(second) == ["Refund?"]
    result = await here.ends("handled", accept(second, Refund="all"), second.request_state)
    assert '["refund=all"]' in said(result)
    assert here.ran() == {"paying": 1, "refunding?": 2, "refunding": 1}


async def test_killed_in_an_error_handler_the_node_that_failed_does_not_run_again(
    here: Instance, processes: Processes
) -> None:
    first = await here.asks("handled")
    answers = accept(first, Pay="yes")
    (here.journal / "crash-refunding").touch()
    assert processes.send("handled", answers, first.request_state).killed()
    move(processes.database, seconds=11)
    second = await here.asks("handled", answers, first.request_state)
    assert messages(second) == ["Refund?"]
    await here.ends("handled", accept(second, Refund="all"), second.request_state)
    assert here.ran()["paying"] == 1


async def test_a_node_that_could_not_begin_has_not_failed_so_its_error_handler_does_not_run(
    here: Instance, sessions: Sessions
) -> None:
    """The connection breaks while what came before the node is being stored."""
    asked = await here.asks("guarded")
    answers = accept(asked, Go="yes")
    (here.journal / "hold-ask").touch()
    request = asyncio.create_task(here.call("guarded", answers, asked.request_state))
    await until((here.journal / "held-ask").exists)
    with sessions.hold():
        (here.journal / "hold-ask").unlink()
        await sessions.end_waiting(times=2)  # what is stored again, too
    with pytest.raises(RetryLater):
        await request
    result = await here.ends("guarded", answers, asked.request_state)
    assert '["ask=yes","beside","charge"]' in said(result)
    assert here.ran() == {"ask?": 2, "ask": 1, "beside": 1, "charge": 1}


async def test_a_node_that_was_stopped_before_its_edge_was_chosen_has_not_finished(
    here: Instance,
) -> None:
    """LangGraph has its update by then, and would end the call there."""
    asked = await here.asks("routed")
    answers = accept(asked, Go="yes")
    (here.journal / "hold-route").touch()
    request = asyncio.create_task(
        here.call("routed", answers, asked.request_state, progress=ignoring)
    )
    await until(lambda: here.ran()["route?"] == 1)
    await hang_up(request)
    (here.journal / "hold-route").unlink()
    result = await here.ends("routed", answers, asked.request_state)
    assert '["ask=yes","ship"]' in said(result)


async def test_a_question_of_a_node_that_is_gone_is_not_asked_again_for_ever(
    here: Instance, database: str, tmp_path: Path
) -> None:
    """Another version of the agent was deployed while the call waited."""
    asked = await here.asks("one")
    (tmp_path / "changed.py").write_text(
        "from tests.agents.stories import asking, chain, working\n"
        "one = chain(before=working('before'), renamed=asking('ask', 'Go?'))\n",
        encoding="utf-8",
    )
    config = tmp_path / "langgraph.json"
    config.write_text(
        json.dumps({"dependencies": ["."], "graphs": {"one": "./changed.py:one"}}),
        encoding="utf-8",
    )
    async with instance(database, tmp_path, catalog=Catalog.read(config)) as there:
        result = await there.ends("one", accept(asked, Go="yes"), asked.request_state)
    assert said(result) == (
        "This tool needs input that can't be asked over MCP. No node took the answer: the graph is"
        " not the one that asked any more."
    )


async def test_a_question_is_not_asked_whose_answer_would_be_taken_by_an_attempt_that_failed(
    here: Instance,
) -> None:
    """The node would run the first graph again, with the answer that was given to it."""
    asked = await here.asks("around_again")
    result = await here.ends("around_again", accept(asked, Pay="yes"), asked.request_state)
    assert "A node ran a graph again that had failed after an answer" in said(result)
    assert here.ran() == {"failing_once": 1}


async def test_a_graph_in_another_thread_is_not_taken_for_the_call(
    here: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    assert "failed" in said(await here.ends("elsewhere"))
    assert "OtherThread" in caplog.text


@pytest.mark.filterwarnings("ignore:NodeInterrupt is deprecated")
async def test_an_interrupt_that_takes_no_answer_is_not_asked(here: Instance) -> None:
    """Its answer would be the answer to the next interrupt() of whichever node."""
    assert said(await here.ends("raising")) == (
        "This tool needs input that can't be asked over MCP. It raises NodeInterrupt, which takes"
        " no answer. Call interrupt() instead."
    )


# What a run finished is durable before anything else of it begins, and nothing begins once it is
# over, not even in a thread, which nothing can stop.


async def test_a_task_of_an_entrypoint_is_durable_before_the_next_one_begins(
    here: Instance, processes: Processes
) -> None:
    asked = await here.asks("tasks")
    (here.journal / "crash-shipping").touch()
    answers = accept(asked, Go="yes")
    assert processes.send("tasks", answers, asked.request_state).killed()
    move(processes.database, seconds=11)
    result = await here.ends("tasks", answers, asked.request_state)
    assert '"yes charged shipped"' in said(result)
    assert here.ran() == {"charging": 1, "shipping": 1}


async def test_a_graph_that_a_sync_node_runs_stops_between_its_nodes_when_the_claim_is_lost(
    here: Instance, database: str
) -> None:
    asked = await here.asks("threaded")
    (here.journal / "hold-one").touch()
    here.seconds = 2.0
    request = asyncio.create_task(
        here.call("threaded", accept(asked, Go="yes"), asked.request_state)
    )
    await until((here.journal / "held-one").exists)
    execute(database, "UPDATE intermezzo_rounds SET claim = gen_random_uuid()")
    (here.journal / "hold-one").unlink()
    with pytest.raises(RetryLater, match="still at work"):
        await request
    assert here.ran() == {"one": 1}


async def test_a_graph_that_a_sync_node_runs_stops_between_its_nodes_past_the_deadline(
    here: Instance, database: str
) -> None:
    asked = await here.asks("threaded")
    answers = accept(asked, Go="yes")
    (here.journal / "hold-one").touch()
    here.seconds = 0.5
    with pytest.raises(RetryLater, match="ran out of time"):
        await here.call("threaded", answers, asked.request_state)
    (here.journal / "hold-one").unlink()
    here.seconds = 20
    result = await here.ends("threaded", answers, asked.request_state)
    assert '["one","two"]' in said(result)
    assert here.ran() == {"one": 1, "two": 1}


async def test_a_first_call_that_ran_out_of_time_begins_no_further_node_in_its_thread(
    here: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    (here.journal / "hold-one").touch()
    here.seconds = 0.3
    assert said(await here.ends("threaded_at_once")) == NOTHING_KEPT
    (here.journal / "hold-one").unlink()
    await until(lambda: "the run is over" in caplog.text)
    assert here.ran() == {"one": 1}


# A claim goes back wherever its request is stopped, and nothing runs under one that is too old.


async def test_wherever_in_its_request_a_stream_is_closed_the_claim_goes_back(
    here: Instance, database: str
) -> None:
    for turns in range(1, 60, 3):
        asked = await here.asks("pair")
        answers = accept(asked, Left="l", Right="r")
        request = asyncio.create_task(
            here.call("pair", answers, asked.request_state, progress=ignoring)
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        request.cancel()
        await asyncio.wait((request,))
        await until(lambda: not claimed(database), seconds=2)
        result = await here.ends("pair", answers, asked.request_state)
        assert '["left=l","right=r"]' in said(result)


async def test_a_claim_that_is_being_made_when_the_stream_closes_goes_back(
    here: Instance, database: str, sessions: Sessions
) -> None:
    asked = await here.asks("one")
    answers = accept(asked, Go="yes")
    with sessions.hold():
        request = asyncio.create_task(
            here.call("one", answers, asked.request_state, progress=ignoring)
        )
        await until(lambda: bool(sessions.waiting()))
        await hang_up(request)
    assert not claimed(database)
    await here.ends("one", answers, asked.request_state)
    assert here.ran()["ask"] == 1


async def test_what_a_run_came_to_is_settled_though_its_stream_closes_meanwhile(
    here: Instance, sessions: Sessions
) -> None:
    asked = await here.asks("one")
    answers = accept(asked, Go="yes")
    (here.journal / "hold-ask").touch()
    request = asyncio.create_task(here.call("one", answers, asked.request_state, progress=ignoring))
    await until((here.journal / "held-ask").exists)
    with sessions.hold():
        (here.journal / "hold-ask").unlink()
        await until(lambda: bool(sessions.waiting()))
        await hang_up(request)
    result = await here.ends("one", answers, asked.request_state)
    assert '"ask=yes"' in said(result)
    assert here.ran()["ask"] == 1


async def test_a_claim_that_lapsed_while_the_agent_was_loaded_is_not_run_under(
    here: Instance, database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another process takes the round over, and for a while it holds it."""
    asked = await here.asks("one")
    loading, hold = tmp_path / "loading", tmp_path / "hold-loading"
    (tmp_path / "slow_to_load.py").write_text(
        "import time\n"
        "from pathlib import Path\n"
        "from tests.agents.stories import one\n"
        f"Path({str(loading)!r}).touch()\n"
        f"while Path({str(hold)!r}).exists():\n"
        "    time.sleep(0.005)\n",
        encoding="utf-8",
    )
    config = tmp_path / "langgraph.json"
    config.write_text(
        json.dumps({"dependencies": ["."], "graphs": {"one": "./slow_to_load.py:one"}}),
        encoding="utf-8",
    )
    hold.touch()

    def take_over() -> None:
        wait_for(loading)
        with psycopg.connect(database, autocommit=True) as connection:
            while not connection.execute(
                "UPDATE intermezzo_rounds SET claim = gen_random_uuid(),"
                " claimed_until = clock_timestamp() + interval '0.5 s'"
                " WHERE claimed_until < clock_timestamp()"
            ).rowcount:
                continue
        hold.unlink()

    async with instance(database, tmp_path, catalog=Catalog.read(config), lease=0.3) as there:
        taking = threading.Thread(target=take_over)
        taking.start()
        result = await there.ends("one", accept(asked, Go="yes"), asked.request_state)
        taking.join()
    assert '"ask=yes"' in said(result)
    assert "a claim was lost" in caplog.text
    assert here.ran() == {"before": 1, "ask?": 2, "ask": 1}


async def test_a_machine_whose_clock_is_ahead_leaves_calls_that_others_go_on_with(
    here: Instance, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LangGraph names checkpoints by the time, and takes the last name for the newest."""
    ahead = uuid6().time + 36_000_000_000  # an hour, in units of 100 ns
    monkeypatch.setattr("langgraph.checkpoint.base.id._last_v6_timestamp", ahead)
    asked = await here.asks("then")
    answers = accept(asked, Go="yes")
    (here.journal / "crash-ship").touch()
    assert processes.send("then", answers, asked.request_state).killed()
    move(processes.database, seconds=11)
    result = processes.send("then", answers, asked.request_state).one()
    assert '["ask=yes","charge","ship"]' in result.text
    assert here.ran() == {"ask?": 2, "ask": 1, "charge": 1, "ship": 1}


async def test_where_nothing_renews_what_finished_beside_a_node_past_its_deadline_is_kept(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saver, "FLUSH_AFTER", 3600.0)
    async with instance(database, tmp_path, left=60.0) as here:
        asked = await here.asks("pair")
        answers = accept(asked, Left="l", Right="r")
        (here.journal / "hold-right").touch()
        here.seconds = 0.5
        with pytest.raises(RetryLater, match="ran out of time"):
            await here.call("pair", answers, asked.request_state)
        (here.journal / "hold-right").unlink()
        move(database, seconds=61)
        here.seconds = 20
        await here.ends("pair", answers, asked.request_state)
        assert (here.ran()["left"], here.ran()["right"]) == (1, 2)


# An agent may run tools and graphs with callbacks of its own, which replace those of its run.

TRACED = ["traced_graph", "traced_graph_sync", "traced_tool", "traced_tool_sync"]


@pytest.mark.parametrize("agent", TRACED)
async def test_under_callbacks_of_its_own_a_node_begins_when_what_came_before_is_durable(
    here: Instance, database: str, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saver, "FLUSH_AFTER", 3600.0)
    asked = await here.asks(agent)
    (here.journal / "hold-two").touch()
    answers = accept(asked, Go="yes")
    request = asyncio.create_task(here.ends(agent, answers, asked.request_state))
    await until((here.journal / "held-two").exists)
    durable = value(
        database,
        "SELECT count(*) FROM checkpoints WHERE checkpoint_ns <> ''"
        " AND checkpoint->'channel_versions' ? 'answers'",
    )
    (here.journal / "hold-two").unlink()
    await request
    assert durable > 0


@pytest.mark.parametrize("agent", TRACED)
async def test_under_callbacks_of_its_own_no_node_begins_when_the_claim_is_lost(
    here: Instance, database: str, agent: str
) -> None:
    asked = await here.asks(agent)
    (here.journal / "hold-one").touch()
    here.seconds = 2.0
    answers = accept(asked, Go="yes")
    request = asyncio.create_task(here.call(agent, answers, asked.request_state))
    await until((here.journal / "held-one").exists)
    execute(database, "UPDATE intermezzo_rounds SET claim = gen_random_uuid()")
    (here.journal / "hold-one").unlink()
    with pytest.raises(RetryLater, match="still at work"):
        await request
    assert here.ran() == {"one": 1}


async def test_under_callbacks_of_their_own_tools_that_ask_at_once_are_not_asked(
    here: Instance,
) -> None:
    """The second time they ask in another order: each would get the other's answer."""
    assert "runs several tools or graphs at once" in said(await here.ends("traced_at_once"))


async def test_a_process_that_ends_gives_the_claims_of_its_runs_back_at_once(
    here: Instance, database: str, tmp_path: Path
) -> None:
    """Its clients have left already; another process goes on with what has finished."""
    asked = await here.asks("slowly")
    answers = accept(asked, Slow="yes")
    (here.journal / "hold-slow").touch()
    request = asyncio.create_task(here.call("slowly", answers, asked.request_state))
    await until((here.journal / "held-slow").exists)
    await hang_up(request)
    assert claimed(database)
    await here.rounds.close()
    assert not claimed(database)
    (here.journal / "hold-slow").unlink()
    async with instance(database, tmp_path) as there:
        await there.ends("slowly", answers, asked.request_state)
    assert here.ran() == {"slow?": 3, "slow": 1, "after": 1}
