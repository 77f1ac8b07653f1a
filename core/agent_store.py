"""LangGraph's store for agents that ask for one: its own PostgreSQL store, over our connections.

Opened when an agent first uses it. Its statements name no schema: it needs a role whose search path
leads to the tables.
"""

import asyncio
from weakref import WeakKeyDictionary

from langgraph.store.postgres.aio import AsyncPostgresStore

from core.store import Store


class AgentStore:
    """Opens the store, once per event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncPostgresStore] = (
            WeakKeyDictionary()
        )

    async def __call__(self) -> AsyncPostgresStore:
        loop = asyncio.get_running_loop()
        if (opened := self._opened.get(loop)) is None:
            opened = AsyncPostgresStore(await self._store.pool())
            self._opened[loop] = opened
        return opened
