"""What executes for a call: when it has ended, and what does not wait for it."""

import asyncio
import socket
import sys
import threading

import pytest

from core import work
from core.work import Work

pytestmark = pytest.mark.anyio


def prepared() -> asyncio.AbstractEventLoop:
    """This test's event loop, and a run whose threads are told."""
    loop = asyncio.get_running_loop()
    work.prepare(loop)
    return loop


async def test_names_are_looked_up_while_every_thread_is_at_work() -> None:
    """A node that waits for a connection would wait for ever, were it to find the database."""
    loop, go = prepared(), threading.Event()
    working = [loop.run_in_executor(None, go.wait, 20) for _ in range(work.MOST_THREADS + 1)]
    try:
        async with asyncio.timeout(5):
            assert await loop.getaddrinfo("localhost", 5432, type=socket.SOCK_STREAM)
        assert not any(each.done() for each in working)
    finally:
        go.set()
        await asyncio.gather(*working)


async def test_nodes_that_hang_keep_no_others_from_beginning() -> None:
    loop, go, begun = prepared(), threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        begun.release()
        go.wait(20)

    working = [loop.run_in_executor(None, hang) for _ in range(100)]
    try:
        for _ in working:
            assert begun.acquire(timeout=5)
    finally:
        go.set()
        await asyncio.gather(*working)


async def test_a_run_is_busy_until_its_last_thread_ends_whatever_became_of_the_run() -> None:
    loop, go, run = prepared(), threading.Event(), Work()
    work.current.set(run)
    ended, failed = loop.run_in_executor(None, go.wait, 20), loop.run_in_executor(None, fail, go)
    assert run.busy
    for each in (ended, failed):
        each.cancel()
    assert run.busy
    waiting = asyncio.create_task(run.ended())
    go.set()
    await waiting
    assert not run.busy


def fail(go: threading.Event) -> None:
    go.wait(20)
    raise ValueError("nobody waits for this")


async def test_a_node_that_would_end_the_process_fails_and_nothing_else_ends() -> None:
    with pytest.raises(RuntimeError, match="a node raised SystemExit"):
        await prepared().run_in_executor(None, sys.exit, 3)
