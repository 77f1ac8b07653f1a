"""Processes that are killed in the middle of a resume, and the retry that finishes their work.

Each test says which nodes ran how often: a node that finished before the one that was running does
not run again; that one may, once.
"""

from pathlib import Path

import psycopg
import pytest

from core.errors import InvalidParams
from core.protocol import InputRequired
from tests.clock import move
from tests.conversation import Instance, accept, messages, said, until
from tests.processes import Processes, wait_for
from tests.sessions import Sessions
from tests.tables import value

pytestmark = pytest.mark.anyio


def crash(journal: Path, point: str) -> None:
    """Let the next process that gets to this point die there."""
    (journal / f"crash-{point}").touch()


def lapse(database: str) -> None:
    """Let the claims of dead processes lapse."""
    move(database, seconds=11)


async def die_in(
    processes: Processes, agent: str, asked: InputRequired, point: str, **answers: str
) -> None:
    """Answer a round by a process that dies at a point of the run."""
    crash(processes.journal, point)
    assert processes.send(agent, accept(asked, **answers), asked.request_state).killed()
    lapse(processes.database)


def written(database: str, channel: str) -> int:
    """How much the nodes of the newest supersteps have written to a channel."""
    return value(database, "SELECT count(*) FROM checkpoint_writes WHERE channel = %s", channel)


async def test_killed_in_the_node_after_the_answer(here: Instance, processes: Processes) -> None:
    asked = await here.asks("one")
    await die_in(processes, "one", asked, "ask", Go="yes")
    result = await here.ends("one", accept(asked, Go="yes"), asked.request_state)
    assert '"answers":["before","ask=yes"]' in said(result)
    assert here.ran() == {"before": 1, "ask?": 3, "ask": 1}


@pytest.mark.parametrize(
    ("point", "again"), [("charge", {"charge": 1}), ("ship", {"charge": 1, "ship": 1})]
)
async def test_killed_in_a_later_node_the_earlier_ones_do_not_run_again(
    here: Instance, processes: Processes, point: str, again: dict[str, int]
) -> None:
    asked = await here.asks("then")
    await die_in(processes, "then", asked, point, Go="yes")
    result = await here.ends("then", accept(asked, Go="yes"), asked.request_state)
    assert '["ask=yes","charge","ship"]' in said(result)
    assert here.ran() == {"ask?": 2, "ask": 1, "charge": 1, "ship": 1}


async def test_after_a_node_is_durable_only_the_same_answers_go_on(
    here: Instance, processes: Processes
) -> None:
    asked = await here.asks("then")
    await die_in(processes, "then", asked, "charge", Go="yes")
    with pytest.raises(InvalidParams, match="already answered"):
        await here.call("then", accept(asked, Go="no"), asked.request_state)
    assert here.ran() == {"ask?": 2, "ask": 1}
    result = await here.ends("then", accept(asked, Go="yes"), asked.request_state)
    assert '["ask=yes","charge","ship"]' in said(result)


async def test_a_wrong_answer_whose_process_dies_does_not_shut_the_right_one_out(
    here: Instance, processes: Processes
) -> None:
    """Nothing became durable with the first answer, so another may still be given."""
    asked = await here.asks("one")
    await die_in(processes, "one", asked, "ask", Go="wrong")
    result = await here.ends("one", accept(asked, Go="right"), asked.request_state)
    assert '"ask=right"' in said(result)


async def test_killed_in_one_branch_the_finished_sibling_does_not_run_again(
    here: Instance, processes: Processes
) -> None:
    asked = await here.asks("pair")
    (processes.journal / "hold-right").touch()
    worker = processes.send("pair", accept(asked, Left="l", Right="r"), asked.request_state)
    wait_for(processes.journal / "held-right")
    await until(lambda: written(processes.database, "answers") > 0)
    worker.kill()
    (processes.journal / "hold-right").unlink()
    lapse(processes.database)
    result = await here.ends("pair", accept(asked, Left="l", Right="r"), asked.request_state)
    assert '["left=l","right=r"]' in said(result)
    assert here.ran() == {"left?": 2, "left": 1, "right?": 3, "right": 1}


async def test_a_branch_that_moved_on_to_a_question_nobody_saw_is_not_answered_by_the_old_answer(
    here: Instance, processes: Processes
) -> None:
    """One branch has used its answer and asked again when the process dies in the other."""
    first = await here.asks("drift")
    answers = accept(first, **{"Delete A": "yes", "Right": "r"})
    (processes.journal / "hold-right").touch()
    worker = processes.send("drift", answers, first.request_state)
    wait_for(processes.journal / "held-right")
    await until(lambda: written(processes.database, "__resume__") > 0)
    worker.kill()
    (processes.journal / "hold-right").unlink()
    lapse(processes.database)
    second = await here.asks("drift", answers, first.request_state)
    assert messages(second) == ["Delete B?"]
    assert not [each for each in here.ran() if each.startswith("moving=")]
    result = await here.ends("drift", accept(second, **{"Delete B": "no"}), second.request_state)
    assert '"moving=yes,no"' in said(result)
    assert here.ran()["right"] == 1


