"""One request over HTTP, where the endpoint itself is the client.

It blocks, within bounds of time and size: threads of their own wait for it.
"""

import time
from http.client import HTTPException
from typing import Any, Final
from urllib.request import HTTPRedirectHandler, Request, build_opener

_CHUNK: Final = 64 * 1024


class _Never(HTTPRedirectHandler):
    """Follows no redirect: the operator named the place."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def fetch(request: Request, *, patience: float, most: int) -> bytes:
    """The body of the answer.

    Args:
        patience: seconds.
        most: bytes.

    Raises:
        OSError: there is none: HTTPError where its status says so.
        ValueError: it is larger.
    """
    end = time.monotonic() + patience
    body = bytearray()
    try:
        with build_opener(_Never).open(request, timeout=patience) as answer:
            while chunk := answer.read1(_CHUNK):
                body += chunk
                if len(body) > most:
                    raise ValueError("too large")
                if time.monotonic() > end:
                    raise TimeoutError
    except HTTPException as error:
        raise OSError(f"no answer in HTTP: {type(error).__name__}") from error
    return bytes(body)
