"""LangGraph's store, opened for the agents that use it."""

import asyncio
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from core.late_store import LateStore
from core.work import LoopBlocked
from tests.projects import Write, run

pytestmark = pytest.mark.anyio


class TestStore:
    CODE = """
        from langgraph.config import get_store
        from langgraph.graph import START, StateGraph
        from langgraph.runtime import Runtime
        from langgraph.store.base import BaseStore
        from langgraph.store.memory import InMemoryStore
        from typing_extensions import TypedDict

        class State(TypedDict, total=False):
            word: str

        async def parameter(state, *, store: BaseStore):
            await store.aput(("n",), "k", {"word": "kept"})
            return {"word": (await store.aget(("n",), "k")).value["word"]}

        def plain(state, *, store: BaseStore):
            store.put(("n",), "k", {"word": "kept"})
            return {"word": store.get(("n",), "k").value["word"]}

        async def runtime(state, runtime: Runtime):
            return await parameter(state, store=runtime.store)

        async def configured(state):
            return await parameter(state, store=get_store())

        async def waits_for_itself(state, *, store: BaseStore):
            store.get(("n",), "k")

        def unused(state, *, store: BaseStore):
            return {"word": "none"}

        def make(node):
            return StateGraph(State).add_node("n", node).add_edge(START, "n").compile(
                store=InMemoryStore()
            )
    """

    async def run(self, project: Write, node: str, open_store: Callable[[], Any]) -> Any:
        code = textwrap.dedent(self.CODE) + f"graph = make({node})\n"
        return await run(project({"agent.py": code}), "shout", {}, store=open_store)

    @pytest.mark.parametrize("node", ["parameter", "plain", "runtime", "configured"])
    async def test_an_agent_that_asks_for_the_store_gets_ours(
        self, project: Write, node: str
    ) -> None:
        ours = InMemoryStore()
        opened: list[BaseStore] = []

        def open_store() -> BaseStore:
            opened.append(ours)
            return ours

        assert await self.run(project, node, open_store) == {"word": "kept"}
        assert len(opened) == 1
        item = await ours.aget(("n",), "k")
        assert item is not None

    async def test_opening_it_may_take_an_await(self, project: Write) -> None:
        async def open_store() -> BaseStore:
            return InMemoryStore()

        assert await self.run(project, "plain", open_store) == {"word": "kept"}

    async def test_it_is_opened_by_the_first_use_only(self, project: Write) -> None:
        def never() -> BaseStore:
            raise AssertionError

        assert await self.run(project, "unused", never) == {"word": "none"}

    async def test_an_async_node_that_would_wait_for_itself_is_told(self, project: Write) -> None:
        with pytest.raises(RuntimeError, match="async methods"):
            await self.run(project, "waits_for_itself", InMemoryStore)

    async def test_without_one_an_agent_keeps_its_own(self, project: Write) -> None:
        code = textwrap.dedent(self.CODE) + "graph = make(parameter)\n"
        assert await run(project({"agent.py": code}), "shout", {}) == {"word": "kept"}


async def test_a_blocked_event_loop_is_waited_for_and_one_that_waits_for_the_store_is_told() -> (
    None
):
    store = LateStore(InMemoryStore, patience=0.3)
    with ThreadPoolExecutor(1) as threads:
        putting = threads.submit(store.put, ("n",), "k", {"word": "kept"})
        time.sleep(0.1)  # noqa: ASYNC251 - some other call's node
        await asyncio.wrap_future(putting)
        getting = threads.submit(store.get, ("n",), "k")
        with pytest.raises(LoopBlocked):
            getting.result()
    found = await store.aget(("n",), "k")
    assert found is not None
    assert found.value == {"word": "kept"}
