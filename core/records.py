"""What the store takes in and hands out, and how it fails.

No driver here: a refusal, which touches no row, must not pay for importing one.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID


class StoreError(Exception):
    """The database did not do what was asked; `__cause__` is the driver's error."""


class Unavailable(StoreError):
    """The database can't be reached, or is too busy, now; nothing was changed."""


class Collided(Unavailable):
    """A change of somebody else's was in the way: tried again, this one may pass."""


class Unholdable(StoreError):
    """The database can't hold what was to be stored, now or later; nothing was changed."""


class Interrupted(StoreError):
    """The connection broke while a change was under way: it may have happened, or not."""


class ClaimLost(StoreError, RuntimeError):
    """Another claim stands where ours did: nothing was written, and this runner must stop.

    A RuntimeError, because LangGraph's default retry policy lets those pass.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What goes to LangGraph's tables in one statement: a tuple of columns each.

    checkpoints: namespace, id, parent id or None, checkpoint JSON, metadata JSON.
    blobs: namespace, channel, version, type, bytes.
    writes: namespace, checkpoint id, task id, index, task path, channel, type, bytes.
    """

    checkpoints: Sequence[tuple[Any, ...]] = ()
    blobs: Sequence[tuple[Any, ...]] = ()
    writes: Sequence[tuple[Any, ...]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A round about to be asked."""

    keys: Sequence[str]
    modes: Sequence[str]
    questions: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A round as a request finds it, after trying to claim it.

    Attributes:
        won: this request holds the claim, and `rows` is the call's state.
        lapsed: this request took a claim over that had lapsed and was not given back.
        next: the round after this one, when this one led to it.
        metadata: what the call's thread was kept with, as JSON.
    """

    state: str
    won: bool
    lapsed: bool
    questions: bytes
    answers: dict[str, str] | None
    outcome: bytes | None
    next: bytes | None
    next_state: str | None
    metadata: bytes | None = None
    rows: Rows = field(default_factory=Rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The exclusive, expiring right to settle a round.

    Attributes:
        since: when it was asked for, in seconds of `time.monotonic()`: no later than it was made.
    """

    call: UUID
    number: int
    id: UUID
    since: float = field(default_factory=time.monotonic, compare=False)
