"""The clients of a soak: each holds one call after another, and never gives up on an answer."""

import asyncio
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.calling import retry
from tests.served import message
from tests.soak.servers import Servers

PATIENCE = 90.0
"""Seconds after which a call without an answer is lost."""


class Lost(Exception):
    """A call got no answer, or another one than its own."""


@dataclass(slots=True)
class Clients:
    """What the clients were told, all together.

    Attributes:
        ended: the calls that ended as they should.
        lost: what became of the others.
        times: how long each answer took, resent requests included, in seconds.
        told: how often a request had to be sent again, by the reason.
    """

    servers: Servers
    notes: str
    http: httpx.AsyncClient
    stop: bool = False
    ended: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    times: list[float] = field(default_factory=list[float])
    told: Counter[str] = field(default_factory=Counter[str])

    async def work(self, name: str) -> None:
        """Hold calls until it is over."""
        number = 0
        while not self.stop:
            number += 1
            call = f"{name}.{number}"
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._converse(call)
            except (Lost, TimeoutError, AssertionError, KeyError) as error:
                self.lost.append(f"{call}: {type(error).__name__} {error}")
            else:
                self.ended.append(call)

    async def _converse(self, call: str) -> None:
        first = await self._answer(call)
        second = await self._answered(call, first, "1")
        result = await self._answered(call, second, "2")
        told = json.loads(result["content"][0]["text"])["answers"]
        if told != ["first=1", "charge", "second=2", "ship"]:
            raise Lost(f"the result is {told}")
        if random.random() < 0.2:
            again = await self._answered(call, first, "1")
            if again["inputRequests"] != second["inputRequests"]:
                raise Lost("a repeat of round 1 was told something else")
        if random.random() < 0.05:
            await self._refused(call, first)

    async def _answered(self, call: str, asked: dict[str, Any], text: str) -> dict[str, Any]:
        """What a round leads to; now and then it is answered several times at once."""
        copies = random.choice((1, 1, 1, 2, 4))
        results = await asyncio.gather(
            *(self._answer(call, **retry(asked, response=text)) for _ in range(copies))
        )
        for each in results[1:]:
            if each.get("content") != results[0].get("content") or each.get(
                "inputRequests"
            ) != results[0].get("inputRequests"):
                raise Lost("two copies were told different things")
        return results[0]

    async def _answer(self, call: str, **params: Any) -> dict[str, Any]:
        """The result of a request, however often it has to be sent."""
        started = time.monotonic()
        while True:
            message = await self._sent(call, params)
            if message is None:
                continue
            if "result" in message:
                self.times.append(time.monotonic() - started)
                return message["result"]
            if message["error"]["code"] != 1001:
                raise Lost(str(message["error"]))
            self.told["told to come back"] += 1
            await asyncio.sleep(message["error"]["data"]["retryAfterMs"] / 1000)

    async def _refused(self, call: str, asked: dict[str, Any]) -> None:
        """Another answer to a settled round."""
        while (message := await self._sent(call, retry(asked, response="other"))) is None:
            pass
        if message.get("error", {}).get("code") not in (-32602, 1001):
            raise Lost(f"another answer was told {message}")

    async def _sent(self, call: str, params: dict[str, Any]) -> dict[str, Any] | None:
        arguments = {"call": call, "notes": self.notes}
        headers, body = message("tools/call", name="soaked", arguments=arguments, **params)
        try:
            answer = await self.http.post(self.servers.any(), headers=headers, json=body)
        except httpx.TransportError:
            self.told["cut off"] += 1
            await asyncio.sleep(0.05)
            return None
        return answer.json()
