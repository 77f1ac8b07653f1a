"""What LangGraph has besides plain nodes does the same after a pause as on LangGraph's own saver.

Each graph is run to its end twice: as a call, each round on an instance that knows nothing of the
one before; and on LangGraph's PostgreSQL saver. Questions, output and how often each node ran are
equal.
"""

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.types import Command

from core.protocol import InputRequired
from tests.agents import features
from tests.conversation import instance, said

pytestmark = pytest.mark.anyio


class Person:
    """Answers each question differently each time."""

    def __init__(self) -> None:
        self.rounds: list[list[str]] = []
        self._seen: Counter[str] = Counter()

    def answer(self, questions: set[str]) -> dict[str, str]:
        self.rounds.append(sorted(questions))
        self._seen.update(questions)
        return {each: f"{each[:-1]} {self._seen[each]}" for each in questions}


async def as_a_call(database: str, journal: Path, agent: str, **changes: Any) -> tuple[Any, ...]:
    person = Person()
    state = answers = None
    while True:
        async with instance(database, journal) as here:
            came_to = await here.call(agent, answers, state, **changes)
        if not isinstance(came_to, InputRequired):
            return person.rounds, _plain(said(came_to), journal), here.ran()
        asked = {key: each["params"]["message"] for key, each in came_to.requests.items()}
        given = person.answer(set(asked.values()))
        answers = {
            key: {"action": "accept", "content": {"response": given[message]}}
            for key, message in asked.items()
        }
        state = came_to.request_state


async def on_langgraph(database: str, journal: Path, agent: str) -> tuple[Any, ...]:
    person = Person()
    config: RunnableConfig = {"configurable": {"thread_id": str(uuid4())}}
    async with AsyncPostgresSaver.from_conn_string(database) as saver:
        made: Any = getattr(features, agent)
        graph = made.compile() if hasattr(made, "compile") else copy.copy(made)
        graph.checkpointer = saver
        given: Any = {"journal": str(journal)}
        while True:
            output = await graph.ainvoke(given, config, durability="sync")
            interrupts = output.pop("__interrupt__", ())
            if not interrupts:
                notes = journal / "ran"
                ran = notes.read_text(encoding="utf-8").split() if notes.exists() else ()
                return person.rounds, _plain(json.dumps(output), journal), Counter(ran)
            answers = person.answer({each.value for each in interrupts})
            given = Command(resume={each.id: answers[each.value] for each in interrupts})


def _plain(output: str, journal: Path) -> Any:
    return json.loads(output.replace(str(journal), "journal"))


@pytest.mark.parametrize("progress", [False, True])
@pytest.mark.parametrize("agent", features.FEATURES)
async def test_a_call_does_what_langgraph_does(
    database: str, tmp_path: Path, agent: str, progress: bool
) -> None:
    def ignore(mode: str, chunk: Any) -> None:
        pass

    journals = tmp_path / "theirs", tmp_path / "ours"
    for journal in journals:
        journal.mkdir()
    theirs = await on_langgraph(database, journals[0], agent)
    changes = {"progress": ignore} if progress else {}
    assert await as_a_call(database, journals[1], agent, **changes) == theirs
    assert len(theirs[0]) > 1
