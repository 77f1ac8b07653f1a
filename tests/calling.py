"""Calls of a client that can be asked, over HTTP, and what an answer must be."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import httpx

from core.protocol import CAPABILITIES_KEY, LATEST, VERSION_KEY
from tests.served import Served, error, post, result


def call(
    served: Served,
    name: str,
    arguments: dict[str, Any] | None = None,
    *,
    modes: tuple[str, ...] = ("form", "url"),
    **params: Any,
) -> httpx.Response:
    """A `tools/call` of a client that declares these modes."""
    declared: dict[str, Any] = {mode: {} for mode in modes}
    capabilities = {"elicitation": declared} if modes else {}
    return declaring(served, name, arguments, capabilities, **params)


def declaring(
    served: Served,
    name: str,
    arguments: dict[str, Any] | None,
    capabilities: Any,
    **params: Any,
) -> httpx.Response:
    """A `tools/call` of a client that declares whatever it likes."""
    meta = {VERSION_KEY: LATEST, CAPABILITIES_KEY: capabilities}
    return post(
        served.url, "tools/call", name=name, arguments=arguments or {}, _meta=meta, **params
    )


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def retry(asked: Mapping[str, Any], **content: Any) -> dict[str, Any]:
    """What the retry of a call has that accepts every question with this content."""
    return {
        "inputResponses": dict.fromkeys(asked["inputRequests"], accept(**content)),
        "requestState": asked["requestState"],
    }


def asked(response: httpx.Response) -> tuple[dict[str, Any], str]:
    """The questions and the request state of an answer that must be a pause."""
    body = result(response)
    assert body["resultType"] == "input_required", body
    return body["inputRequests"], body["requestState"]


def ended(response: httpx.Response) -> str:
    """The text of an answer that must be a result without an error."""
    body = result(response)
    assert body["resultType"] == "complete"
    assert not body.get("isError"), body
    return body["content"][0]["text"]


def failed(response: httpx.Response) -> str:
    """The first text of an answer that must be an error result."""
    body = result(response)
    assert body["isError"] is True
    return body["content"][0]["text"]


def refused(response: httpx.Response) -> dict[str, Any]:
    """The error of an answer that must be -32602 at 400."""
    told = error(response)
    assert (response.status_code, told["code"]) == (400, -32602), told
    return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A paused call: its questions, and the way to answer them."""

    served: Served
    name: str
    arguments: dict[str, Any]
    params: dict[str, Any]
    questions: dict[str, Any]
    state: str

    @classmethod
    def of(cls, served: Served, name: str, arguments: Any = None, **params: Any) -> Self:
        """A first call that must pause."""
        given: dict[str, Any] = arguments or {}
        questions, state = asked(call(served, name, given, **params))
        return cls(
            served=served,
            name=name,
            arguments=given,
            params=params,
            questions=questions,
            state=state,
        )

    @property
    def key(self) -> str:
        """The key of the only question."""
        [key] = self.questions
        return key

    @property
    def message(self) -> str:
        """The message of the only question."""
        return self.questions[self.key]["params"]["message"]

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the only question."""
        return self.questions[self.key]["params"]["requestedSchema"]["properties"]

    def keys(self) -> dict[str, str]:
        """Each question's key by its message."""
        return {each["params"]["message"]: key for key, each in self.questions.items()}

    def send(self, answers: Any, **params: Any) -> httpx.Response:
        """The retry with these answers by key."""
        given: dict[str, Any] = {"inputResponses": answers, "requestState": self.state}
        given |= {**self.params, **params}
        return call(self.served, self.name, self.arguments, **given)

    def reply(self, answer: Mapping[str, Any], **params: Any) -> httpx.Response:
        """The retry that gives every question this answer."""
        return self.send(dict.fromkeys(self.questions, answer), **params)

    def then(self, answers: Any, **params: Any) -> "Pause":
        """A retry that must lead to the next round."""
        questions, state = asked(self.send(answers, **params))
        return Pause(
            served=self.served,
            name=self.name,
            arguments=self.arguments,
            params=self.params,
            questions=questions,
            state=state,
        )


def ask(served: Served, value: Any = "Question?", **raised: Any) -> Pause:
    """A call of the agent `one` (`tests.agents.raising`), which raises this and must ask."""
    return Pause.of(served, "one", {"value": value, **raised})


def got(response: httpx.Response) -> Any:
    """What the agent `one` got for its question."""
    return json.loads(ended(response))["got"]
