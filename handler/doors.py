"""`Host` and `Origin`: whom a request may be addressed to, and which page may have sent it.

Pure module. A page that a browser has open can reach a server on the same machine, or, once its
own name resolves to that machine, look like a local page (DNS rebinding). A client that is no
browser sends no `Origin`, and that is always fine.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from handler.headers import Headers
from handler.refusals import ForeignOrigin, UnknownHost

LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Which names are ours, and which origins are welcome; None lets every one in.

    Attributes:
        hosts: host names without a port, lower-case.
        origins: origins as a browser sends them, lower-case. With none given, but hosts given, an
            origin is welcome when its host is one of ours.
    """

    hosts: Collection[str] | None = None
    origins: Collection[str] | None = None

    def check(self, headers: Headers) -> None:
        """Passes a request that is meant for us.

        Raises:
            UnknownHost: `Host` names nobody here.
            ForeignOrigin: a page of somebody else's sent it.
        """
        if self.hosts is not None and _host(f"//{headers.first('Host')}") not in self.hosts:
            raise UnknownHost(
                "This host is not served here: INTERMEZZO_ALLOWED_HOSTS lists those that are."
            )
        for origin in headers.all("Origin"):
            if not self._welcome(origin.lower()):
                raise ForeignOrigin(
                    "This origin may not call: INTERMEZZO_ALLOWED_ORIGINS lists those that may."
                )

    def _welcome(self, origin: str) -> bool:
        if self.origins is not None:
            return origin in self.origins
        return self.hosts is None or _host(origin) in self.hosts


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
