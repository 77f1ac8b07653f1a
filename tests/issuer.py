"""An issuer of access tokens: keys, the tokens that they sign, and the key set over HTTP."""

import base64
import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.listening import Handler, listening

NAME: Final = "https://login.example.com/"
RESOURCE: Final = "https://mcp.example.com/mcp"


@cache
def rsa_key(number: int = 0, bits: int = 2048) -> RSAPrivateKey:
    """A key that is the same for every test that asks for it."""
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


@cache
def ec_key() -> EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def public(key: RSAPrivateKey | EllipticCurvePrivateKey, **members: Any) -> dict[str, Any]:
    """The public half of a key, as a JSON Web Key."""
    if isinstance(key, RSAPrivateKey):
        made = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        made = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    made.pop("key_ops", None)
    return {**made, **members}


def key_set(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


def claims(**changes: Any) -> dict[str, Any]:
    """The claims of a good token; None takes one away."""
    good: dict[str, Any] = {
        "iss": NAME,
        "aud": RESOURCE,
        "sub": "ada",
        "client_id": "desktop",
        "exp": int(time.time()) + 600,
    }
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def token(
    key: RSAPrivateKey | EllipticCurvePrivateKey | None = None,
    *,
    kid: str | None = "a",
    algorithm: str = "RS256",
    header: dict[str, Any] | None = None,
    **changes: Any,
) -> str:
    """An access token; keywords change its claims."""
    headers = {**({"kid": kid} if kid else {}), **(header or {})}
    return jwt.encode(claims(**changes), key or rsa_key(), algorithm=algorithm, headers=headers)


def unsigned(header: dict[str, Any], payload: dict[str, Any], signature: bytes = b"") -> str:
    """A token that no library would make."""
    parts = [json.dumps(part).encode() for part in (header, payload)]
    return ".".join(_base64(part) for part in (*parts, signature))


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Published:
    """A key set at a URL. Setting `status` breaks it; clearing `answers` makes it hang, and `raw`
    is what it says in the place of HTTP."""

    url: str
    body: bytes
    status: int = 200
    fetches: list[str] = field(default_factory=list[str])
    answers: threading.Event = field(default_factory=threading.Event)
    raw: bytes = b""


@contextmanager
def published(body: bytes) -> Generator[Published]:
    """Serves a key set until the block ends."""

    class Serve(Handler):
        def do_GET(self) -> None:
            here.fetches.append(self.path)
            here.answers.wait()
            if here.raw:
                self.wfile.write(here.raw)
            else:
                moved = [("Location", f"{here.url}/elsewhere")] if here.status // 100 == 3 else []
                self.answer(here.status, here.body, moved)

    with listening(Serve) as root:
        here = Published(f"{root}/jwks", body)
        here.answers.set()
        try:
            yield here
        finally:
            here.answers.set()
