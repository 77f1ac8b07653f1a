"""Work that is worth doing only while the client is there to hear of it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
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
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
