"""The keys of an issuer: read from a URL or a file, kept, and read again when one is missing.

However many tokens name keys that nobody knows, the source is asked once in a while and by one
request at a time. A source that is down is not missed for as long as its keys may be kept.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from jwt import PyJWK

FRESH: Final = 600.0
"""Seconds after which keys are read again, so that one that was withdrawn is forgotten."""

KEPT: Final = 7_200.0
"""Seconds that keys are used without being confirmed, while their source can't be read."""

PAUSE: Final = 30.0
"""Seconds between two readings for the sake of unknown keys."""

RETRY: Final = 5.0
"""Seconds after which a source that could not be read is asked again."""

PATIENCE: Final = 5.0
"""Seconds that one reading may take."""

MOST_BYTES: Final = 512 * 1024
MOST_KEYS: Final = 100

KEY_TYPES: Final[Mapping[str, tuple[str, str | None]]] = {
    **{f"RS{bits}": ("RSA", None) for bits in (256, 384, 512)},
    **{f"PS{bits}": ("RSA", None) for bits in (256, 384, 512)},
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""The type and curve of an algorithm's keys."""

_PUBLIC: Final = ("kty", "crv", "n", "e", "x", "y", "kid")

_log: Final = logging.getLogger("intermezzo")

Read = Callable[[], Awaitable[bytes]]


class Unreachable(Exception):
    """There are no keys to go by: they could not be read, or not for too long."""


class Jwks:
    """The keys of one issuer.

    Args:
        read: gets the key set; what it raises but OSError, TimeoutError and ValueError is a fault.
        now: seconds of a clock that only goes forward.
    """

    def __init__(self, read: Read, *, now: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._now = now
        self._keys: list[dict[str, Any]] = []
        self._made: dict[tuple[str | None, str], PyJWK | None] = {}
        self._confirmed: float | None = None
        self._next = now()
        self._lock = asyncio.Lock()

    async def key(self, identifier: str | None, algorithm: str) -> "PyJWK | None":
        """The key of that id for that algorithm; without an id, the only one that fits.

        Raises:
            Unreachable: there are no keys to go by.
        """
        found = self._find(identifier, algorithm)
        if found is None or (self._age() > FRESH and not self._lock.locked()):
            await self._refresh()
            found = self._find(identifier, algorithm)
        if self._age() > KEPT:
            raise Unreachable
        return found

    def _age(self) -> float:
        return float("inf") if self._confirmed is None else self._now() - self._confirmed

    async def _refresh(self) -> None:
        async with self._lock:
            if self._now() < self._next:
                return
            try:
                async with asyncio.timeout(PATIENCE):
                    keys = parse(await self._read())
            except (OSError, TimeoutError, ValueError) as error:
                _log.warning("the issuer's keys can't be read: %s", type(error).__name__)
                self._next = self._now() + RETRY  # from now on: it may have taken its time
                return
            self._keys, self._made = keys, {}
            self._confirmed, self._next = self._now(), self._now() + PAUSE

    def _find(self, identifier: str | None, algorithm: str) -> "PyJWK | None":
        wanted = (identifier, algorithm)
        if wanted in self._made:
            return self._made[wanted]
        fitting = [key for key in self._keys if _fits(key, identifier, algorithm)]
        if len(fitting) != 1:
            return None  # not kept: ids that do not exist are without number
        found = self._made[wanted] = _made(fitting[0], algorithm)
        return found


def parse(data: bytes) -> list[dict[str, Any]]:
    """The keys of a key set that could verify anything.

    Raises:
        ValueError: it is no key set, or there is none.
    """
    try:
        document = json.loads(data)
    except RecursionError:
        raise ValueError("not JSON") from None
    listed = cast("dict[str, Any]", document).get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("no key set")
    keys = [cast("dict[str, Any]", key) for key in cast("list[Any]", listed) if _verifies(key)]
    if not keys or len(keys) > MOST_KEYS:
        raise ValueError("no usable keys")
    return keys


def from_file(path: Path) -> Read:
    """Reads a key set from a file."""

    def contents() -> bytes:
        with path.open("rb") as file:
            return _bounded(file.read(MOST_BYTES + 1))

    return _threaded(contents)


def from_url(url: str) -> Read:
    """Reads a key set over HTTP. A redirect is not followed: the operator named the place."""

    def answer() -> bytes:
        from urllib.request import Request  # where no key is read, not needed

        from handler.fetch import fetch

        return fetch(Request(url), patience=PATIENCE, most=MOST_BYTES)

    return _threaded(answer)


def _threaded(work: Callable[[], bytes]) -> Read:
    # Of its own: nodes at work must not keep keys from being read.
    reader = ThreadPoolExecutor(2, thread_name_prefix="keys")

    async def read() -> bytes:
        return await asyncio.get_running_loop().run_in_executor(reader, work)

    return read


def _bounded(data: bytes) -> bytes:
    if len(data) > MOST_BYTES:
        raise ValueError("too large")
    return data


def _verifies(key: object) -> bool:
    if not isinstance(key, dict):
        return False
    members = cast("dict[str, Any]", key)
    operations = members.get("key_ops", ["verify"])
    return (
        members.get("kty") in [kty for kty, _ in KEY_TYPES.values()]
        and members.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
    )


def _fits(key: Mapping[str, Any], identifier: str | None, algorithm: str) -> bool:
    kty, curve = KEY_TYPES[algorithm]
    return (
        (identifier is None or key.get("kid") == identifier)
        and key["kty"] == kty
        and (curve is None or key.get("crv") == curve)
        and key.get("alg", algorithm) == algorithm
    )


def _made(key: Mapping[str, Any], algorithm: str) -> "PyJWK | None":
    from jwt import PyJWK, PyJWTError  # an optional part, and dear: only a token needs it

    try:
        # Of a private key that somebody published, only the public half.
        return PyJWK({name: key[name] for name in _PUBLIC if name in key}, algorithm)
    except (PyJWTError, ValueError, TypeError, KeyError) as error:
        _log.warning("a key of the issuer is of no use: %s", type(error).__name__)
        return None
