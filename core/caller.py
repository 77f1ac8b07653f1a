"""Who sent a request, as far as a call needs to know.

Pure module. How a caller is told is the edge's business; here a caller is one opaque string, what
its agents may read of it, and the deployment's own rules about the threads that calls are kept in.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias
from uuid import UUID

Permit: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""Judges a kept thread by its metadata: True, the call goes on; False, it can't be resumed.

Raises:
    InvalidRequestState: the caller may not even read it.
"""


class Threads(Protocol):
    """What the deployment's rules let one caller do with the thread of a call.

    A rule that forbids a run altogether raises a `Refusal`.
    """

    async def start(self, agent: str) -> None:
        """A new call is about to run."""
        ...

    async def keep(self, thread: UUID, agent: str) -> Mapping[str, Any] | None:
        """The metadata to keep a paused call's thread with; None: it may not be kept."""
        ...

    async def resume(self, thread: UUID, agent: str) -> Permit | None:
        """What a retry is judged by; None: the call can't be resumed.

        Raises:
            InvalidRequestState: the caller may not even read the thread.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who sent a request.

    Attributes:
        principal: who it is, opaque; empty when nobody was identified.
        configurable: what the agent may read of it. It is kept nowhere.
        threads: the rules that hold for it, where the deployment has any.
    """

    principal: str = field(default="", repr=False)
    configurable: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    threads: Threads | None = None


ANYONE: Final = Caller()
"""Where nobody is identified."""
