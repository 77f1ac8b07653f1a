"""An issuer of access tokens: keys, the tokens that they sign, and the key set over HTTP."""

import base64
import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

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

    class Serve(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            here.fetches.append(self.path)
            here.answers.wait()
            if here.raw:
                self.wfile.write(here.raw)
                return
            self.send_response(here.status)
            if here.status // 100 == 3:
                self.send_header("Location", f"{here.url}/elsewhere")
            self.send_header("Content-Length", str(len(here.body)))
            self.end_headers()
            self.wfile.write(here.body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Serve)
    here = Published(f"http://127.0.0.1:{server.server_port}/jwks", body)
    here.answers.set()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield here
    finally:
        here.answers.set()
        server.shutdown()
        thread.join(10)
        server.server_close()
