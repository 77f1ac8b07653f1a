"""The threads that sync nodes run in: which run each belongs to, and when the last one ends.

Cancelling a run stops its coroutines at once, but nothing stops a thread: a sync node goes on, and
has its side effects, after the run is over. A claim must not be given back before it ends.
"""

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

P = ParamSpec("P")
T = TypeVar("T")


class RunThreads:
    """The threads at work for one run."""

    def __init__(self) -> None:
        self._futures: set[Future[Any]] = set()

    @property
    def busy(self) -> bool:
        """Whether a node's code is still executing, whatever became of its run."""
        return any(not future.done() for future in list(self._futures))  # threads change it

    def add(self, future: Future[Any]) -> None:
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)

    async def ended(self) -> None:
        """Wait until no thread is at work; nobody is left to whom what they raise matters."""
        while pending := [asyncio.wrap_future(each) for each in list(self._futures)]:
            await asyncio.gather(*pending, return_exceptions=True)


current: ContextVar[RunThreads | None] = ContextVar("current", default=None)
"""The run whose coroutine this is; inherited by every task that it makes."""


class NodeExecutor(ThreadPoolExecutor):
    """A thread pool that tells each run of its threads.

    The event loop looks up names in its pool as well. That has threads of its own here: nodes that
    wait for the database must not keep it from being found.
    """

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="node")
        self._lookups = ThreadPoolExecutor(2, thread_name_prefix="lookup")

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if fn is socket.getaddrinfo:
            return self._lookups.submit(fn, *args, **kwargs)
        future = super().submit(_stay, fn, *args, **kwargs)
        if (threads := current.get()) is not None:
            threads.add(future)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._lookups.shutdown(wait, cancel_futures=cancel_futures)
        super().shutdown(wait, cancel_futures=cancel_futures)


def _stay(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What would end the process ends the node: other calls run beside it."""
    try:
        return fn(*args, **kwargs)
    except SystemExit as leaving:
        raise RuntimeError("a node called sys.exit()") from leaving


_prepared: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def prepare(loop: asyncio.AbstractEventLoop) -> None:
    """Make the loop run sync nodes in threads that are told to their runs."""
    if loop not in _prepared:
        loop.set_default_executor(NodeExecutor())
        _prepared.add(loop)
