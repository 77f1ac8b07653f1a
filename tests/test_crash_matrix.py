"""Processes that are killed at every statement and at every step of every node of a resume.

One table for each kind of graph: a row for each place, and what runs once more when the process
was killed just before it, and just after it. A statement's row tells before the database had it,
and after it had done it but before the process knew. Another process answers again, and the call
ends as it would have.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.protocol import InputRequired, ToolResult
from tests.clock import move
from tests.conversation import Instance, accept, instance
from tests.faults import Line, Lines, When
from tests.processes import Processes, Worker

pytestmark = pytest.mark.anyio

NEVER = 3600.0
"""Seconds after which a finished node is stored beside a slow sibling: no statement but ours."""


@dataclass(frozen=True, slots=True)
class Story:
    """A graph, the answers of its rounds, and what runs in a round that nothing disturbs.

    Attributes:
        answers: what each round is answered, by the beginning of its questions.
        killed: the round whose answer the dying process was given.
        runs: the notes of that round.
        table: by place, what runs once more after death before and after it.
        exact: whether the table tells all that runs again; siblings run at the same time, so that
            there it tells what may.
    """

    agent: str
    answers: tuple[Mapping[str, str], ...]
    killed: int
    runs: str
    table: Mapping[str, tuple[str, str]]
    exact: bool = True


STORIES: Mapping[str, Story] = {
    "one node": Story(
        "one",
        ({"Go": "yes"},),
        1,
        "ask? ask",
        {
            "claim": ("", ""),
            "ask?": ("", "ask?"),
            "ask": ("ask?", "ask? ask"),
            "settle": ("ask? ask", ""),
        },
    ),
    "a chain": Story(
        "then",
        ({"Go": "yes"},),
        1,
        "ask? ask charge ship",
        {
            "claim": ("", ""),
            "ask?": ("", "ask?"),
            "ask": ("ask?", "ask? ask"),
            "flush 1": ("ask? ask", ""),
            "charge": ("", "charge"),
            "flush 2": ("charge", ""),
            "ship": ("", "ship"),
            "settle": ("ship", ""),
        },
    ),
    "a node that asks after another": Story(
        "two",
        ({"First": "1"}, {"Second": "2"}),
        1,
        "first? first second?",
        {
            "claim": ("", ""),
            "first?": ("", "first?"),
            "first": ("first?", "first? first"),
            "flush 1": ("first? first", ""),
            "second?": ("", "second?"),
            "settle": ("second?", ""),
        },
    ),
    "a node that asks twice, at its first answer": Story(
        "twice",
        ({"Name": "Ada"}, {"Colour": "red"}),
        1,
        "both",
        {"claim": ("", ""), "both": ("", "both"), "settle": ("both", "")},
    ),
    "a node that asks twice, at its second answer": Story(
        "twice",
        ({"Name": "Ada"}, {"Colour": "red"}),
        2,
        "both",
        {"claim": ("", ""), "both": ("", "both"), "settle": ("both", "")},
    ),
    "parallel branches": Story(
        "pair",
        ({"Left": "l", "Right": "r"},),
        1,
        "left? left right? right",
        {
            "claim": ("", ""),
            "left?": ("right? right", "left? right? right"),
            "left": ("left? right? right", "left? left right? right"),
            "right?": ("left? left", "left? left right?"),
            "right": ("left? left right?", "left? left right? right"),
            "settle": ("left? left right? right", ""),
        },
        exact=False,
    ),
    "a subgraph beside a branch": Story(
        "nested",
        ({"Inner A": "a", "Right": "r"}, {"Inner B": "b"}),
        1,
        "inner_first? inner_first inner_second? right? right",
        {
            "claim": ("", ""),
            "inner_first?": ("right? right", "inner_first? right? right"),
            "inner_first": ("inner_first? right? right", "inner_first? inner_first right? right"),
            "flush 1": ("inner_first? inner_first right? right", "right? right"),
            "inner_second?": ("right? right", "inner_second? right? right"),
            "right?": (
                "inner_first? inner_first inner_second?",
                "inner_first? inner_first inner_second? right?",
            ),
            "right": (
                "inner_first? inner_first inner_second? right?",
                "inner_first? inner_first inner_second? right? right",
            ),
            "settle": ("inner_second? right? right", ""),
        },
        exact=False,
    ),
    "a graph called in a node beside a branch": Story(
        "called",
        ({"Inner A": "a", "Right": "r"}, {"Inner B": "b"}),
        1,
        "calling inner_first? inner_first inner_second? right? right",
        {
            "claim": ("", ""),
            "calling": ("right? right", "calling right? right"),
            "inner_first?": ("calling right? right", "calling inner_first? right? right"),
            "inner_first": (
                "calling inner_first? right? right",
                "calling inner_first? inner_first right? right",
            ),
            "flush 1": (
                "calling inner_first? inner_first right? right",
                "calling right? right",
            ),
            "inner_second?": ("calling right? right", "calling inner_second? right? right"),
            "right?": (
                "calling inner_first? inner_first inner_second?",
                "calling inner_first? inner_first inner_second? right?",
            ),
            "right": (
                "calling inner_first? inner_first inner_second? right?",
                "calling inner_first? inner_first inner_second? right? right",
            ),
            "settle": ("calling inner_second? right? right", ""),
        },
        exact=False,
    ),
}

CELLS = [
    pytest.param(name, place, when, id=f"{name}, {when} {place}")
    for name, story in STORIES.items()
    for place in story.table
    for when in ("before", "after")
]


@pytest.fixture
def line(lines: Lines, module_database: str) -> Iterator[Line]:
    with lines.to(module_database) as opened:
        yield opened


@pytest.mark.parametrize(("name", "place", "when"), CELLS)
async def test_killed_there_nothing_else_runs_again_and_the_call_ends_as_ever(
    module_database: str, tmp_path: Path, line: Line, name: str, place: str, when: When
) -> None:
    story = STORIES[name]
    move(module_database, seconds=0)
    async with instance(module_database, tmp_path) as here:
        asked = await here.asks(story.agent)
        for given in story.answers[: story.killed - 1]:
            asked = await here.asks(story.agent, accept(asked, **given), asked.request_state)
        before = here.ran()
        answers = accept(asked, **story.answers[story.killed - 1])
        dying = Processes(line.conninfo, tmp_path)
        try:
            ran = await _killed(dying, line, story, asked, answers, place, when)
        finally:
            dying.close()
        move(module_database, seconds=11)
        answer = await here.call(story.agent, answers, asked.request_state)
        again = here.ran() - before - Counter(story.runs.split())
        allowed = Counter(story.table[place][when == "after"].split())
        assert again <= ran - before, "only what the dead process had begun may run again"
        assert again == allowed if story.exact else again <= allowed
        assert await here.call(story.agent, answers, asked.request_state) == answer
        assert here.ran() - before - Counter(story.runs.split()) == again
        for given in story.answers[story.killed :]:
            assert isinstance(answer, InputRequired)
            answer = await here.call(story.agent, accept(answer, **given), answer.request_state)
        assert answer == await _undisturbed(here, story)


async def _killed(
    dying: Processes,
    line: Line,
    story: Story,
    asked: InputRequired,
    answers: dict[str, object],
    place: str,
    when: When,
) -> Counter[str]:
    """Let a process die there; what had run by then."""
    statement, _, number = place.partition(" ")
    started = asyncio.Queue[Worker]()

    async def kill() -> bool:
        os.kill((await started.get()).pid, signal.SIGKILL)
        return False

    if statement in ("claim", "flush", "settle"):
        line.at_named(statement, int(number or 1), when, kill)
    else:
        (dying.journal / f"crash-{when}-{place}").touch()
    worker = dying.send(story.agent, answers, asked.request_state, flush_after=NEVER)
    line.loop.call_soon_threadsafe(started.put_nowait, worker)
    assert worker.killed()
    return Counter((dying.journal / "ran").read_text("utf-8").split())


async def _undisturbed(here: Instance, story: Story) -> ToolResult | InputRequired:
    """What the call leads to when nobody dies."""
    answer = await here.call(story.agent)
    for given in story.answers:
        assert isinstance(answer, InputRequired)
        answer = await here.call(story.agent, accept(answer, **given), answer.request_state)
    assert isinstance(answer, ToolResult)
    return answer
