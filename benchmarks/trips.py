"""How often a request goes to the database, and with how many statements, as the wire shows it."""

import asyncio
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from benchmarks.conversations import answered, asked_of, called
from benchmarks.proxy import Counts, Traffic, proxy
from benchmarks.servers import STORED, Name, serving
from benchmarks.wire import Answer, Connection, Request

_SETTLED = 0.1
"""Seconds after an answer in which a server may still be writing."""

Step = tuple[str, Request]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What one request took."""

    step: str
    name: Name
    counts: Counts


def count(database: str) -> list[Count]:
    """Every kind of request, on warm connections."""
    counted: list[Count] = []
    for name in STORED:
        with proxy(database) as traffic, serving(name, traffic.conninfo) as server:
            counted += [
                Count(step=step, name=name, counts=counts)
                for step, counts in asyncio.run(_count(server.url, traffic, name))
            ]
    return counted


async def _count(url: str, traffic: Traffic, name: Name) -> list[tuple[str, Counts]]:
    connection = await Connection.open(url)
    authority = urlsplit(url).netloc
    counted: dict[str, Counts] = {}
    for _ in range(2):  # the second one is warm
        steps = _steps(ours=name is Name.OURS)
        step, request = next(steps)
        try:
            while True:
                await asyncio.sleep(_SETTLED)
                traffic.taken()
                answer = await connection.ask(request.encoded(authority))
                await asyncio.sleep(_SETTLED)
                counted[step] = traffic.taken()
                step, request = steps.send(answer)
        except StopIteration:
            pass
    connection.close()
    return list(counted.items())


def _steps(*, ours: bool) -> Generator[Step, Answer, None]:
    word = f"word-{time.monotonic_ns()}"
    yield "does not pause", called("echo", {"message": word})
    asked = asked_of((yield "pauses", called("greeter", {})))
    if ours:
        yield "with an answer that does not fit", answered("greeter", {}, asked, 5)
        yield "with no answer", _without_answers(answered("greeter", {}, asked, word))
    settling = answered("greeter", {}, asked, word)
    yield "resumes and finishes", settling
    yield "is repeated", settling
    if ours:
        yield "with other answers", answered("greeter", {}, asked, "other")
        yield "with a forged state", _forged(settling)
    walked: dict[str, Any] = {"size": 1}
    asked = asked_of((yield "pauses", called("walk", walked)))
    yield "resumes, one more superstep", answered("walk", walked, asked, word)
    walked = {"size": 4}
    asked = asked_of((yield "pauses", called("walk", walked)))
    yield "resumes, four more supersteps", answered("walk", walked, asked, word)


def _without_answers(request: Request) -> Request:
    return Request(request.method, {**request.params, "inputResponses": {}})


def _forged(request: Request) -> Request:
    state: str = request.params["requestState"]
    return Request(request.method, {**request.params, "requestState": state[:-1] + "~"})
