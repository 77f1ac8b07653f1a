"""A relay: elicitation requests that an agent passes on to its own client.

Pure module. Each request is checked as a question of our own would be, and only then passed on; the
answer goes to the agent as it came, a decline and a cancel included, so the agent decides what
happens next. We never open a URL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, TypeAlias, cast
from urllib.parse import SplitResult, urlsplit

from core import forms
from core.answers import Answer, Given
from core.cannot_ask import CannotAsk

TYPE: Final = "mcp_elicitation"

LONGEST_URL: Final = 4096

# What stands in a URL (RFC 3986): no space, no control, no backslash (browsers read it as a slash),
# and nothing beyond ASCII, where one host can look like another.
_URL: Final = re.compile(r"[!-\[\]-~]+")
_HOST: Final = re.compile(r"[a-z0-9._-]*[a-z0-9][a-z0-9._-]*")
_IPV6: Final = re.compile(r"[0-9a-f:.]*:[0-9a-f:.]*")
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayedForm:
    """A form of the agent's."""

    message: str
    form: forms.Form

    mode: ClassVar = "form"

    def params(self) -> dict[str, Any]:
        return {"message": self.message, "mode": "form", "requestedSchema": self.form.requested}

    def read(self, answer: Answer) -> Given:
        """The answer as the agent gets it.

        Raises:
            Unfit: accepted content does not fit the form.
        """
        passed: dict[str, Any] = {"action": answer.action}
        if answer.action == "accept":
            passed["content"] = self.form.content(answer.content)
        return Given(value=passed, record=passed)

    def as_json(self) -> dict[str, Any]:
        return {"message": self.message, "form": self.form.as_json()}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        return cls(message=entry["message"], form=forms.Form.from_json(entry["form"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayedUrl:
    """A page that the agent sends the user to. An `accept` is consent to open it, no more."""

    message: str
    url: str

    mode: ClassVar = "url"

    def params(self) -> dict[str, Any]:
        return {"message": self.message, "mode": "url", "url": self.url}

    def read(self, answer: Answer) -> Given:
        passed = {"action": answer.action}
        return Given(value=passed, record=passed)

    def as_json(self) -> dict[str, Any]:
        return {"message": self.message, "url": self.url}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        return cls(message=entry["message"], url=entry["url"])


Relayed: TypeAlias = RelayedForm | RelayedUrl


def relayed(value: Mapping[str, Any]) -> dict[str, Relayed]:
    """The questions of an interrupt value of type `mcp_elicitation`, by the agent's own keys.

    Args:
        value: plain JSON. `requests` is a list, or an object that maps each key to its request; a
            request in an object may leave out its mode, and is a form then.

    Raises:
        CannotAsk: a request breaks the rules for keys, forms or URLs.
    """
    requests = value.get("requests")
    if isinstance(requests, dict):
        named = cast("dict[str, Any]", requests)
        questions = {key: _question(key, request, "form") for key, request in named.items()}
    elif isinstance(requests, list):
        questions = _listed(cast("list[Any]", requests))
    else:
        raise CannotAsk('Its "requests" are neither a list nor an object.')
    if not questions:
        raise CannotAsk('Its "requests" are empty.')
    return questions


def check_url(url: Any, key: str) -> str:
    """A URL that a person may be sent to.

    Raises:
        CannotAsk: it is not HTTPS (or HTTP to this very machine) with a host, has a user name or
            password, or is too long.
    """
    if not isinstance(url, str) or not _URL.fullmatch(url):
        raise _bad_url(key, "is not a URL; percent-encode what is not ASCII")
    if len(url) > LONGEST_URL:
        raise _bad_url(key, f"is longer than {LONGEST_URL} characters")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _bad_url(key, "is not a URL") from None
    if "@" in parts.netloc:
        raise _bad_url(key, "contains a user name or password")
    pattern = _IPV6 if "[" in parts.netloc else _HOST
    if not host or not pattern.fullmatch(host):
        raise _bad_url(key, "names no host")
    if not _is_safe(parts, host):
        raise _bad_url(key, "is not HTTPS, nor HTTP on localhost, 127.0.0.1 or [::1]")
    return url


def _listed(requests: list[Any]) -> dict[str, Relayed]:
    questions: dict[str, Relayed] = {}
    for request in requests:
        key = cast("dict[str, Any]", request).get("key") if isinstance(request, dict) else None
        if not isinstance(key, str):
            raise CannotAsk('A request has no "key", under which its answer would come back.')
        if key in questions:
            raise CannotAsk(f'Two requests have the key "{key}", and one answer would be lost.')
        questions[key] = _question(key, request, None)
    return questions


def _question(key: str, request: Any, default_mode: str | None) -> Relayed:
    if "\0" in key:  # a PostgreSQL text, which a round's keys are kept as, can't hold it
        raise CannotAsk("The key of a request holds the character NUL.")
    if not isinstance(request, dict):
        raise CannotAsk(f'The request "{key}" is not an object.')
    members = cast("dict[str, Any]", request)
    message = members.get("message")
    if not isinstance(message, str):
        raise CannotAsk(f'The request "{key}" has no "message" to show.')
    mode = members.get("mode", default_mode)
    if mode == "url":
        return RelayedUrl(message=message, url=check_url(members.get("url"), key))
    if mode != "form":
        raise CannotAsk(f'The "mode" of the request "{key}" is neither "form" nor "url".')
    schema = members.get("requestedSchema", members.get("requested_schema"))
    if not isinstance(schema, dict):
        raise CannotAsk(f'The request "{key}" has no "requested_schema".')
    form = forms.build(cast("dict[str, Any]", schema), wrap=False)
    return RelayedForm(message=message, form=form)


def _is_safe(parts: SplitResult, host: str) -> bool:
    return parts.scheme == "https" or (parts.scheme == "http" and host in _LOCAL)


def _bad_url(key: str, reason: str) -> CannotAsk:
    return CannotAsk(f'The URL of the request "{key}" {reason}.')
