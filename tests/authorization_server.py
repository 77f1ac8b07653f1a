"""A small OAuth authorization server: registration, the code flow with PKCE, and refreshing.

It believes whoever it is told has logged in, and is strict about everything that a client sends.
"""

import base64
import hashlib
import json
import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.issuer import key_set, public, rsa_key, token
from tests.listening import Handler, listening

LIFETIME = 600


@dataclass
class AuthorizationServer:
    """One server, and what it has seen.

    Attributes:
        person: who has logged in.
        lifetime: seconds that the next access token is good for.
        grants: the kinds of grants that tokens were given for.
    """

    issuer: str
    person: str = "ada"
    lifetime: int = LIFETIME
    grants: list[str] = field(default_factory=list[str])
    _clients: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    _refreshes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
        }

    def register(self, body: Mapping[str, Any]) -> dict[str, Any]:
        client = f"client-{len(self._clients) + 1}"
        self._clients[client] = body["redirect_uris"]
        return {**body, "client_id": client, "token_endpoint_auth_method": "none"}

    def authorize(self, asked: Mapping[str, str]) -> str:
        """Where the browser goes on to."""
        assert asked["redirect_uri"] in self._clients[asked["client_id"]]
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        code = secrets.token_urlsafe(16)
        self._codes[code] = {**asked, "person": self.person}
        parameters = {"code": code, "state": asked["state"], "iss": self.issuer}
        return f"{asked['redirect_uri']}?{urlencode(parameters)}"

    def token(self, form: Mapping[str, str]) -> dict[str, Any]:
        self.grants.append(form["grant_type"])
        if form["grant_type"] == "refresh_token":
            grant = self._refreshes.pop(form["refresh_token"])
        else:
            grant = self._codes.pop(form["code"])
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            assert challenge == grant["code_challenge"]
            assert form["redirect_uri"] == grant["redirect_uri"]
        assert form["client_id"] == grant["client_id"]
        assert form["resource"] == grant["resource"]
        refresh = secrets.token_urlsafe(16)
        self._refreshes[refresh] = grant
        return {
            "access_token": self._access_token(grant),
            "token_type": "Bearer",
            "expires_in": self.lifetime,
            "refresh_token": refresh,
            "scope": grant.get("scope", ""),
        }

    def _access_token(self, grant: Mapping[str, str]) -> str:
        return token(
            iss=self.issuer,
            aud=grant["resource"],
            sub=grant["person"],
            client_id=grant["client_id"],
            scope=grant.get("scope", ""),
            jti=secrets.token_hex(8),
        )


@contextmanager
def authorization_server() -> Generator[AuthorizationServer]:
    """An authorization server on a loopback address, until the block ends."""

    class Serve(Handler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            match parts.path:
                case "/.well-known/oauth-authorization-server":
                    self.answer_json(200, json.dumps(here.metadata()).encode())
                case "/jwks":
                    self.answer_json(200, key_set(public(rsa_key(), kid="a")))
                case "/authorize":
                    location = here.authorize(dict(parse_qsl(parts.query)))
                    self.answer(302, headers=[("Location", location)])
                case _:
                    self.answer(404)

        def do_POST(self) -> None:
            if self.path == "/register":
                self.answer_json(201, json.dumps(here.register(json.loads(self.sent()))).encode())
            else:
                form = dict(parse_qsl(self.sent().decode()))
                self.answer_json(200, json.dumps(here.token(form)).encode())

        def answer_json(self, status: int, body: bytes) -> None:
            self.answer(status, body, [("Content-Type", "application/json")])

    with listening(Serve) as url:
        here = AuthorizationServer(url)
        yield here
