"""What browsers are told about pages of other origins: nothing, until the deployment lists some.

Pure module. Which origins are welcome, `handler.doors` says; a browser wants to hear it as well,
before a request and with the answer.
"""

import re
from dataclasses import dataclass
from typing import Final

from handler.headers import Headers
from handler.response import Answer

MAX_AGE: Final = 600
"""Seconds that a browser may remember the answer to a preflight."""

_NAMES: Final = re.compile(r"[A-Za-z0-9-]+( *, *[A-Za-z0-9-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cors:
    """The words of the CORS protocol; off, there are none.

    Attributes:
        on: whether the deployment lists the origins that may call.
    """

    on: bool

    def preflight(self, headers: Headers) -> Answer | None:
        """The answer to a browser that asks whether a welcome page may send a request; None when
        nobody asks."""
        asked = headers.first("Access-Control-Request-Method")
        if not (self.on and asked and headers.first("Origin")):
            return None
        # `Mcp-Param-*` is without end: what a page may send besides is up to the page.
        names = headers.first("Access-Control-Request-Headers")
        allowed = {"access-control-allow-headers": names} if _NAMES.fullmatch(names) else {}
        methods = {"access-control-allow-methods": "POST, GET"}
        return Answer(
            status=204,
            headers={**methods, **allowed, "access-control-max-age": str(MAX_AGE)},
        )

    def granted(self, headers: Headers) -> dict[str, str]:
        """What every answer to a welcome page carries."""
        if not self.on:
            return {}
        if not (origin := headers.first("Origin")):
            return {"vary": "Origin"}
        return {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": "WWW-Authenticate",
            "vary": "Origin",
        }
