"""LangGraph's store for agents that ask for one: its own PostgreSQL store, over our connections.

Opened when an agent first uses it. Its statements name no schema: it needs a role whose search path
leads to the tables.
"""

from langgraph.store.postgres.aio import AsyncPostgresStore

from core.store import Store


class AgentStore:
    """Opens the store, once for the connections of an event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._opened: AsyncPostgresStore | None = None

    async def __call__(self) -> AsyncPostgresStore:
        pool = await self._store.pool()
        if self._opened is None or self._opened.conn is not pool:
            self._opened = AsyncPostgresStore(pool)
        return self._opened
