"""Keeping a claim while its run lives: a claim outlives its holder, and not by much.

On a server a claim is renewed at every three tenths of its lease while its run lives, by a thread
with a connection of its own: an async node that blocks the event loop would stop every renewal made
there. When a claim can't be renewed any more, its run is told.
"""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import psycopg

from core.records import Claim, ClaimLost, StoreError, Unavailable
from core.store import RENEW, Store, hang_up
from core.work import Work

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Held:
    claim: Claim
    answers: str
    lost: Callable[[StoreError], None]
    renew_at: float
    lapses_at: float
    abandoned_to: Work | None = None


class Renewals:
    """Renews the claims of one process, all in one statement.

    The thread starts with a claim and ends when it finds none; it sleeps from one renewal to the
    next, and a call that is done before its first renewal never wakes it.
    """

    def __init__(self, store: Store, *, lease: timedelta) -> None:
        self._store = store
        self._lease = lease
        self._every = lease.total_seconds() * 0.3
        self._held: dict[UUID, _Held] = {}
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._renewing: psycopg.Connection | None = None

    @contextmanager
    def hold(
        self, claim: Claim, answers: dict[str, str], lost: Callable[[StoreError], None]
    ) -> Generator[None]:
        """Renew a claim until the block ends. Blocks may overlap: the later one takes over.

        Args:
            answers: the digests with which a renewal marks the claim: something may have happened.
            lost: called in this event loop, once, when the claim can't be kept: with `ClaimLost`
                when another stands there, with `Unavailable` when it could not be renewed.
        """
        loop = asyncio.get_running_loop()

        def tell(error: StoreError) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody is left to tell
                loop.call_soon_threadsafe(lost, error)

        lasts = self._lease.total_seconds()
        held = _Held(
            claim, json.dumps(answers), tell, claim.since + self._every, claim.since + lasts
        )
        if (before := self._held.get(claim.id)) is not None:
            held.renew_at, held.lapses_at = before.renew_at, before.lapses_at

        def watch() -> None:
            """A renewal that hangs fails too."""
            nonlocal watching
            if (left := held.lapses_at - time.monotonic()) > 0:
                watching = loop.call_later(left, watch)
            elif self._held.get(claim.id) is held:
                self._lose(claim.id, held, _not_renewed())
                self._hang_up()

        watching = loop.call_later(held.lapses_at - time.monotonic(), watch)
        try:
            self._begin(held)
            yield
        finally:
            watching.cancel()
            with self._condition:
                if self._held.get(claim.id) is held and held.abandoned_to is None:
                    del self._held[claim.id]

    def abandon(self, claim: Claim, work: Work) -> None:
        """Renew a held claim after its block as well, until the work under it has ended."""
        with self._condition:
            if (held := self._held.get(claim.id)) is not None:
                held.abandoned_to = work

    def _begin(self, held: _Held) -> None:
        with self._condition:
            self._held[held.claim.id] = held
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._work, name="renewals", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # there may be no more threads
                self._lose(held.claim.id, held, _not_renewed())
            else:
                self._thread = thread

    def _work(self) -> None:
        connection: psycopg.Connection | None = None
        try:
            while (due := self._wait()) is not None:
                try:
                    if connection is None or connection.closed:
                        connection = psycopg.connect(
                            self._store.conninfo(),
                            autocommit=True,
                            prepare_threshold=None,
                            connect_timeout=3,
                        )
                    self._renewing = connection
                    self._renew(connection, due)
                except Exception as error:  # or no claim of the process would be renewed again
                    log.warning("claims could not be renewed: %s", type(error).__name__)
                    if connection is not None:
                        connection.close()
                        connection = None
                    self._give_up(due)
                finally:
                    self._renewing = None
        finally:
            if connection is not None:
                connection.close()

    def _hang_up(self) -> None:
        if (connection := self._renewing) is not None:
            hang_up(connection)

    def _wait(self) -> dict[UUID, _Held] | None:
        """The claims to renew, once there are any; None when the thread is of no more use."""
        with self._condition:
            while True:
                for id, held in list(self._held.items()):
                    if held.abandoned_to is not None and not held.abandoned_to.busy:
                        del self._held[id]
                if not self._held:
                    self._thread = None
                    return None
                now = time.monotonic()
                due = {id: held for id, held in self._held.items() if held.renew_at <= now}
                if due:
                    return due
                self._condition.wait(min(held.renew_at for held in self._held.values()) - now)

    def _renew(self, connection: psycopg.Connection, due: dict[UUID, _Held]) -> None:
        now = time.monotonic()
        rows = connection.execute(
            self._store.statement(RENEW),
            {
                "lease": self._lease,
                "calls": [held.claim.call for held in due.values()],
                "numbers": [held.claim.number for held in due.values()],
                "claims": list(due),
                "answers": [held.answers for held in due.values()],
            },
        ).fetchall()
        standing: dict[UUID, bool] = dict(rows)
        for id, held in due.items():
            if id not in standing:
                self._lose(id, held, ClaimLost("another claim stands on the round"))
            elif standing[id]:
                held.renew_at = now + self._every
                held.lapses_at = now + self._lease.total_seconds()
        self._give_up({id: held for id, held in due.items() if not standing.get(id, True)})

    def _give_up(self, due: dict[UUID, _Held]) -> None:
        """Try again soon, but for claims that will have lapsed by then."""
        now = time.monotonic()
        for id, held in due.items():
            held.renew_at = now + self._every / 3
            if held.lapses_at <= held.renew_at:
                self._lose(id, held, _not_renewed())

    def _lose(self, id: UUID, held: _Held, error: StoreError) -> None:
        with self._condition:
            if self._held.get(id) is held:
                del self._held[id]
                held.lost(error)


def _not_renewed() -> Unavailable:
    return Unavailable("the claim could not be renewed")
