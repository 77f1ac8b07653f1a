"""What a request brings to say who sent it: a bearer token, or a key in a header of its own.

Pure module. In the URL a token is written to logs and histories, so there it counts as none, and
beside another it spoils the request (RFC 6750, 2.3 and 3.1).
"""

import re
from collections.abc import Collection
from typing import Final

from handler.challenge import Challenge
from handler.headers import Headers

_BEARER: Final = re.compile(r"bearer +([A-Za-z0-9\-._~+/]+=*)", re.IGNORECASE)
_IN_URL: Final = frozenset(("access_token", "api_key"))

KEY_HEADER: Final = "X-API-Key"
"""May carry a key bare."""


def check_url(headers: Headers, query: Collection[str], challenge: Challenge) -> None:
    """Passes a request without credentials in its URL, whatever is asked of it then.

    Args:
        query: the names of the parameters in the URL.

    Raises:
        Unauthorized: they stand there alone.
        BadCredentials: they stand beside others.
    """
    if _IN_URL.isdisjoint(query):
        return
    if headers.all("Authorization") or headers.all(KEY_HEADER):
        raise challenge.malformed("Credentials are not taken from the URL.")
    raise challenge.missing("credentials in the URL")


def credential(headers: Headers, challenge: Challenge, *, header: str = "") -> str:
    """The one credential of a request.

    Args:
        header: a field that may carry it bare, besides `Authorization`.

    Raises:
        Unauthorized: there is none.
        BadCredentials: there is more than one.
    """
    bearer = headers.all("Authorization")
    bare = headers.all(header) if header else []
    if len(bearer) + len(bare) > 1:
        raise challenge.malformed("Credentials came more than once.")
    if bare:
        return bare[0]
    if not bearer:
        raise challenge.missing("no credentials")
    match = _BEARER.fullmatch(bearer[0])
    if match is None:
        raise challenge.missing("the Authorization header holds no bearer token")
    return match[1]
