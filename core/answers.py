"""What one person answered to one question: accept with content, decline or cancel.

Pure module. The three words are told apart here, once, and nothing but an `accept` ever has
content. What an answer may hold is for the question that it meets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from core.errors import InvalidParams
from core.validation import Misfit

Action: TypeAlias = Literal["accept", "decline", "cancel"]

MISMATCH: Final = "Form content does not match requestedSchema"

DECLINED: Final = "The request for input was declined."
CANCELLED: Final = "The request for input was cancelled."


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer. `content` is empty unless the action is `accept`: a client that leaves out an
    empty object, or sends null for it, means the empty one."""

    action: Action
    content: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An answer that reaches the agent.

    Attributes:
        value: what the agent gets.
        record: the JSON that tells this answer from another one.
    """

    value: Any
    record: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """A decline or cancel that ends the call with this text."""

    text: str
    action: Action

    @property
    def record(self) -> Any:
        """The JSON that tells this answer from another one."""
        return {"action": self.action}


class Unfit(Exception):
    """An answer does not fit its question: it may be given again.

    Attributes:
        message: what the client is told.
        misfits: the fields that do not fit and why; a reason may quote the answer.
    """

    def __init__(self, *misfits: Misfit, message: str = MISMATCH) -> None:
        super().__init__(message)
        self.message = message
        self.misfits = misfits

    def refusal(self, key: str) -> InvalidParams:
        """The same as an error on the wire."""
        errors = [{"key": key, "field": each.field, "reason": each.reason} for each in self.misfits]
        return InvalidParams(self.message, data={"errors": errors}, reason="an answer does not fit")


def parse(key: str, response: Any, *, form: bool) -> Answer:
    """The answer that a client sent under a key.

    Args:
        form: whether the question is a form; content sent to a URL question is ignored, and so is
            content beside a decline or cancel.

    Raises:
        InvalidParams: it is no answer at all.
    """
    if not isinstance(response, Mapping):
        raise _malformed(key, "it is not an object")
    members = cast("Mapping[str, Any]", response)
    action = members.get("action")
    if action == "decline" or action == "cancel":
        return Answer(action=action)
    if action != "accept":
        raise _malformed(key, 'its action is not "accept", "decline" or "cancel"')
    content = members.get("content") if form else None
    if content is None:
        return Answer(action="accept")
    if not isinstance(content, dict):
        raise Unfit(Misfit("", "the content is not an object")).refusal(key)
    return Answer(action="accept", content=cast("dict[str, Any]", content))


def withheld(action: Literal["decline", "cancel"]) -> Withheld:
    """How a refusal to answer ends a call."""
    return Withheld(text=DECLINED if action == "decline" else CANCELLED, action=action)


def _malformed(key: str, reason: str) -> InvalidParams:
    message = f'The answer to "{key}" can\'t be read: {reason}.'
    data = {"errors": [{"key": key, "field": "", "reason": reason}]}
    return InvalidParams(message, data=data, reason="an answer is malformed")
