"""Access tokens that the endpoint verifies itself: JWTs of one issuer, for this very resource.

RFC 9068 says what such a token holds, RFC 8725 how one is checked. The algorithm is one of those
that are allowed, and the key is one that the issuer publishes for that algorithm: what the token
says of itself selects, and decides nothing. A token is read, never kept, logged or passed on.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from core.caller import Caller
from core.errors import RetryLater
from handler.challenge import Challenge
from handler.credentials import credential
from handler.jwks import Jwks, Unreachable
from handler.principal import principal
from handler.users import User, configurable
from handler.visit import Visit

SKEW: Final = 30
"""Seconds that two clocks may differ by."""

USUAL: Final = ("RS256", "ES256")
"""What is allowed unless the deployment says otherwise."""

LONGEST: Final = 16 * 1024
"""Characters of a token."""

_REQUIRED: Final = ["aud", "exp", "iss", "sub"]


class BearerTokens:
    """Identifies the callers that an issuer vouches for.

    Args:
        audiences: the names that this resource has in a token's `aud`.
        algorithms: those that a token may be signed with.
        challenge: its scopes are what a token must grant.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audiences: Sequence[str],
        algorithms: Sequence[str],
        jwks: Jwks,
        challenge: Challenge,
    ) -> None:
        self._issuer = issuer
        self._audiences = list(audiences)
        self._algorithms = frozenset(algorithms)
        self._jwks = jwks
        self._challenge = challenge

    async def identify(self, visit: Visit) -> Caller:
        """The subject of the request's access token.

        Raises:
            HttpRefusal: there is no such token, or it grants too little.
            RetryLater: the issuer's keys can't be read.
        """
        token = credential(visit.headers, self._challenge)
        claims = await self._claims(token)
        granted = _scopes(claims)
        if not granted.issuperset(self._challenge.scopes):
            raise self._challenge.insufficient("the token lacks a scope")
        subject, client = claims["sub"], claims.get("client_id", claims.get("azp", ""))
        permissions = sorted(granted)
        user = User({"identity": subject, "permissions": permissions})
        return Caller(
            principal=principal(self._issuer, subject, client if isinstance(client, str) else ""),
            configurable=configurable(user, permissions),
        )

    async def _claims(self, token: str) -> dict[str, Any]:
        import jwt  # an optional part, and dear: only a token needs it

        identifier, algorithm = self._header(token)
        try:
            key = await self._jwks.key(identifier, algorithm)
        except Unreachable:
            raise RetryLater("Who is calling can't be checked now: the issuer is down.") from None
        if key is None:
            raise self._challenge.invalid("no key of the issuer fits")
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._audiences,
                issuer=self._issuer,
                leeway=SKEW,
                options={"require": _REQUIRED, "enforce_minimum_key_length": True},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise self._challenge.invalid(type(error).__name__) from None
        if not claims["sub"]:
            raise self._challenge.invalid("the subject is empty")
        return claims

    def _header(self, token: str) -> tuple[str | None, str]:
        """The key id and the algorithm that a token names, when it may name them."""
        import jwt

        if len(token) > LONGEST:
            raise self._challenge.invalid("the token is too long")
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise self._challenge.invalid(type(error).__name__) from None
        algorithm, identifier = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self._algorithms:
            raise self._challenge.invalid("the algorithm is not allowed")
        if "crit" in header or header.get("b64") is False:
            raise self._challenge.invalid("the header asks for what nobody here understands")
        return identifier if isinstance(identifier, str) else None, algorithm


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """What a token grants: `scope` as RFC 9068 has it, or `scp` as others do."""
    granted = claims.get("scope", claims.get("scp", ()))
    if isinstance(granted, str):
        return frozenset(granted.split())
    listed = cast("list[Any]", granted) if isinstance(granted, list) else []
    return frozenset(each for each in listed if isinstance(each, str))
