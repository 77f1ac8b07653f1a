"""The document by which a client finds out where to log in (RFC 9728).

Pure module. It stands at the well-known URL that the path of the public URL leads to, and at the
root, where some clients look second; it is for everybody, before anybody is identified.
"""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"

MAX_AGE: Final = 300
"""Seconds that the document may be kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceMetadata:
    """What a client has to know of this resource.

    Attributes:
        resource: the public URL.
        servers: the issuers of its access tokens.
        scopes: what such a token must grant.
    """

    resource: str
    servers: tuple[str, ...]
    scopes: tuple[str, ...] = ()
    name: str = ""

    @property
    def url(self) -> str:
        """Where the document stands."""
        parts = urlsplit(self.resource)
        return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it is served, without the host."""
        return tuple(dict.fromkeys((f"{WELL_KNOWN}{urlsplit(self.resource).path}", WELL_KNOWN)))

    def document(self) -> dict[str, Any]:
        """The document."""
        document: dict[str, Any] = {
            "resource": self.resource,
            "authorization_servers": list(self.servers),
            "bearer_methods_supported": ["header"],
        }
        if self.scopes:
            document["scopes_supported"] = list(self.scopes)
        if self.name:
            document["resource_name"] = self.name
        return document