@pytest.mark.parametrize("agent", ["nested", "called", "called_sync"])
async def test_inside_a_subgraph_too_an_unseen_question_gets_no_old_answer(
    here: Instance, processes: Processes, agent: str
) -> None:
    """The root's checkpoint still lists the old question; the subgraph has moved on."""
    first = await here.asks(agent)
    answers = accept(first, **{"Inner A": "a", "Right": "r"})
    (processes.journal / "hold-right").touch()
    worker = processes.send(agent, answers, first.request_state)
    wait_for(processes.journal / "held-right")
    await until(lambda: here.ran()["inner_second?"] == 1)
    await until(lambda: _asks_in_subgraph(processes.database, "Inner B?"))
    worker.kill()
    (processes.journal / "hold-right").unlink()
    lapse(processes.database)
    second = await here.asks(agent, answers, first.request_state)
    assert messages(second) == ["Inner B?"]
    result = await here.ends(agent, accept(second, **{"Inner B": "b"}), second.request_state)
    assert said(result).count("inner_second=b") == 1
    ran = here.ran()
    assert (ran["inner_first"], ran["inner_second"], ran["right"]) == (1, 1, 1)


def _asks_in_subgraph(database: str, question: str) -> bool:
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT blob FROM checkpoint_writes"
            " WHERE channel = '__interrupt__' AND checkpoint_ns <> ''"
        ).fetchall()
    return any(question.encode() in row[0] for row in rows)


async def test_killed_between_two_questions_of_one_node(
    here: Instance, processes: Processes
) -> None:
    first = await here.asks("twice")
    second = await here.asks("twice", accept(first, Name="Ada"), first.request_state)
    await die_in(processes, "twice", second, "both", Colour="red")
    result = await here.ends("twice", accept(second, Colour="red"), second.request_state)
    assert '["Ada=red"]' in said(result)


# Killed while a statement of its own is under way: the statement waits for a row that the test
# holds, so that its process is certain to die in the middle.


@pytest.mark.parametrize("finishes", [True, False])
@pytest.mark.parametrize(
    ("agent", "point"), [("one", "ask"), ("then", "ask"), ("then", "charge"), ("then", "ship")]
)
async def test_killed_while_what_a_node_did_is_being_stored(
    here: Instance,
    processes: Processes,
    sessions: Sessions,
    agent: str,
    point: str,
    finishes: bool,
) -> None:
    """After the node, its flush or the settling waits; the process dies; the database finishes the
    statement by itself, or its session is ended as well."""
    asked = await here.asks(agent)
    answers = accept(asked, Go="yes")
    (processes.journal / f"hold-{point}").touch()
    worker = processes.send(agent, answers, asked.request_state)
    wait_for(processes.journal / f"held-{point}")
    with sessions.hold():
        (processes.journal / f"hold-{point}").unlink()
        await until(lambda: bool(sessions.waiting()))
        worker.kill()
        if not finishes:
            sessions.end(sessions.waiting())
    lapse(processes.database)
    result = await here.ends(agent, answers, asked.request_state)
    assert not result.is_error
    ran = here.ran()
    assert ran[point] == (1 if finishes else 2)
    assert all(ran[node] == 1 for node in ran if node not in (point, "ask?"))
    assert await here.ends(agent, answers, asked.request_state) == result
    assert here.ran() == ran


async def test_killed_while_the_next_round_is_being_stored(
    here: Instance, processes: Processes, sessions: Sessions
) -> None:
    first = await here.asks("two")
    answers = accept(first, First="1")
    (processes.journal / "hold-first").touch()
    worker = processes.send("two", answers, first.request_state)
    wait_for(processes.journal / "held-first")
    with sessions.hold():
        (processes.journal / "hold-first").unlink()
        await until(lambda: bool(sessions.waiting()))
        worker.kill()
    lapse(processes.database)
    second = await here.asks("two", answers, first.request_state)
    result = await here.ends("two", accept(second, Second="2"), second.request_state)
    assert '["first=1","second=2"]' in said(result)
    assert (here.ran()["first"], here.ran()["second"]) == (1, 1)


async def test_every_round_is_served_by_a_process_of_its_own(
    here: Instance, processes: Processes
) -> None:
    first = processes.send("two").one()
    (key,) = first.requests
    second = processes.send(
        "two", {key: {"action": "accept", "content": {"response": "1"}}}, first.state
    ).one()
    (key,) = second.requests
    result = processes.send(
        "two", {key: {"action": "accept", "content": {"response": "2"}}}, second.state
    ).one()
    assert result.kind == "ended"
    assert '["first=1","second=2"]' in result.text


@pytest.mark.parametrize("agent", ["ordering", "ordering_in_a_thread"])
async def test_killed_right_after_a_graph_that_a_node_called_its_last_node_does_not_run_again(
    here: Instance, processes: Processes, agent: str
) -> None:
    asked = await here.asks(agent)
    answers = accept(asked, Go="yes")
    (here.journal / "crash-ordered").touch()
    assert processes.send(agent, answers, asked.request_state).killed()
    move(processes.database, seconds=11)
    await here.ends(agent, answers, asked.request_state)
    assert here.ran() == {"ask?": 2, "ask": 1, "prepare": 1, "charge": 1}
