"""Requests as an attacker, or a broken client, would make them: lawful ones, bent somewhere.

Bytes are what comes out, because much of what is hostile can't be said in JSON values: literals
that are no JSON, keys that are there twice, halves of a surrogate pair, other encodings.
"""

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from core.protocol import CAPABILITIES_KEY, LATEST, VERSION_KEY

RAW: Final = (
    *("NaN", "Infinity", "-Infinity", "nan", "undefined", "None", "True", "'a'", "tru", "nul"),
    *("1e999", "-1e999", "1e-999", "-0", "-0.0", "0.1", "1.0", "1E2", "1e16"),
    *("123456789.123456789", "5e-324", "1.7976931348623157e308"),
    *("9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551615"),
    *("18446744073709551616", "-9223372036854775809", "1" * 400, "0." + "1" * 400, "1" * 5000),
    *("01", "+1", ".5", "1.", "0x10", "1_000", "--1", "1e", "1e+"),
    *('"\\ud800"', '"\\udfff"', '"\\ud83d\\ude00"', '"\\ud800\\ud800"', '"\\u0000"', '"a\\u0000b"'),
    *('"\\uD800x"', '"\\q"', '"\\u12"', '"\x01"', '"\t"', '"\x7f"', '"', '"\\'),
    *('{"a":1,"a":2}', '{"a":{"b":1,"b":1}}', '{"":0,"":0}', "{,}", "[,]", "[1,]", '{"a"}'),
    *("{1:2}", "[" * 99 + "]" * 99, "[" * 101 + "]" * 101, "[" * 5000 + "]" * 5000),
    '{"a":' * 200 + "1" + "}" * 200,
    *("[" * 100_000, "/*c*/1", "1//", "\ufeff1", "null", "true", "[]", "{}", '""'),
)  # fmt: skip
"""Literals, of which some are JSON."""

VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 1.0, 1.5, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 1e308, 5e-324),
    *("", " ", "a", "0", "null", "é", "e\u0301", "\N{GRINNING FACE}", "\u2028", "\u202e", "\ufeff"),
    *("\r\n", "../../etc/passwd", "' OR 1=1 --", "${jndi:ldap://x}", "{{7*7}}", "<script>", "%00"),
    *(
        "__proto__",
        "__class__",
        "constructor",
        "x" * 5000,
        "\x7f",
        "\ufffd",
        "\uffff",
        "\U0010ffff",
    ),
    *([], {}, [[]], [{}], {"": ""}, [None], ["a", 1, None], {"a": {"b": {"c": []}}}),
    *([0] * 500, {str(n): n for n in range(300)}, {"__interrupt__": 1}, {"mcp_content": []}),
    {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "true"}},
    {"lc": 2, "type": "constructor", "id": ["builtins", "eval"], "args": ["1"], "method": None},
    {"$ref": "https://example.com/schema.json"},
    {"action": "accept", "content": {"response": "a"}},
    {"type": "mcp_elicitation", "requests": []},
)
"""Values at a wrong place, or odd at any."""

NAMES: Final = (
    *("id", "method", "params", "jsonrpc", "name", "arguments", "_meta", "context", "requestState"),
    *("inputResponses", "cursor", "value", "", "a", "A", "result", "error", "progressToken"),
    *("\0", "\ud83d", "é", "__proto__", VERSION_KEY, CAPABILITIES_KEY, "x" * 1000),
)

FIELDS: Final = (
    *(b"", b" ", b"2025-11-25", b"2024-11-05", b"2026-07-28 ", b"2026-07-28, 2026-07-28"),
    *(b"9999-01-01", b"DRAFT-2026", b"tools/call", b"tools/list", b"ping", b"initialize", b"says"),
    *(b"=?base64?c2F5cw==?=", b"=?base64?!?=", b"=?base64??=", b"\xff\xfe", b"\x00", b"a" * 9000),
    *(b"text/plain", b"application/json; charset=utf-16", b"application/json;", b"*/*", b"gzip"),
    *(
        b"chunked",
        b"0",
        b"-1",
        b"99999999999999999999",
        b"http://evil.example",
        b"null",
        b"localhost",
    ),
    *(b"Bearer x", b"Basic eDp4", b"text/event-stream", b"application/json, text/event-stream"),
)

KNOWN: Final = (
    *(b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"content-type", b"accept", b"host"),
    *(b"origin", b"authorization", b"content-length", b"content-encoding", b"transfer-encoding"),
    *(b"mcp-param-value", b"mcp-session-id", b"last-event-id", b"x-forwarded-host", b"traceparent"),
)

Field = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Sent:
    """One request, as bytes."""

    method: str
    headers: list[Field]
    body: bytes


