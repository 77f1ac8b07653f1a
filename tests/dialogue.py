"""A call of an agent in memory: what it asks, and what answers lead to."""

from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command

from core.ambiguity import Overlaps
from core.pending import Pending
from core.questions import Resume, Round, ask, read
from core.saver import CallSaver, CallState


def resumed(round: Round, responses: dict[str, Any]) -> dict[str, Any]:
    """What a run is resumed with, once all of a round is answered."""
    reading = read(round, responses)
    assert isinstance(reading, Resume)
    return reading.values


class Dialogue:
    """One call. A round is dumped and loaded before it is answered, as on another machine.

    Attributes:
        output: what the graph came to, once it has ended.
        pending: what it waits for.
    """

    def __init__(self, graph: Any) -> None:
        self._state = CallState("call", JsonPlusSerializer())
        self._graph = graph.copy({"checkpointer": CallSaver(self._state)})
        self.output: Any = None
        self.pending: list[Pending] = []

    async def start(self, input: Any) -> Round:
        """Run to the first pause."""
        asked = await self._run(input)
        assert asked is not None, self.output
        return asked

    async def answer(self, asked: Round, responses: Mapping[str, Any]) -> Round | None:
        """Run on; None when the call has ended."""
        reading = read(Round.load(asked.dump()), responses)
        assert isinstance(reading, Resume), reading
        return await self._run(Command(resume=reading.values))

    async def _run(self, input: Any) -> Round | None:
        seen = Overlaps()
        config: Any = {"configurable": {"thread_id": "call"}, "callbacks": [seen]}
        self.output = await self._graph.ainvoke(input, config)
        self.pending = self._state.waiting.pending()
        if not self.pending:
            return None
        seen.check(self._graph, self.pending)
        return ask(self.pending)
