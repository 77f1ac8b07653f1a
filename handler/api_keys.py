"""API keys from a setting, for those who have nothing else: each key has a name.

    INTERMEZZO_API_KEYS="ada:…43 characters…,robot:…43 characters…"

A key comes in `X-API-Key`, or as a bearer token. It is compared as a digest, with every key of the
list and in constant time, so that neither its bytes nor its place show. The name is the caller, and
the log tells it; two keys of one name are one caller, which is how a key is replaced.
"""

import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Final

from core import account
from core.caller import Caller
from handler.challenge import Challenge
from handler.credentials import KEY_HEADER, credential
from handler.principal import principal
from handler.users import User, configurable
from handler.visit import Visit

SHORTEST: Final = 32
"""Characters. `python -m handler key` prints 43, with 256 bits of entropy."""

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KEY: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")


class ApiKeys:
    """Identifies callers by the keys that the deployment gave them.

    Args:
        entries: `name:key` each.
    """

    def __init__(self, entries: Sequence[str], *, challenge: Challenge) -> None:
        pairs = [entry.partition(":") for entry in entries]
        self._keys = [(name, _digest(key)) for name, _, key in pairs]
        self._challenge = challenge

    async def identify(self, visit: Visit) -> Caller:
        """The name of the request's key.

        Raises:
            HttpRefusal: there is no key, or nobody has it.
        """
        given = _digest(credential(visit.headers, self._challenge, header=KEY_HEADER))
        matching = [name for name, key in self._keys if hmac.compare_digest(given, key)]
        if not matching:
            raise self._challenge.invalid("an unknown API key")
        account.current().key = name = matching[0]
        return Caller(
            principal=principal("api-key", name), configurable=configurable(User.of(name), ())
        )


def problems(entries: Sequence[str]) -> list[str]:
    """What is wrong with the entries; a key is never shown."""
    found: list[str] = []
    keys: set[str] = set()
    for position, entry in enumerate(entries, 1):
        name, _, key = entry.partition(":")
        if not _NAME.fullmatch(name) or not _KEY.fullmatch(key):
            found.append(f"entry {position} is not name:key, such as ada:…; write it so")
        elif len(key) < SHORTEST or len(set(key)) < SHORTEST // 4:
            found.append(
                f"the key of {name} needs {SHORTEST} random characters: `python -m handler key`"
                " makes such a key"
            )
        elif key in keys:
            found.append(f"the key of {name} stands twice in the list; give each its own")
        keys.add(key)
    return found


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