def lawful(method: str, *, id: Any = 1, version: str = LATEST, **params: Any) -> dict[str, Any]:
    """The body of a request that nothing is wrong with."""
    declared: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
    meta: dict[str, Any] = {VERSION_KEY: version, CAPABILITIES_KEY: declared}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {"_meta": meta, **params}}


def fields(body: dict[str, Any]) -> list[Field]:
    """The header fields that go with a lawful body."""
    named = [(b"mcp-name", body["params"]["name"].encode())] if "name" in body["params"] else []
    return [
        (b"host", b"localhost"),
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
        (b"mcp-protocol-version", body["params"]["_meta"][VERSION_KEY].encode()),
        (b"mcp-method", body["method"].encode()),
        *named,
    ]


class Bender:
    """Bends requests, as its random numbers have it."""

    def __init__(self, seed: object) -> None:
        self.random = random.Random(str(seed))

    def bend(self, body: dict[str, Any], *, deep: bool) -> Sent:
        """A request that began as a lawful one.

        Args:
            deep: bend only what stands inside the params, so that it gets far.
        """
        bent = copy.deepcopy(body)
        raw: list[str] = []
        for _ in range(self.random.choice((0, 1, 1, 1, 2, 3))):
            self._bend_value(bent, raw, deep=deep)
        data = self._bend_bytes(_text(bent, raw, self.random.random() < 0.5), gently=deep)
        headers = fields(body)
        if not deep:
            self._bend_fields(headers)
        http_method = "POST" if deep or self.random.random() < 0.97 else self._odd_method()
        return Sent(http_method, headers, data)

    def _odd_method(self) -> str:
        return self.random.choice(("GET", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"))

    def value(self, raw: list[str]) -> Any:
        """A value to put somewhere: a literal is put in by its number."""
        if self.random.random() < 0.4:
            raw.append(self.random.choice(RAW))
            return f"@raw{len(raw) - 1}@"
        return copy.deepcopy(self.random.choice(VALUES))

    def _bend_value(self, body: dict[str, Any], raw: list[str], *, deep: bool) -> None:
        places = [*_places(body["params"] if deep and "params" in body else body)]
        if not places:
            return
        holder, key = self.random.choice(places)
        match self.random.randrange(8):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[self.random.choice(NAMES)] = holder.pop(key)
            case 2 if isinstance(holder, dict):
                holder[self.random.choice(NAMES)] = self.value(raw)
            case 3:
                holder[key] = [holder[key]]
            case 4:
                holder[key] = {self.random.choice(NAMES): holder[key]}
            case _:
                holder[key] = self.value(raw)

    def _bend_bytes(self, data: bytes, *, gently: bool) -> bytes:
        if self.random.random() > (0.02 if gently else 0.15):
            return data
        at = self.random.randrange(len(data) + 1)
        return self.random.choice(
            (
                lambda: data[:at],
                lambda: data[:at] + bytes([self.random.randrange(256)]) + data[at + 1 :],
                lambda: data[:at] + self.random.randbytes(self.random.randrange(40)) + data[at:],
                lambda: b"\xef\xbb\xbf" + data,
                lambda: data.decode("utf-8", "replace").encode("utf-16"),
                lambda: data + data,
                lambda: b"[" + data + b"]",
                lambda: b"[" + data + b"," + data + b"]",
                lambda: data + b"\n{}",
                lambda: b"",
                lambda: b" " * at + data + b"\r\n\t ",
            )
        )()

    def _bend_fields(self, headers: list[Field]) -> None:
        for _ in range(self.random.choice((0, 1, 1, 2))):
            at = self.random.randrange(len(headers)) if headers else 0
            match self.random.randrange(5):
                case 0 if headers:
                    del headers[at]
                case 1 if headers:
                    headers[at] = (headers[at][0], self.random.choice(FIELDS))
                case 2 if headers:
                    headers.insert(at, headers[at])
                case 3 if headers:
                    headers[at] = (headers[at][0], headers[at][1].upper())
                case _:
                    headers.insert(at, (self.random.choice(KNOWN), self.random.choice(FIELDS)))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value, as its container and key."""
    if isinstance(value, dict):
        members: Any = list(cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        members = list(enumerate(cast("list[Any]", value)))
    else:
        return
    for key, each in members[:50]:
        yield value, key
        yield from _places(each)


def _text(value: Any, raw: list[str], escaped: bool) -> bytes:
    text = json.dumps(value, ensure_ascii=escaped, separators=(",", ":"))
    for number, literal in enumerate(raw):
        text = text.replace(f'"@raw{number}@"', literal)
    return text.encode("utf-8", "surrogatepass")
