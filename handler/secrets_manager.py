"""AWS Secrets Manager: the values of settings that name a secret instead of holding it.

    DATABASE_URL=arn:aws:secretsmanager:eu-west-1:123456789012:secret:database-AbCdEf

A secret is read when its value is first needed, so that a list never waits for one, and again now
and then, so that it can be rotated. That takes one signed request (Signature Version 4), which is
written out here: on a cold start, importing the SDK would take longer than everything else.
"""

import hashlib
import hmac
import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from handler.settings import SettingsError

FRESH: Final = 300.0
"""Seconds for which a secret is as good as read."""

_SECONDS: Final = 3.0
"""For an answer. Where there is no way to Secrets Manager, there is none."""

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
        self._values: dict[str, str] = {}
        self._read = 0.0

    def value(self, reference: str) -> str:
        """The value of a secret, by its ARN.

        Raises:
            SecretError: it can't be read.
        """
        if reference not in self._values:
            self._values[reference] = read(reference, self._environ)
            self._read = self._clock()
        return self._values[reference]

    def changed(self) -> bool:
        """Whether a value that was given out is another one now. It looks now and then; what can't
        be read then stays as it was."""
        if not self._values or self._clock() - self._read < FRESH:
            return False
        self._read = self._clock()
        try:
            now = {reference: read(reference, self._environ) for reference in self._values}
        except SecretError as error:
            _log.warning("secrets stay as they were: %s", error)
            return False
        before, self._values = self._values, now
        return now != before


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
                given = _answer(urllib.request.Request(address, headers={"Authorization": token}))
                return cls(
                    key_id=given["AccessKeyId"], key=given["SecretAccessKey"], token=given["Token"]
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
        answer = _answer(urllib.request.Request(url, data=body, headers=signed, method="POST"))
        return answer["SecretString"]
    except urllib.error.HTTPError as error:
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


def _answer(request: urllib.request.Request) -> dict[str, Any]:
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
        return json.loads(answer.read())


def _kind(error: urllib.error.HTTPError) -> str:
    """What Secrets Manager calls the problem, such as AccessDeniedException."""
    try:
        return json.loads(error.read())["__type"].rpartition("#")[2]
    except (KeyError, ValueError, OSError):
        return f"HTTP {error.code}"
