"""A run under a claim: kept while it lives, stopped when it must be, given back when it may be.

What can end it from outside: the request's deadline, the loss of the claim, a state that can't be
stored, and a client that closes its stream. Whatever happens, nothing that is not durable counts,
and the claim is given back only when none of the run's nodes is executing any more.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from core.errors import RetryLater
from core.records import Claim, ClaimLost, Rows, StoreError, Unholdable
from core.saver import CallState, Unstorable

if TYPE_CHECKING:
    from core.claims import Renewals
    from core.runs import Finished, Paused, Run, Stopped
    from core.store import Store

FINISHED_KEPT: Final = "This tool ran out of time. What it finished is kept."

UNWINDING: Final = 0.25
"""Seconds that a stopped run's coroutines get to end before the request is answered."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A claim that this process holds, with the digests of the answers that it runs on with.

    Attributes:
        renewals: what keeps the claim; None where the platform ends the process in time.
        detached: starts work that outlives the request.
    """

    store: "Store"
    claim: Claim
    digests: dict[str, str]
    renewals: "Renewals | None"
    detached: Callable[[Awaitable[None]], Awaitable[None]]

    @contextmanager
    def kept(self, run: "Run", deadline: float) -> Generator["Watch"]:
        """Keep the claim until the block ends, in which the run goes on and is settled."""
        watch = Watch(run.state, deadline)
        run.state.on_loss(watch.lose)
        if self.renewals is None:
            yield watch
            return
        with self.renewals.hold(self.claim, self.digests, watch.lose):
            yield watch

    async def run(
        self, run: "Run", values: Mapping[str, Any], watch: "Watch"
    ) -> "Finished | Paused | Stopped":
        """Run on with these answers, once what an earlier run of the call left at work has ended.

        Raises:
            RetryLater: the deadline came; finished nodes are kept, and the same request goes on.
            StoreError: something did not become durable; ClaimLost when another holds the claim.
            Unstorable: what the agent keeps can't be stored.
            Exception: the agent's own.
        """
        running: asyncio.Task[Finished | Paused | Stopped] | None = None
        try:
            with suppress(TimeoutError):  # the deadline, or a loss
                async with watch.scope:
                    await run.work.ended()
                    # Cancelled twice, LangGraph leaves its nodes to themselves: in a task of its
                    # own a run is cancelled once, whatever becomes of the request.
                    running = asyncio.ensure_future(run.resume(values, durable=True))
                    run.work.add(running)
                    await asyncio.wait((running,))
            if running is not None and not running.done():
                running.cancel()
                await asyncio.wait((running,), timeout=UNWINDING)
            await run.state.close()
        except BaseException:  # a client that left, or whatever else ends more than a run
            if running is not None and not running.cancelling():
                running.cancel()
            await asyncio.shield(self.detached(self._stop(run)))
            raise
        problem = watch.loss or watch.out_of_time()
        if running is not None and running.done() and not running.cancelled():
            if (error := running.exception()) is None:
                return running.result()  # whatever was told: whether it counts, the fence decides
            problem = problem or _exception(error)
        assert problem is not None
        if isinstance(problem, StoreError | RetryLater) and not isinstance(
            problem, ClaimLost | Unholdable
        ):
            await asyncio.shield(self.detached(self._stop(run)))
        raise problem

    async def settle(self, run: "Run", settling: Awaitable[None]) -> None:
        """Store what the run came to, even when the client leaves meanwhile. If that fails, keep
        what it finished for the next request.

        Raises:
            Unholdable: the database can't hold what was to be stored; the claim stands.
            StoreError: as far as is known, the round is not settled.
        """
        await asyncio.shield(self.detached(self._settle(run, settling)))

    async def _settle(self, run: "Run", settling: Awaitable[None]) -> None:
        try:
            await settling
        except (ClaimLost, Unholdable):
            raise
        except StoreError:
            await self._stop(run)
            raise

    async def reopen(self, run: "Run", deadline: float) -> None:
        """Give the claim back as if nobody had answered, once none of the run's nodes is executing
        any more; what finished is kept all the same.

        Raises:
            RetryLater: one is still executing at the deadline. The same answers are refused then.
            StoreError: as far as is known, the round is not open again.
        """
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.shield(self.detached(run.work.ended()))
        except BaseException as error:  # as in `run`
            await asyncio.shield(self.detached(self._stop(run)))
            if isinstance(error, TimeoutError):
                raise RetryLater(FINISHED_KEPT) from None
            raise
        await asyncio.shield(self.detached(self.store.reopen(self.claim, _finished(run))))

    async def _stop(self, run: "Run") -> None:
        """Give the claim of a stopped run back, once none of its nodes is executing any more.

        A sync node's thread can't be stopped, and an async node may take its time. Where claims are
        renewed the claim is kept until they end; elsewhere it lapses when the platform's time is
        over, and nothing more can be stored then.
        """
        with self._held():  # the request may be over before this is
            await run.state.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(UNWINDING):
                    await run.work.ended()
            if not run.work.busy:
                await self._give_back(run)
            elif self.renewals is not None:
                self.detached(self._outlive(run, self.renewals))
                await asyncio.sleep(0)  # until it holds the claim as well
            else:
                with suppress(StoreError):
                    await self.store.flush(self.claim, self.digests, _finished(run))

    async def _outlive(self, run: "Run", renewals: "Renewals") -> None:
        with self._held():
            try:
                await run.work.ended()
            except asyncio.CancelledError:  # the event loop ends, and the threads do not
                renewals.abandon(self.claim, run.work)
                raise
            await self._give_back(run)

    def _held(self) -> AbstractContextManager[None]:
        """Keep the claim for a run that is over, which a loss of it does not stop any more."""
        if self.renewals is None:
            return nullcontext()
        return self.renewals.hold(self.claim, self.digests, _pass_over)

    async def _give_back(self, run: "Run") -> None:
        """Let others claim the round, with the answers that it went on with."""
        try:
            try:
                await self.store.lapse(self.claim, self.digests, _finished(run))
            except ClaimLost:
                raise
            except StoreError:  # what finished is lost; whose answers it was for is not
                await self.store.lapse(self.claim, self.digests, Rows())
        except StoreError as error:
            # The claim lapses by itself.
            log.warning("a claim could not be given back: %s", error)


def _exception(error: BaseException) -> Exception:
    """What a run's task ended with. What is no exception ends the process, and never comes here."""
    if not isinstance(error, Exception):
        raise error
    return error


def _finished(run: "Run") -> Rows:
    """What the run finished and did not store yet."""
    try:
        return run.state.rows()
    except Unstorable:
        return Rows()


def _pass_over(error: StoreError) -> None:
    """A run that is over is not stopped by the loss of its claim."""


class Watch:
    """What stops a claimed run from outside."""

    def __init__(self, state: CallState, deadline: float) -> None:
        self.scope = asyncio.timeout_at(deadline)
        self.loss: Exception | None = None
        self._state = state

    def lose(self, error: Exception) -> None:
        """Stop the run: what it relies on is gone. The first reason counts."""
        if self.loss is None:
            self.loss = error
            self._state.end(error)
            with suppress(RuntimeError):  # the run is over already
                self.scope.reschedule(0)

    def out_of_time(self) -> RetryLater | None:
        """The answer of a run that its deadline stopped."""
        if not self.scope.expired() or self.loss is not None:
            return None
        return RetryLater(FINISHED_KEPT)
