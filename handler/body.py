"""A request's body, of which no more than a bound is ever held, and no longer waited for than for
an answer."""

import asyncio
import time
from typing import Final

from starlette.requests import Request

from handler.headers import Headers
from handler.refusals import BodyTooLarge, BodyTooSlow

PATIENCE: Final = 4
"""How many times the bound is read and dropped: a client that is still sending when the connection
closes does not get to read why."""


class Body:
    """The body of one request, read when somebody first asks for it.

    Args:
        limit: bytes.
        deadline: seconds of `time.monotonic()`.
    """

    def __init__(self, http: Request, headers: Headers, limit: int, deadline: float) -> None:
        self._http = http
        self._headers = headers
        self._limit = limit
        self._deadline = deadline
        self._read: bytes | BodyTooLarge | BodyTooSlow | None = None

    async def read(self) -> bytes:
        """The whole body; the same however often it is asked for.

        Raises:
            BodyTooLarge: as `read_body`.
            BodyTooSlow: the deadline came first.
        """
        if self._read is None:
            try:
                async with asyncio.timeout(self._deadline - time.monotonic()):
                    self._read = await read_body(self._http, self._headers, self._limit)
            except TimeoutError:
                self._read = BodyTooSlow("The body did not come in time. Send it again.")
            except BodyTooLarge as refusal:
                self._read = refusal
        if not isinstance(self._read, bytes):
            raise self._read
        return self._read


async def read_body(http: Request, headers: Headers, limit: int) -> bytes:
    """The whole body.

    Raises:
        BodyTooLarge: it has more bytes than the limit, or says that it will.
    """
    refusal = BodyTooLarge(f"The body is larger than {limit} bytes.")
    announced = headers.first("Content-Length")
    if announced.isdigit() and (len(announced) > 18 or int(announced) > limit * PATIENCE):
        raise refusal
    body, size = bytearray(), 0
    async for chunk in http.stream():
        size += len(chunk)
        if size > limit * PATIENCE:
            break
        if size <= limit:
            body += chunk
    if size > limit:
        raise refusal
    return bytes(body)
