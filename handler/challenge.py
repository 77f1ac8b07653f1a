"""The refusals of whoever is not known, with the header that tells a client what to do about it.

Pure module. RFC 6750 (3) and RFC 9728 (5.1) say what the header holds: `error` only where
credentials came, and every scope that is needed at once. Why credentials were refused is told to
the log alone.
"""

from dataclasses import dataclass

from handler.refusals import BadCredentials, Forbidden, HttpRefusal, Unauthorized


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """How a client may identify itself here.

    Attributes:
        metadata: the URL of the document that names the authorization servers, where there is one.
        scopes: what an access token must grant.
    """

    scheme: str = "Bearer"
    metadata: str = ""
    scopes: tuple[str, ...] = ()

    def missing(self, reason: str) -> HttpRefusal:
        """No credentials came."""
        return Unauthorized("Authentication is required.", reason=reason, headers=self._headers())

    def invalid(self, reason: str) -> HttpRefusal:
        """The credentials that came are not good here."""
        headers = self._headers(error="invalid_token")
        return Unauthorized("These credentials are not valid here.", reason=reason, headers=headers)

    def insufficient(self, reason: str) -> HttpRefusal:
        """The token is good, and grants too little."""
        headers = self._headers(error="insufficient_scope")
        needed = " ".join(self.scopes)
        return Forbidden(f"The access token must grant: {needed}.", reason=reason, headers=headers)

    def malformed(self, message: str) -> HttpRefusal:
        """The credentials came in a way that is not allowed."""
        headers = self._headers(error="invalid_request")
        return BadCredentials(message, reason=message, headers=headers)

    def _headers(self, *, error: str = "") -> dict[str, str]:
        parameters = {
            "error": error,
            "scope": " ".join(self.scopes),
            "resource_metadata": self.metadata,
        }
        listed = ", ".join(f'{name}="{value}"' for name, value in parameters.items() if value)
        return {"www-authenticate": f"{self.scheme} {listed}".rstrip()}
