"""The request state: an opaque token that stands for one round of one call.

Pure module. A token is a pure function of key, call, round and what it is bound to (no clock, no
nonce), because the same token must be given again and none is stored:

    base64url(call id, round number) "." base64url(HMAC-SHA256(key, that and the binding))

It is bound to audience, agent, tool, canonical arguments and principal. Tokens are compared as
text: decoding first would accept several spellings of one signature.

Keys form a ring: the first signs, all open. To rotate: add the new key last everywhere, then put it
first, then drop the old one when the longest lifetime (24 hours) has passed.
"""

import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from itsdangerous import Signer
from itsdangerous.encoding import base64_decode, base64_encode

from core import canonical
from core.errors import InvalidRequestState

MINIMUM_KEY_LENGTH = 32
"""Characters. `python -m handler key` prints 43, with 256 bits of entropy."""

_LONGEST_TOKEN = 200


def make_key() -> str:
    """A new signing key: 256 random bits, in characters that any configuration can hold."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What must not change between the rounds of a call."""

    audience: str
    agent: str
    tool: str
    arguments: Mapping[str, Any]
    principal: str

    def as_bytes(self) -> bytes:
        return canonical.dumps(
            [self.audience, self.agent, self.tool, self.arguments, self.principal]
        )


class KeyRing:
    """The signing keys: the first signs, all open.

    Raises:
        ValueError: no key, or one that is too short or used twice; the text says how to make one.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise ValueError("no signing key; `python -m handler key` makes one")
        for position, key in enumerate(keys, 1):
            if len(key) < MINIMUM_KEY_LENGTH or len(set(key)) < MINIMUM_KEY_LENGTH // 4:
                raise ValueError(
                    f"signing key {position} has {len(key)} characters, {len(set(key))} of them"
                    f" different; it needs {MINIMUM_KEY_LENGTH} random ones:"
                    " `python -m handler key` makes such a key"
                )
        if len(set(keys)) != len(keys):
            raise ValueError("a signing key stands twice in the list")
        self._tokens = [_signer(key, b"intermezzo.request-state") for key in keys]
        self._answers = [_signer(key, b"intermezzo.answers") for key in keys]

    def seal(self, call: UUID, number: int, binding: Binding) -> str:
        """The token of a round, under the first key."""
        payload = base64_encode(call.bytes + number.to_bytes(4))
        return _token(self._tokens[0], payload, binding)

    def open(self, token: str, binding: Binding) -> tuple[UUID, int]:
        """The call and round that a token stands for, whichever key of the ring made it.

        Raises:
            InvalidRequestState: anything else than a token we made for this very binding.
        """
        if len(token) > _LONGEST_TOKEN or not token.isascii():
            raise InvalidRequestState("not a token")
        payload = token.partition(".")[0].encode()
        matches = [
            hmac.compare_digest(token, _token(signer, payload, binding)) for signer in self._tokens
        ]
        if not any(matches):
            raise InvalidRequestState("wrong signature or binding")
        data = base64_decode(payload)
        return UUID(bytes=data[:16]), int.from_bytes(data[16:])

    def digest(self, call: UUID, number: int, answers: Mapping[str, Any]) -> dict[str, str]:
        """A keyed digest per answer, under the first key: tells a repeat from another answer."""
        return self._digests(self._answers[0], call, number, answers)

    def same(
        self, stored: Mapping[str, str], call: UUID, number: int, answers: Mapping[str, Any]
    ) -> bool:
        """Whether these answers are the stored ones, whichever key of the ring digested them."""
        return any(
            stored == self._digests(signer, call, number, answers) for signer in self._answers
        )

    @staticmethod
    def _digests(
        signer: Signer, call: UUID, number: int, answers: Mapping[str, Any]
    ) -> dict[str, str]:
        return {
            key: signer.get_signature(canonical.dumps([str(call), number, key, value])).decode()
            for key, value in answers.items()
        }


def _signer(key: str, salt: bytes) -> Signer:
    return Signer(key, salt=salt, key_derivation="hmac", digest_method=sha256)


def _token(signer: Signer, payload: bytes, binding: Binding) -> str:
    signature = signer.get_signature(payload + b"." + binding.as_bytes())
    return (payload + b"." + signature).decode()
