"""All settings of a deployment, in one frozen place, from a mapping such as `os.environ`.

`DATABASE_URL` and `REQUEST_STATE_KEYS` have the names that people know; everything else begins
with `INTERMEZZO_`, and a variable that begins so without being a setting is an error: it is a
misspelling. Every problem is reported at once, each with its fix.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import SplitResult, urlsplit

from handler.doors import LOCAL
from handler.sources import ALGORITHMS, GATEWAYS
from handler.sources import problems as identity_problems

PREFIX: Final = "INTERMEZZO_"

_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""RFC 6749, 3.3: it stands between quotes in a header."""

_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
"""A name, or an address of either kind."""

_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}

_URL: Final = re.compile(r"https?://[a-zA-Z0-9._~:/?\[\]@!$&'()*+,;=%-]+")
"""With the characters that RFC 3986 has for a URL, less that of a fragment."""

SECRET: Final = re.compile(r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]*:secret:\S+")
"""A value that is kept in AWS Secrets Manager, by its ARN: `DATABASE_URL` and `REQUEST_STATE_KEYS`
may be one."""

KEY_COMMAND: Final = "python -m handler key"
"""Prints a key fit for `REQUEST_STATE_KEYS`."""


class SettingsError(Exception):
    """Settings are missing or wrong; the text has one line for each."""

    def __init__(self, problems: Collection[str]) -> None:
        super().__init__("\n".join(problems))


def _trimmed(text: str) -> str:
    if not (value := text.strip()):
        raise ValueError("blank")
    return value


def _text(value: str) -> str:
    return value


def _words(value: str) -> tuple[str, ...]:
    words = tuple(word for each in value.split(",") if (word := each.strip()))
    if not words:
        raise ValueError("nothing but separators")
    return words


def _hosts(value: str) -> frozenset[str]:
    return frozenset(word if word == "*" else _host(word.lower()) for word in _words(value))


def _host(word: str) -> str:
    """Its name alone: a request may come to any port."""
    parts = urlsplit(f"//{word}")
    if _place(parts) != word:
        raise ValueError("not a host name")
    return parts.hostname or ""


def _place(parts: SplitResult) -> str:
    """Host and port, written as they were understood."""
    host = parts.hostname or ""
    if not _HOST.fullmatch(host):
        raise ValueError("not a host name")
    port = "" if parts.port is None else f":{parts.port}"
    return (f"[{host}]" if ":" in host else host) + port


def _origins(value: str) -> frozenset[str]:
    return frozenset(word if word == "*" else _origin(word.lower()) for word in _words(value))


def _origin(word: str) -> str:
    """As a browser writes it, which leaves out the usual port."""
    parts = urlsplit(word)
    origin = f"{parts.scheme}://{_place(parts)}"
    if word.removesuffix("/") != origin or parts.port == _PORTS.get(parts.scheme, 0):
        raise ValueError("not an origin")
    return origin


def _whole(value: str) -> int:
    number = int(value)
    if number < 1:
        raise ValueError("not positive")
    return number


def _natural(value: str) -> int:
    number = int(value)
    if number < 0:
        raise ValueError("negative")
    return number


def _seconds(value: str) -> float:
    number = float(value)
    if not 0 < number < 86_400:
        raise ValueError("not between 0 and a day")
    return number


def _url(value: str) -> str:
    if "?" in value:
        raise ValueError("has a query")
    _split(value)
    return value.rstrip("/")


def _secure_url(value: str) -> str:
    """As it is written: an issuer's name is compared to the letter."""
    parts = _split(value)
    if parts.scheme != "https" and parts.hostname not in LOCAL:
        raise ValueError("not a secure URL")
    return value


def _split(value: str) -> SplitResult:
    """An absolute URL that everybody understands alike, without credentials and fragment."""
    parts = urlsplit(value)
    if not _URL.fullmatch(value) or parts.netloc.lower() != _place(parts):
        raise ValueError("not an absolute URL")
    return parts


def _secure_urls(value: str) -> tuple[str, ...]:
    return tuple(_secure_url(word) for word in _words(value))


def _secure_url_or_path(value: str) -> str:
    return _secure_url(value) if "://" in value else value


def _algorithms(value: str) -> tuple[str, ...]:
    words = _words(value)
    if not set(words) <= set(ALGORITHMS):
        raise ValueError("not asymmetric")
    return words


