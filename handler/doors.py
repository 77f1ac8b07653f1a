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
from handler.refusals import ForeignOrigin, SeveralHosts, UnknownHost

LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Which names are ours, and which origins are welcome.

    Attributes:
        hosts: host names without a port, lower-case; None or `*` among them lets every one in.
        origins: origins as a browser sends them, lower-case; `*` among them lets every one in. With
            None an origin is welcome when its host is one of ours.
    """

    hosts: Collection[str] | None = None
    origins: Collection[str] | None = None

    def check(self, headers: Headers) -> None:
        """Passes a request that is meant for us.

        Raises:
            SeveralHosts: `Host` is repeated.
            UnknownHost: `Host` names nobody here.
            ForeignOrigin: a page of somebody else's sent it.
        """
        if len(headers.all("Host")) > 1:
            raise SeveralHosts("The Host header appears more than once: send one.")
        if not self._ours(f"//{headers.first('Host')}"):
            raise UnknownHost(
                "This host is not served here: INTERMEZZO_ALLOWED_HOSTS lists those that are."
            )
        for origin in headers.all("Origin"):
            if not self._welcome(origin.lower()):
                raise ForeignOrigin(
                    "This origin may not call: INTERMEZZO_ALLOWED_ORIGINS lists those that may."
                )

    def _welcome(self, origin: str) -> bool:
        if self.origins is None:
            return self._ours(origin)
        return "*" in self.origins or origin in self.origins

    def _ours(self, url: str) -> bool:
        return self.hosts is None or "*" in self.hosts or _host(url) in self.hosts


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
