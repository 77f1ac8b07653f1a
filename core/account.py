"""What the log may say of a request: which call and round it was about, and how it ended.

A request's account follows it into every task that works for it, so that whoever logs anything
says whose it is. Arguments, answers, contexts, tokens and request states never come in here.
"""

from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any, Final, Literal
from uuid import UUID

from core.protocol import InputRequired, ToolResult

Outcome = Literal["asked", "result", "error result", "refused", "accepted", "abandoned"]
"""`accepted` is a notification; `abandoned` is whatever its client stopped waiting for."""


@dataclass(slots=True, kw_only=True)
class Account:
    """One request.

    Attributes:
        correlation: an id of ours; where something failed the client has it too.
        trace: the trace id that the client sent.
        round: the round that was asked last, or else the one that was answered.
        repeat: whether the outcome had been told before.
        code: of the error, when the outcome is a refusal.
        key: the name of the API key that the request came with.
    """

    correlation: str
    trace: str = ""
    method: str = ""
    agent: str = ""
    call: UUID | None = None
    round: int = 0
    outcome: Outcome | None = None
    repeat: bool = False
    code: int = 0
    reason: str = ""
    key: str = ""

    def facts(self) -> dict[str, Any]:
        """What is known."""
        known = {name: value for name in _FACTS if (value := getattr(self, name))}
        if self.call is not None:
            known["call"] = str(self.call)
        return known


_FACTS: Final = tuple(each.name for each in fields(Account))


_current: ContextVar[Account | None] = ContextVar("account", default=None)


def begin(account: Account) -> None:
    """From here on, this task and those that it starts work for this request."""
    _current.set(account)


def current() -> Account:
    """The account of the request that is worked for; one that nobody reads, when there is none."""
    return _current.get() or Account(correlation="")


def ended(outcome: ToolResult | InputRequired) -> None:
    """Note how a call's request ended."""
    if isinstance(outcome, InputRequired):
        current().outcome = "asked"
    else:
        current().outcome = "error result" if outcome.is_error else "result"
