"""A Secrets Manager of the tests' own: it answers signed requests from what a test puts in it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.listening import Handler, listening

ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:"


@dataclass(kw_only=True)
class Vault:
    """The secrets by ARN, and the headers of each request that came.

    Attributes:
        refuses: the kind of error that every request gets, when there is one.
        answers: the body of every answer, when it is not what it should be.
        raw: what comes in the place of HTTP, when something does.
        credentials: what a container's credentials are asked with, once they are.
    """

    url: str
    secrets: dict[str, str] = field(default_factory=dict[str, str])
    requests: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    refuses: str = ""
    credentials: str = ""
    answers: Any = None
    raw: bytes = b""

    @property
    def environ(self) -> dict[str, str]:
        """The variables of a function that reads from it."""
        return {
            "AWS_ENDPOINT_URL_SECRETS_MANAGER": self.url,
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            "AWS_SESSION_TOKEN": "a session",
        }

    def keep(self, name: str, value: str) -> str:
        """Puts a secret in, and returns its ARN."""
        self.secrets[f"{ARN}{name}-AbCdEf"] = value
        return f"{ARN}{name}-AbCdEf"

    def answer(self, body: Any) -> tuple[int, Any]:
        if self.answers is not None:
            return 400 if self.refuses else 200, self.answers
        if self.refuses:
            return 400, {"__type": self.refuses, "Message": "no"}
        if body["SecretId"] not in self.secrets:
            return 400, {"__type": "ResourceNotFoundException", "Message": "no"}
        return 200, {"ARN": body["SecretId"], "SecretString": self.secrets[body["SecretId"]]}


@pytest.fixture
def vault() -> Iterator[Vault]:
    class Serve(Handler):
        def do_POST(self) -> None:
            here.requests.append(dict(self.headers.items()))
            self._send(*here.answer(json.loads(self.sent())))

        def do_GET(self) -> None:
            here.credentials = self.headers["Authorization"]
            self._send(200, {"AccessKeyId": "ASIA", "SecretAccessKey": "key", "Token": "token"})

        def _send(self, status: int, content: Any) -> None:
            if here.raw:
                self.wfile.write(here.raw)
            else:
                self.answer(status, json.dumps(content).encode())

    with listening(Serve) as url:
        here = Vault(url=url)
        yield here


@pytest.fixture
def aws(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """The vault, with this process as the function that reads from it."""
    for name, value in vault.environ.items():
        monkeypatch.setenv(name, value)
    return vault
