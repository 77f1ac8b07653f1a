"""LangGraph's store for one run, opened when the agent first uses it.

How a node comes by its store can't be seen from outside (a parameter, the runtime, `get_store()`),
so every agent is given one that costs nothing until it is used.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable

from langgraph.store.base import BaseStore, Op, Result

from core.work import LoopBlocked, run_in


class LateStore(BaseStore):
    """A store that is opened by the first operation on it, in the event loop that it was made in.

    Args:
        open_store: called once; may be a coroutine function.
        patience: seconds that an operation from a thread waits for a blocked event loop.
    """

    supports_ttl = True

    def __init__(
        self,
        open_store: Callable[[], BaseStore | Awaitable[BaseStore]],
        *,
        patience: float = 30.0,
    ) -> None:
        self._patience = patience
        self._open_store = open_store
        self._opened: BaseStore | None = None
        self._loop = asyncio.get_running_loop()
        self._opening = asyncio.Lock()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations on the opened store."""
        return await (await self._store()).abatch(ops)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations from a node that is a plain function, which runs in a thread.

        Raises:
            LoopBlocked: the event loop would wait for itself.
        """
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            raise LoopBlocked("an async node must use the store's async methods, such as aget")
        return run_in(self._loop, lambda: self.abatch(ops), patience=self._patience)

    async def _store(self) -> BaseStore:
        async with self._opening:
            if self._opened is None:
                opened = self._open_store()
                self._opened = await opened if inspect.isawaitable(opened) else opened
            return self._opened
