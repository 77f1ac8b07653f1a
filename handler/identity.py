"""Who is calling: one source for a deployment, or none.

    INTERMEZZO_JWT_…       access tokens that are verified here     `handler.bearer`
    INTERMEZZO_GATEWAY     what AWS says of the caller              `handler.gateway`
    INTERMEZZO_API_KEYS    keys that the deployment gave out        `handler.api_keys`
    auth in langgraph.json LangGraph's custom auth                  `handler.custom_auth`

Without a source everybody is the same nobody. Whatever the source, what comes of it is a `Caller`;
a source is imported when it is chosen.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from core.caller import Caller
from handler.challenge import Challenge
from handler.resource_metadata import ResourceMetadata
from handler.settings import Settings, SettingsError
from handler.sources import conflict, named

if TYPE_CHECKING:
    from core.catalog import Catalog
    from handler.bearer import BearerTokens
    from handler.jwks import Jwks
    from handler.visit import Visit

CUSTOM: Final = '"auth" in langgraph.json'


class Identity(Protocol):
    """A source of identity."""

    async def identify(self, visit: "Visit") -> Caller:
        """Who sent a request.

        Raises:
            Refusal: nobody who may, or it can't be told.
        """
        ...


def choose(settings: Settings, catalog: "Catalog") -> Identity | None:
    """The source of a deployment; None: everybody may call.

    Raises:
        SettingsError: the settings and langgraph.json name several, or half of one.
        CatalogError: the custom auth can't be used.
    """
    sources = _named(settings, catalog)
    if problem := conflict(sources):
        raise SettingsError([problem])
    if not sources:
        if settings.authorization_servers:
            raise SettingsError(
                [
                    "INTERMEZZO_AUTHORIZATION_SERVERS is set, but nothing says who is calling: set"
                    " INTERMEZZO_JWT_ISSUER and INTERMEZZO_JWT_JWKS, or unset it."
                ]
            )
        return None
    challenge = challenging(settings, catalog)
    if settings.jwt_issuer:
        return _bearer(settings, challenge)
    if settings.gateway:
        from handler.gateway import PRINCIPAL_KEY, Gateway

        key = settings.gateway_principal_key or PRINCIPAL_KEY
        return Gateway(settings.gateway, principal_key=key, challenge=challenge)
    if settings.api_keys:
        from handler.api_keys import ApiKeys

        return ApiKeys(settings.api_keys, challenge=challenge)
    from handler.custom_auth import CustomAuth

    return CustomAuth.load(catalog.project, challenge=challenge)


def challenging(settings: Settings, catalog: "Catalog") -> Challenge:
    """How clients are told to say who they are."""
    metadata = published(settings, catalog)
    return Challenge(
        scheme="AWS4-HMAC-SHA256" if settings.gateway == "iam" else "Bearer",
        metadata=metadata.url if metadata else "",
        scopes=settings.jwt_scopes,
    )


def published(settings: Settings, catalog: "Catalog") -> ResourceMetadata | None:
    """What clients are told of where to log in, when that is known."""
    servers = settings.authorization_servers or tuple(filter(None, (settings.jwt_issuer,)))
    if not (servers and settings.public_url and _named(settings, catalog)):
        return None
    return ResourceMetadata(
        resource=settings.public_url,
        servers=servers,
        scopes=settings.jwt_scopes,
        name=settings.server_name,
    )


def _named(settings: Settings, catalog: "Catalog") -> list[str]:
    """The sources that a deployment names."""
    values = {
        name: getattr(settings, name) for name in ("jwt_issuer", "jwt_jwks", "gateway", "api_keys")
    }
    return [*named(values), *([CUSTOM] if catalog.auth_path else [])]


def _bearer(settings: Settings, challenge: Challenge) -> "BearerTokens":
    from handler.bearer import USUAL, BearerTokens

    resource = settings.public_url
    # The root of a host has two spellings, and clients use either.
    audiences = [resource] if urlsplit(resource).path else [resource, f"{resource}/"]
    return BearerTokens(
        issuer=settings.jwt_issuer,
        audiences=audiences,
        algorithms=settings.jwt_algorithms or USUAL,
        jwks=_jwks(settings.jwt_jwks),
        challenge=challenge,
    )


def _jwks(source: str) -> "Jwks":
    from handler.jwks import Jwks, from_file, from_url, parse

    if "://" in source:
        return Jwks(from_url(source))
    try:
        parse(Path(source).read_bytes())
    except (OSError, ValueError) as error:
        told = f"INTERMEZZO_JWT_JWKS is {source!r}, which is no key set ({error}); correct it."
        raise SettingsError([told]) from error
    return Jwks(from_file(Path(source)))
