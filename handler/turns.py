"""The bound on calls that run in this process at a time; the rest wait their turn, not for ever."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from core.errors import RetryLater

PATIENCE: Final = 0.25
"""The share of a request's time that it may spend waiting: the rest is for the run itself."""


class Turns:
    """Lets so many through at once."""

    def __init__(self, places: int) -> None:
        self._places = asyncio.Semaphore(places)

    @asynccontextmanager
    async def turn(self, deadline: float) -> AsyncGenerator[None]:
        """Waits for a turn, and holds it.

        Args:
            deadline: seconds of `time.monotonic()` at which the answer must be on its way.

        Raises:
            RetryLater: no turn came in time; nothing has run.
        """
        patience = max(0.0, deadline - time.monotonic()) * PATIENCE
        try:
            async with asyncio.timeout(patience):
                await self._places.acquire()
        except TimeoutError:
            raise RetryLater("Too many calls are running. Nothing was done.") from None
        try:
            yield
        finally:
            self._places.release()
