"""One canonical form of JSON, for digests and for what a request state is bound to.

Pure module. Canonical: keys sorted, separators `,` and `:`, UTF-8 with non-ASCII characters
unescaped. Two texts that parse to equal values, key order aside, have one form; `1` and `1.0` do
not.
"""

import hashlib
import json
from typing import Any, Final

_ENCODER: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def dumps(value: Any) -> bytes:
    """The canonical bytes of a JSON value.

    Raises:
        ValueError: a float without a JSON literal (NaN, an infinity), or a lone surrogate.
        TypeError: not JSON.
    """
    return _ENCODER.encode(value).encode()


def digest(*parts: Any) -> str:
    """The first 16 hex digits of SHA-256 over the JSON array of the parts: a question's key."""
    return hashlib.sha256(dumps(list(parts))).hexdigest()[:16]