def _scopes(value: str) -> tuple[str, ...]:
    words = _words(value.replace(" ", ","))
    if "offline_access" in words or not all(_SCOPE.fullmatch(word) for word in words):
        raise ValueError("not scopes of a resource")
    return words


def _gateway(value: str) -> str:
    if value not in GATEWAYS:
        raise ValueError("not a kind of gateway")
    return value


def _identifier(value: str) -> str:
    # The schema is quoted wherever it is used; this keeps it readable and free of surprises.
    if not (value.isascii() and value.replace("_", "a").isalnum() and not value[0].isdigit()):
        raise ValueError("not a plain name")
    return value


def _setting(
    variable: str,
    read: Callable[[str], Any],
    shape: str,
    about: str,
    *,
    default: Any = None,
    shown: str = "",
    secret: bool = False,
) -> Any:
    """A field: the variable it is read from, how, what shape that takes, and one line about it."""
    metadata = {"variable": variable, "read": read, "shape": shape, "about": about, "shown": shown}
    return field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a deployment can choose. Read with `from_environ`; the defaults suit a local server."""

    database_url: str | None = _setting(
        "DATABASE_URL",
        _text,
        "a PostgreSQL connection string",
        "The database of paused calls. Unset, `serve` runs one of its own.",
        secret=True,
    )
    request_state_keys: tuple[str, ...] = _setting(
        "REQUEST_STATE_KEYS",
        _words,
        "keys separated by commas",
        f"Sign request states: the first signs, all are accepted. `{KEY_COMMAND}` makes one.",
        default=(),
        secret=True,
    )
    config: Path = _setting(
        "INTERMEZZO_CONFIG",
        Path,
        "a path",
        "The `langgraph.json` whose agents are served.",
        default=Path("langgraph.json"),
    )
    database_schema: str = _setting(
        "INTERMEZZO_DATABASE_SCHEMA",
        _identifier,
        "a name of letters, digits and underscores",
        "The schema that holds all tables.",
        default="public",
    )
    database_pool_size: int = _setting(
        "INTERMEZZO_DATABASE_POOL_SIZE",
        _whole,
        "a whole number from 1",
        "Connections of one process, at most; `serve` has one more, to renew claims.",
        default=16,
    )
    public_url: str = _setting(
        "INTERMEZZO_PUBLIC_URL",
        _url,
        "an absolute URL without credentials, query and fragment",
        "Where clients reach the endpoint. Request states are bound to it.",
        default="",
    )
    allowed_hosts: frozenset[str] | None = _setting(
        "INTERMEZZO_ALLOWED_HOSTS",
        _hosts,
        "host names such as agents.example.com, separated by commas, or *",
        "Names that the endpoint answers to.",
        shown="local ones on `serve`, all on Lambda",
    )
    allowed_origins: frozenset[str] | None = _setting(
        "INTERMEZZO_ALLOWED_ORIGINS",
        _origins,
        "origins such as https://example.com, separated by commas, or *",
        "Web pages that may call. Non-browser clients send no origin and always may.",
        shown="those of the allowed hosts",
    )
    jwt_issuer: str = _setting(
        "INTERMEZZO_JWT_ISSUER",
        _secure_url,
        "an https URL",
        "Who issues the access tokens that the endpoint verifies itself: their `iss`.",
        default="",
    )
    jwt_jwks: str = _setting(
        "INTERMEZZO_JWT_JWKS",
        _secure_url_or_path,
        "an https URL or a path",
        "The issuer's keys, a JSON Web Key Set.",
        default="",
    )
    jwt_algorithms: tuple[str, ...] = _setting(
        "INTERMEZZO_JWT_ALGORITHMS",
        _algorithms,
        "asymmetric algorithms separated by commas, such as RS256, ES256",
        "The algorithms that an access token may be signed with.",
        shown="`RS256, ES256`",
        default=(),
    )
    jwt_scopes: tuple[str, ...] = _setting(
        "INTERMEZZO_JWT_SCOPES",
        _scopes,
        "scopes separated by commas, without offline_access",
        "What every access token must grant.",
        default=(),
    )
    gateway: str = _setting(
        "INTERMEZZO_GATEWAY",
        _gateway,
        f"one of {', '.join(GATEWAYS)}",
        "The kind of AWS authorizer whose word is taken for who is calling.",
        default="",
    )
    gateway_principal_key: str = _setting(
        "INTERMEZZO_GATEWAY_PRINCIPAL_KEY",
        _text,
        "a name",
        "The member of a Lambda authorizer's context that names the caller.",
        shown="`principalId`",
        default="",
    )
    api_keys: tuple[str, ...] = _setting(
        "INTERMEZZO_API_KEYS",
        _words,
        "name:key pairs separated by commas",
        f"Keys for callers who have nothing else. `{KEY_COMMAND}` makes one.",
        default=(),
        secret=True,
    )
    authorization_servers: tuple[str, ...] = _setting(
        "INTERMEZZO_AUTHORIZATION_SERVERS",
        _secure_urls,
        "https URLs separated by commas",
        "Where clients log in, told to them by RFC 9728.",
        shown="`INTERMEZZO_JWT_ISSUER`",
        default=(),
    )
    max_body_bytes: int = _setting(
        "INTERMEZZO_MAX_BODY_BYTES",
        _whole,
        "a whole number from 1",
        "The largest request that is read.",
        default=4 * 1024 * 1024,
    )
    max_result_bytes: int | None = _setting(
        "INTERMEZZO_MAX_RESULT_BYTES",
        _whole,
        "a whole number from 1",
        "The largest result or round of questions. Behind a load balancer it is about 1000000.",
        shown="`6000000` on Lambda, none on `serve`",
    )
    call_timeout: float = _setting(
        "INTERMEZZO_CALL_TIMEOUT",
        _seconds,
        "seconds, more than 0 and less than a day",
        "How long one request may run. Common clients give up after 60.",
        default=55.0,
    )
    max_concurrent_runs: int = _setting(
        "INTERMEZZO_MAX_CONCURRENT_RUNS",
        _whole,
        "a whole number from 1",
        "Calls that one process runs at a time; more wait for their turn.",
        default=32,
    )
    list_ttl_ms: int = _setting(
        "INTERMEZZO_LIST_TTL_MS",
        _natural,
        "milliseconds, a whole number from 0",
        "How long clients may keep the list of tools.",
        default=300_000,
    )
    sweep_interval: float = _setting(
        "INTERMEZZO_SWEEP_INTERVAL",
        _seconds,
        "seconds, more than 0 and less than a day",
        "How often `serve` deletes what has expired.",
        default=60.0,
    )
    server_name: str = _setting(
        "INTERMEZZO_SERVER_NAME",
        _text,
        "a text",
        "The name that clients show.",
        default="intermezzo",
    )

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], *, required: Collection[str] = ()) -> Self:
        """Reads every setting; an empty variable counts as unset, and a blank one as wrong.

        Args:
            environ: the variables.
            required: names of fields that have to be set.

        Raises:
            SettingsError: with every problem of every variable.
        """
        problems = [_unknown(name) for name in sorted(environ) if _is_unknown(name)]
        values: dict[str, Any] = {}
        for each in fields(cls):
            text = environ.get(each.metadata["variable"], "")
            try:
                if text:
                    values[each.name] = each.metadata["read"](_trimmed(text))
                elif each.name in required:
                    problems.append(f"{each.metadata['variable']} is not set; {_fix(each)}")
            except ValueError:
                problems.append(f"{each.metadata['variable']} is {text!r}; {_fix(each)}")
        problems += _key_problems(values.get("request_state_keys", ()))
        problems += identity_problems(values)
        if problems:
            raise SettingsError(problems)
        return cls(**values)


def variables() -> dict[str, Field[Any]]:
    """Every variable that is read, with its field."""
    return {each.metadata["variable"]: each for each in fields(Settings)}


def _is_unknown(name: str) -> bool:
    return name.startswith(PREFIX) and name not in variables()


def _unknown(name: str) -> str:
    import difflib  # only a misspelling needs it

    close = difflib.get_close_matches(name, variables(), n=1)
    meant = f"; did you mean {close[0]}?" if close else "."
    return f"{name} is not a setting{meant} Unset it or correct its name."


def _fix(each: Field[Any]) -> str:
    if each.name == "request_state_keys":
        return f"`{KEY_COMMAND}` makes a key for it."
    return f"set it to {each.metadata['shape']}."


def _key_problems(keys: Sequence[str]) -> list[str]:
    if not keys or SECRET.fullmatch(keys[0]):
        return []
    from core.request_state import KeyRing  # the cold path of a list signs nothing

    try:
        KeyRing(keys)
    except ValueError as error:
        return [f"REQUEST_STATE_KEYS: {error}"]
    return []
