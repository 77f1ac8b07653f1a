"""What is executing for a call in this process, whatever became of the request that began it.

Cancelling a run stops its coroutines, unless one takes its time over it; nothing stops a thread: a
sync node goes on, and has its side effects, after its run is over. A claim must not be given back,
nor the next run begin here, before they have ended.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar
from weakref import WeakSet

P = ParamSpec("P")
T = TypeVar("T")

MOST_THREADS: Final = 256
"""Sync nodes that run at once, those that hang and have no request any more included. A thread is
made when none is idle."""

_Executing: TypeAlias = "Future[Any] | asyncio.Future[Any]"


class Work:
    """The threads and tasks at work for one call."""

    def __init__(self) -> None:
        self._executing: set[_Executing] = set()

    @property
    def busy(self) -> bool:
        """Whether code of the agent's is still executing."""
        return any(not each.done() for each in list(self._executing))  # threads change it

    def add(self, executing: _Executing) -> None:
        """Count this until it is done."""
        self._executing.add(executing)
        executing.add_done_callback(self._done)

    def _done(self, executing: _Executing) -> None:
        self._executing.discard(executing)

    async def ended(self) -> None:
        """Wait until nothing executes; nobody is left to whom what it raises matters."""
        while pending := [asyncio.wrap_future(each) for each in list(self._executing)]:
            for each in pending:
                each.add_done_callback(_heard)
            await asyncio.wait(pending)


def _heard(future: "asyncio.Future[Any]") -> None:
    if not future.cancelled():
        future.exception()


current: ContextVar[Work | None] = ContextVar("current", default=None)
"""What the coroutine that reads it works for; inherited by every task that it makes."""


class NodeExecutor(ThreadPoolExecutor):
    """A thread pool that counts each of its threads as work of the call that it is for.

    The event loop looks up names in its pool as well. That has threads of its own here: nodes that
    wait for the database must not keep it from being found.
    """

    def __init__(self) -> None:
        super().__init__(MOST_THREADS, thread_name_prefix="node")
        self._lookups = ThreadPoolExecutor(2, thread_name_prefix="lookup")

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if fn is socket.getaddrinfo:
            return self._lookups.submit(fn, *args, **kwargs)
        future = super().submit(_stay, fn, *args, **kwargs)
        if (work := current.get()) is not None:
            work.add(future)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._lookups.shutdown(wait, cancel_futures=cancel_futures)
        super().shutdown(wait, cancel_futures=cancel_futures)


def _stay(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What would end the process ends the node: other calls run beside it."""
    try:
        return fn(*args, **kwargs)
    except (SystemExit, KeyboardInterrupt) as leaving:
        raise RuntimeError(f"a node raised {type(leaving).__name__}") from leaving


_prepared: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def prepare(loop: asyncio.AbstractEventLoop) -> None:
    """Make the loop run sync nodes in threads that count as work."""
    if loop not in _prepared:
        loop.set_default_executor(NodeExecutor())
        _prepared.add(loop)


class LoopBlocked(RuntimeError):
    """An async node holds the event loop up, where what it waits for would have to happen; the text
    says what to use instead."""


def run_in(
    loop: asyncio.AbstractEventLoop,
    work: Callable[[], Coroutine[Any, Any, T]],
    *,
    patience: float,
) -> T:
    """Run a coroutine in the event loop, from a thread that waits for it.

    Args:
        patience: seconds that the loop gets to begin. Nothing tells one that waits for this very
            thread from one that some other call's node holds up for a while.

    Raises:
        LoopBlocked: the loop did not begin, and will not: an async node that calls `invoke` holds
            it up until the threads that this started are done.
    """
    begun = threading.Event()

    async def working() -> T:
        begun.set()
        return await work()

    future = asyncio.run_coroutine_threadsafe(working(), loop)
    if not begun.wait(patience) and future.cancel():
        raise LoopBlocked("an async node blocks the event loop: let it call `ainvoke`")
    return future.result()
