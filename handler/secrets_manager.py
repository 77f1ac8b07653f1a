"""AWS Secrets Manager: the values of settings that name a secret instead of holding it.

    DATABASE_URL=arn:aws:secretsmanager:eu-west-1:123456789012:secret:database-AbCdEf

A secret is read when its value is first needed, so that a list never waits for one, and again once
it is no longer fresh, so that it can be rotated. That takes one signed request (Signature Version
4), which is written out here: on a cold start, importing the SDK would take longer than everything
else.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPException
from typing import Any, Final, cast
from urllib.error import HTTPError
from urllib.request import Request

from handler.fetch import fetch
from handler.settings import SettingsError

FRESH: Final = 300.0
"""Seconds for which a secret is as good as read."""

RECENT: Final = 5.0
"""Seconds for which it is so to whoever connects with it: what was rotated lets nobody in."""

_SECONDS: Final = 3.0
"""For an answer. Where there is no way to Secrets Manager, there is none."""

_MOST_BYTES: Final = 512 * 1024
"""Of an answer. A secret has no more than an eighth of that."""

_SERVICE: Final = "secretsmanager"
_log: Final = logging.getLogger("intermezzo")


class SecretError(SettingsError):
    """A secret can't be read; the text says which, and what to do."""

    def __init__(self, problem: str) -> None:
        super().__init__([problem])


class Secrets:
    """The secrets that a process has read.

    Args:
        environ: where AWS puts the credentials of the process.
        clock: seconds that never go back.
    """

    def __init__(
        self, environ: Mapping[str, str], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._environ = environ
        self._clock = clock
        self._known: dict[str, _Known] = {}
        # Of its own: nodes at work must not keep a secret from being read.
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="secrets")

    def value(self, reference: str, *, fresh: float) -> str:
        """The value of a secret, by its ARN. What can't be read again stays as it was.

        Args:
            fresh: seconds for which a value that was read is good enough.

        Raises:
            SecretError: it can't be read.
        """
        known = self._known.get(reference)
        if known is not None and self._is_fresh(known, fresh):
            return known.value
        if known is not None:  # one reads; the others go on with what is known
            self._known[reference] = _Known(known.value, self._clock())
        try:
            value = read(reference, self._environ)
        except SecretError as error:
            if known is None:
                raise
            _log.warning("a secret stays as it was: %s", error)
            return known.value
        self._known[reference] = _Known(value, self._clock())
        return value

    async def read(self, reference: str) -> str:
        """The same, where the event loop may not wait and `FRESH` is good enough.

        Raises:
            SecretError: it can't be read.
        """
        known = self._known.get(reference)
        if known is not None and self._is_fresh(known, FRESH):
            return known.value
        loop = asyncio.get_running_loop()
        work = partial(self.value, reference, fresh=FRESH)
        return await loop.run_in_executor(self._reader, work)

    def _is_fresh(self, known: "_Known", fresh: float) -> bool:
        return self._clock() - known.at < fresh


@dataclass(frozen=True, slots=True)
class _Known:
    """What a secret was when it was read."""

    value: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """By whom a request is signed."""

    key_id: str
    key: str
    token: str = ""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Credentials":
        """Those of the function's role, which with SnapStart are behind an address.

        Raises:
            SecretError: there are none.
        """
        address = environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        try:
            if address:
                token = environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
                given = _answer(Request(address, headers={"Authorization": token}))
                return cls(
                    key_id=_text(given, "AccessKeyId"),
                    key=_text(given, "SecretAccessKey"),
                    token=_text(given, "Token"),
                )
            return cls(
                key_id=environ["AWS_ACCESS_KEY_ID"],
                key=environ["AWS_SECRET_ACCESS_KEY"],
                token=environ.get("AWS_SESSION_TOKEN", ""),
            )
        except (KeyError, OSError, ValueError) as error:
            raise SecretError("There are no AWS credentials to read secrets with.") from error


def read(arn: str, environ: Mapping[str, str]) -> str:
    """The current value of a secret.

    Raises:
        SecretError: it can't be read.
    """
    partition, region = arn.split(":")[1:4:2]
    domain = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
    # The variable by which AWS's own tools are sent elsewhere.
    url = environ.get("AWS_ENDPOINT_URL_SECRETS_MANAGER") or f"https://{_SERVICE}.{region}.{domain}"
    body = json.dumps({"SecretId": arn}).encode()
    headers = {
        "Content-Type": "application/x-amz-json-1.1",
        "Host": url.partition("://")[2].rstrip("/"),
        "X-Amz-Target": f"{_SERVICE}.GetSecretValue",
    }
    signed = sign(headers, body, Credentials.of(environ), region, datetime.now(UTC))
    try:
        answer = _answer(Request(url, data=body, headers=signed, method="POST"))
        return _text(answer, "SecretString")
    except HTTPError as error:
        raise SecretError(f"The secret {arn} can't be read: {_kind(error)}.") from error
    except (KeyError, ValueError) as error:
        raise SecretError(f"The secret {arn} holds no text.") from error
    except OSError as error:
        raise SecretError(
            f"The secret {arn} can't be read: Secrets Manager does not answer. From a VPC it is"
            " reached by a NAT gateway or an endpoint of its own."
        ) from error


def sign(
    headers: Mapping[str, str], body: bytes, credentials: Credentials, region: str, now: datetime
) -> dict[str, str]:
    """The headers of a POST to the root of the service, with the date and the signature."""
    time, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    headers = {**headers, "X-Amz-Date": time}
    if credentials.token:
        headers["X-Amz-Security-Token"] = credentials.token
    lines = sorted(f"{name.lower()}:{value}" for name, value in headers.items())
    names = ";".join(line.partition(":")[0] for line in lines)
    request = "\n".join(("POST", "/", "", *lines, "", names, hashlib.sha256(body).hexdigest()))
    scope = f"{day}/{region}/{_SERVICE}/aws4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{credentials.key}".encode()
    for part in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}"):
        key = hmac.digest(key, part.encode(), "sha256")
    headers["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.key_id}/{scope},"
        f" SignedHeaders={names}, Signature={key.hex()}"
    )
    return headers


def _answer(request: Request) -> dict[str, Any]:
    return _object(fetch(request, patience=_SECONDS, most=_MOST_BYTES))


def _object(data: bytes) -> dict[str, Any]:
    value = json.loads(data)
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    return cast("dict[str, Any]", value)


def _text(members: Mapping[str, Any], name: str) -> str:
    if not isinstance(value := members[name], str):
        raise ValueError("no text")
    return value


def _kind(error: HTTPError) -> str:
    """What Secrets Manager calls the problem, such as AccessDeniedException."""
    try:
        return _text(_object(error.read(_MOST_BYTES)), "__type").rpartition("#")[2]
    except (KeyError, ValueError, OSError, HTTPException):
        return f"HTTP {error.code}"
