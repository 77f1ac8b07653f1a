"""Work that is worth doing only while the client is there to hear of it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect

T = TypeVar("T")


async def while_present(
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]], work: Coroutine[Any, Any, T]
) -> T:
    """The result of the work, which is cancelled when the client hangs up.

    Both have ended when this returns: on a platform that freezes the process after an answer,
    nothing may be left running.

    Args:
        receive: of an ASGI request whose body has been read.

    Raises:
        ClientDisconnect: the client hung up before the work was done.
    """
    leaving = asyncio.ensure_future(_left(receive))
    present = asyncio.timeout(None)

    def leave(_: object) -> None:
        with suppress(RuntimeError):  # the work has just ended
            present.reschedule(0)

    leaving.add_done_callback(leave)
    try:
        async with present:
            return await work
    except Exception:  # whatever it raised on being stopped
        if present.expired():
            raise ClientDisconnect from None
        raise
    finally:
        leaving.remove_done_callback(leave)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)


async def _left(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
