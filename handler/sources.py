"""Which source tells who is calling, by the settings, and what is half made of it.

It imports none of the sources. There is one source or none; LangGraph's custom auth,
which langgraph.json names, is one as well (`handler.identity`). A setting that is made by half
would leave the endpoint open, so it is an error.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from handler.doors import LOCAL

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""The algorithms that may be allowed. Where the key that verifies also signs (HS256), everyone who
verifies could sign."""

GATEWAYS: Final = ("http-api-jwt", "http-api-lambda", "rest-api-cognito", "rest-api-lambda", "iam")
"""The shapes in which AWS says who is calling: `handler.gateway`."""

_JWT: Final = ("jwt_issuer", "jwt_jwks", "jwt_algorithms", "jwt_scopes")

_VARIABLES: Final[Mapping[str, str]] = {
    "jwt_issuer": "INTERMEZZO_JWT_ISSUER",
    "jwt_jwks": "INTERMEZZO_JWT_JWKS",
    "jwt_algorithms": "INTERMEZZO_JWT_ALGORITHMS",
    "jwt_scopes": "INTERMEZZO_JWT_SCOPES",
    "gateway": "INTERMEZZO_GATEWAY",
    "api_keys": "INTERMEZZO_API_KEYS",
}


def named(values: Mapping[str, Any]) -> list[str]:
    """The variables that name a source, one for each source."""
    groups = (_JWT, ("gateway",), ("api_keys",))
    found = [next((name for name in group if values.get(name)), None) for group in groups]
    return [_VARIABLES[name] for name in found if name is not None]


def conflict(sources: Sequence[str]) -> str:
    """What is wrong with so many sources, when there is more than one."""
    if len(sources) < 2:
        return ""
    return f"{' and '.join(sources)} are two answers to who is calling; keep one."


def problems(values: Mapping[str, Any]) -> list[str]:
    """What is wrong with the settings that say who is calling, each with its fix."""
    several = conflict(named(values))
    found = [several] if several else []
    found += _jwt(values)
    found += _gateway(values)
    if values.get("api_keys"):
        from handler.api_keys import problems as key_problems

        found += [f"INTERMEZZO_API_KEYS: {each}." for each in key_problems(values["api_keys"])]
    if values.get("authorization_servers") and not values.get("public_url"):
        found.append(
            "INTERMEZZO_PUBLIC_URL is not set, but INTERMEZZO_AUTHORIZATION_SERVERS is; set it to"
            " the URL that clients use."
        )
    return found


def _jwt(values: Mapping[str, Any]) -> list[str]:
    named_by = next((_VARIABLES[name] for name in _JWT if values.get(name)), None)
    if named_by is None:
        return []
    found = [
        f"{variable} is not set, but {named_by} is; set it to {shape}."
        for name, variable, shape in (
            ("jwt_issuer", "INTERMEZZO_JWT_ISSUER", "the `iss` of the access tokens"),
            ("jwt_jwks", "INTERMEZZO_JWT_JWKS", "the URL or the file of the issuer's keys"),
            (
                "public_url",
                "INTERMEZZO_PUBLIC_URL",
                "the URL that clients use, which a token must name in its `aud`",
            ),
        )
        if not values.get(name)
    ]
    public = urlsplit(str(values.get("public_url", "")))
    if public.scheme == "http" and public.hostname not in LOCAL:
        found.append("INTERMEZZO_PUBLIC_URL is not https: access tokens would travel in the clear.")
    source: str = values.get("jwt_jwks", "")
    if source and "://" not in source and not Path(source).is_file():
        found.append(f"INTERMEZZO_JWT_JWKS is {source!r}, and there is no such file; correct it.")
    if importlib.util.find_spec("jwt") is None or importlib.util.find_spec("cryptography") is None:
        found.append(f"{named_by} needs the extra `jwt`: `pip install '.[jwt]'`, in a checkout.")
    return found


def _gateway(values: Mapping[str, Any]) -> list[str]:
    if values.get("gateway_principal_key") and not values.get("gateway", "").endswith("-lambda"):
        return [
            "INTERMEZZO_GATEWAY_PRINCIPAL_KEY is set, but INTERMEZZO_GATEWAY names no Lambda"
            " authorizer; unset it, or set that to http-api-lambda or rest-api-lambda."
        ]
    return []
