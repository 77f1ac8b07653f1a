"""The Lambda entry points in this process, and calls that their gateway hands them."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handler.lambdas import Process
from tests.artifacts import environ
from tests.gateways import http_api, request
from tests.served import EXAMPLES

GREETER: dict[str, Any] = {"name": "greeter", "arguments": {}}
ADA = {"user_name": {"action": "accept", "content": {"name": "Ada"}}}
"""What answers the greeter's question."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the platform says of an invocation."""

    seconds: float = 29.0

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


@contextmanager
def starting(database: str, *, config: Path = EXAMPLES, **variables: str) -> Generator[Process]:
    """An execution environment that has handled nothing yet, until the block ends."""
    process = Process(environ(database, config=config, **variables))
    try:
        yield process
    finally:
        process.close()


def result(answer: dict[str, Any]) -> dict[str, Any]:
    """The result in an answer that must be one."""
    assert answer["statusCode"] == 200, answer
    assert answer.get("isBase64Encoded", False) is False
    return json.loads(answer["body"])["result"]


def call(process: Process, **params: Any) -> dict[str, Any]:
    """The result of a call of the greeter."""
    event = http_api(request("tools/call", **GREETER, **params))
    return result(process.endpoint(event, Context()))


def two_rounds(process: Process) -> str:
    """A whole call; returns what the agent says at its end."""
    asked = call(process)
    ended = call(process, inputResponses=ADA, requestState=asked["requestState"])
    return ended["content"][0]["text"]
