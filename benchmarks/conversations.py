"""What is measured: conversations with a server, each of whose answers is checked.

A conversation is a generator that yields requests and is sent their answers. It says something of
its own in every answer to a question, so that an answer that went astray would be seen.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

from benchmarks.wire import Answer, Request

Conversation = Generator[Request, Answer, None]
Case = Callable[[str, int], Conversation]
"""From a word of the caller's own, and a size where the case has one."""

FORGED: Final = "AAAAAAAAAAAAAAAAAAAAAAAAAAEAAQ.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


class Wrong(Exception):
    """A contestant answered something else than it should."""


def echo(word: str, size: int) -> Conversation:
    """One round: nothing is asked."""
    _ends((yield called("echo", {"message": word})), word)


def greeter(word: str, size: int) -> Conversation:
    """Two rounds: a name is asked, and greeted."""
    asked = asked_of((yield called("greeter", {})))
    _ends((yield answered("greeter", {}, asked, word)), f"Hello, {word}!")


def four(word: str, size: int) -> Conversation:
    """Five rounds: four questions, one after another."""
    answer = yield called("four", {})
    for ordinal in ("first", "second", "third", "fourth"):
        asked = asked_of(answer)
        answer = yield answered("four", {}, asked, f"{ordinal} {word}")
    _ends(answer, f"first {word}", f"second {word}", f"third {word}", f"fourth {word}")


def pair(word: str, size: int) -> Conversation:
    """Two rounds: two questions at once."""
    asked = asked_of((yield called("pair", {})))
    assert len(asked["inputRequests"]) == 2, asked
    _ends((yield answered("pair", {}, asked, word)), word)


def history(word: str, size: int) -> Conversation:
    """Two rounds, at the end of a conversation of so many messages."""
    arguments = {"size": size}
    asked = asked_of((yield called("history", arguments)))
    _ends((yield answered("history", arguments, asked, word)), word)


def walk(word: str, size: int) -> Conversation:
    """Two rounds, with so many supersteps after the answer."""
    arguments = {"size": size}
    asked = asked_of((yield called("walk", arguments)))
    _ends((yield answered("walk", arguments, asked, word)), str(size))


def replay(word: str, size: int) -> Conversation:
    """An answer given again, without end; the first two requests lead to it."""
    asked = asked_of((yield called("greeter", {})))
    again = answered("greeter", {}, asked, word)
    while True:
        _ends((yield again), f"Hello, {word}!")


def tools(word: str, size: int) -> Conversation:
    """The list of tools."""
    answer = yield Request("tools/list", {})
    names = {tool["name"] for tool in _result(answer)["tools"]}
    if not {"echo", "greeter"} <= names:
        raise Wrong(answer)


def discover(word: str, size: int) -> Conversation:
    """What the server speaks."""
    answer = yield Request("server/discover", {})
    if "2026-07-28" not in _result(answer)["supportedVersions"]:
        raise Wrong(answer)


def forged(word: str, size: int) -> Conversation:
    """A request state that nobody has given out."""
    answers = {"user_name": {"action": "accept", "content": {"name": word}}}
    params = {"name": "greeter", "arguments": {}, "inputResponses": answers}
    answer = yield Request("tools/call", {**params, "requestState": FORGED})
    if answer.message.get("error", {}).get("code") != -32602:
        raise Wrong(answer)


CASES: Final[Mapping[str, Case]] = {
    each.__name__: each
    for each in (echo, greeter, four, pair, history, walk, replay, tools, discover, forged)
}


def called(tool: str, arguments: dict[str, Any]) -> Request:
    """A first request."""
    return Request("tools/call", {"name": tool, "arguments": arguments})


def answered(tool: str, arguments: dict[str, Any], asked: dict[str, Any], value: Any) -> Request:
    """The request that answers all questions of a round alike."""
    answers = {
        key: {"action": "accept", "content": {_field(request): value}}
        for key, request in asked["inputRequests"].items()
    }
    params = {"name": tool, "arguments": arguments, "inputResponses": answers}
    return Request("tools/call", {**params, "requestState": asked["requestState"]})


def _field(request: dict[str, Any]) -> str:
    [field] = request["params"]["requestedSchema"]["properties"]
    return field


def asked_of(answer: Answer) -> dict[str, Any]:
    """The result of an answer that must hold questions."""
    result = _result(answer)
    if result.get("resultType") != "input_required":
        raise Wrong(answer)
    return result


def _ends(answer: Answer, *words: str) -> None:
    result = _result(answer)
    said = result["content"][0]["text"] if "content" in result else ""
    if result.get("isError") or not all(word in said for word in words):
        raise Wrong(answer)


def _result(answer: Answer) -> dict[str, Any]:
    if answer.status != 200 or "result" not in answer.message:
        raise Wrong(answer)
    return answer.message["result"]
