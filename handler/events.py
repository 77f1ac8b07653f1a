"""Server-sent events: one request's notifications, and then its answer.

A stream is begun when the first notification is due. Whatever is answered before that is plain
JSON, with a status of its own.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from core.progress import Progress
from handler.response import Answer, encode

EVENT_STREAM: Final = "text/event-stream"

KEEP_ALIVE: Final = 15.0
"""Seconds of silence after which a comment says that the stream is alive."""

MOST: Final = 256
"""Notifications that wait for a client which reads slower than its agent tells; older ones go."""

_COMMENT: Final = b":\n\n"


class Events:
    """The notifications that wait to be sent. Tell it from the event loop alone."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._waiting: deque[bytes] = deque(maxlen=MOST)
        self._some = asyncio.Event()

    def tell(self, mode: str, chunk: Any) -> None:
        """What a running agent streams."""
        for notification in self._progress.notifications(mode, chunk):
            self._waiting.append(_event(encode(notification)))
            self._some.set()

    async def some(self) -> None:
        """Waits until there is something to send."""
        await self._some.wait()

    def taken(self) -> bytes:
        """All that waits, as it is sent."""
        events = b"".join(self._waiting)
        self._waiting.clear()
        self._some.clear()
        return events


async def streamed(
    work: Coroutine[Any, Any, Answer], events: Events, respond: Callable[[Answer], Response]
) -> Response:
    """The answer as JSON, or, once a notification is due before it, a stream that ends with it.

    Args:
        work: comes to the answer, and tells `events` meanwhile. When the client hangs up it ends,
            with an answer that nobody reads.
        respond: makes a response of an answer.
    """
    working = asyncio.ensure_future(work)
    first = asyncio.ensure_future(events.some())
    try:
        await asyncio.wait((working, first), return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        await _ended(working)
        raise
    finally:
        first.cancel()
    return respond(working.result()) if working.done() else _EventStream(working, events)


class _EventStream(Response):
    """Events as they come. When nobody takes them any more, the work has ended too."""

    media_type = EVENT_STREAM

    def __init__(self, working: "asyncio.Future[Answer]", events: Events) -> None:
        # A proxy that gathers a response before it passes it on would defeat the purpose.
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._working = working
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(start)
            async for chunk in self._chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await _ended(self._working)

    async def _chunks(self) -> AsyncGenerator[bytes]:
        while not self._working.done():
            yield self._events.taken() or _COMMENT
            some = asyncio.ensure_future(self._events.some())
            try:
                both = (self._working, some)
                await asyncio.wait(both, timeout=KEEP_ALIVE, return_when=asyncio.FIRST_COMPLETED)
            finally:
                some.cancel()
        answer = self._working.result().body
        yield self._events.taken() + (_event(answer) if answer else b"")


async def _ended(working: "asyncio.Future[Answer]") -> None:
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)


def _event(message: bytes) -> bytes:
    return b"event: message\ndata: " + message + b"\n\n"
