"""A conversation with `Rounds`: call a tool, answer its questions, look at what it came to.

The agents note in a journal folder which nodes ran; see `tests.agents.journal`.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from core.catalog import Catalog
from core.errors import RetryLater
from core.protocol import InputRequired, ToolResult
from core.request_state import KeyRing
from core.rounds import Call, Rounds
from core.store import Store
from tests.agents.journal import noted

AGENTS = Path(__file__).parent / "agents" / "langgraph.json"
KEY = "correct-horse-battery-staple-0123456789"
MODES = frozenset({"form", "url"})

catalog = Catalog.read(AGENTS)


@dataclass(kw_only=True)
class Instance:
    """One instance of the product, as far as `core` goes."""

    store: Store
    rounds: Rounds
    journal: Path
    seconds: float = 20.0
    defaults: dict[str, Any] = field(default_factory=dict[str, Any])

    async def call(
        self,
        agent: str,
        answers: Mapping[str, Any] | None = None,
        state: str | None = None,
        **changes: Any,
    ) -> ToolResult | InputRequired:
        """One request for a tool; with a state it is a retry."""
        tool = await catalog.tool(agent)
        assert tool is not None
        request = Call(
            tool=tool,
            arguments={"journal": str(self.journal)},
            responses=answers,
            request_state=state,
            modes=MODES,
            deadline=time.monotonic() + self.seconds,
        )
        return await self.rounds.call(replace(request, **self.defaults, **changes))

    async def asks(self, agent: str, *arguments: Any, **changes: Any) -> InputRequired:
        """A request that must lead to questions."""
        answer = await self.call(agent, *arguments, **changes)
        assert isinstance(answer, InputRequired), answer
        return answer

    async def ends(self, agent: str, *arguments: Any, **changes: Any) -> ToolResult:
        """A request that must end the call."""
        answer = await self.call(agent, *arguments, **changes)
        assert isinstance(answer, ToolResult), answer
        return answer

    async def puts_off(self, agent: str, *arguments: Any, **changes: Any) -> RetryLater:
        """A request that must be told to come back soon."""
        with pytest.raises(RetryLater) as refusal:
            await self.call(agent, *arguments, **changes)
        assert refusal.value.data == {"retryAfterMs": 1000}
        return refusal.value

    def ran(self) -> Counter[str]:
        """How often each node ran."""
        return noted(self.journal)


@asynccontextmanager
async def instance(
    database: str,
    journal: Path,
    *,
    keys: tuple[str, ...] = (KEY,),
    audience: str = "",
    lease: float = 10.0,
    left: float | None = None,
    store: Store | None = None,
    **changes: Any,
) -> AsyncGenerator[Instance]:
    """An instance with connections of its own."""
    store = store or Store(database)
    rounds = Rounds(
        catalog=changes.pop("catalog", catalog),
        store=lambda: store,
        keys=KeyRing(keys),
        audience=audience,
        lease=timedelta(seconds=lease),
        left=None if left is None else lambda: timedelta(seconds=left),
    )
    try:
        yield Instance(store=store, rounds=rounds, journal=journal, **changes)
    except BaseException:
        _let_go(journal)  # or a test that failed would wait for its nodes
        raise
    finally:
        await rounds.close()
        await store.close()


def _let_go(journal: Path) -> None:
    for hold in journal.glob("hold-*"):
        hold.unlink()


@pytest.fixture
async def here(database: str, tmp_path: Path) -> AsyncGenerator[Instance]:
    """An instance on the test's database, whose agents note in the test's folder."""
    async with instance(database, tmp_path) as one:
        yield one


@pytest.fixture
async def store(database: str) -> AsyncGenerator[Store]:
    """What an instance has of the test's database."""
    opened = Store(database)
    yield opened
    await opened.close()


def accept(requests: InputRequired, **contents: Any) -> dict[str, Any]:
    """An acceptance of every question, whose text a keyword tells: `accept(round, Left="a")`.

    The keyword is the beginning of the question's message.
    """
    answers: dict[str, Any] = {}
    for key, request in requests.requests.items():
        message = request["params"]["message"]
        value = next(
            (value for start, value in contents.items() if message.startswith(start)), None
        )
        if value is not None:
            content = cast("Any", value if isinstance(value, dict) else {"response": value})
            answers[key] = {"action": "accept", "content": content}
    return answers


def messages(requests: InputRequired) -> list[str]:
    """The texts of the questions."""
    return [request["params"]["message"] for request in requests.requests.values()]


async def hang_up(request: asyncio.Task[Any]) -> None:
    """End a request as when its client is gone."""
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request


def ignoring(mode: str, chunk: Any) -> None:
    """Progress that nobody is told of."""


def said(result: ToolResult) -> str:
    """The text of a result."""
    return "\n".join(block["text"] for block in result.content)


async def until(true: Callable[[], bool], *, seconds: float = 10.0) -> None:
    """Wait for something that another task or process does, and fail when it does not happen."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.005)
