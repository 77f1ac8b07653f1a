"""A call, from its first request to its result, one round of questions at a time.

    first request ── run in memory ──► finished ─► result; nothing was written
                          └─ paused ─► asked ────► stored with round 1
    retry ── token checked ── claim it ──► run from the checkpoint ──► settled: result, next round
                                 └─ lost ──► wait for the winner's outcome, or be refused

This file decides; the rows are `core.store`'s, the graph `core.runs`', the answers
`core.questions`'. LangGraph and the driver are imported by the first call that needs them: a
refusal touches neither, a replay only the driver.
"""

import asyncio
import itertools
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID, uuid4
from weakref import WeakValueDictionary

from core import account, canonical
from core.bounds import fitting
from core.caller import Permit, Threads
from core.cannot_ask import BREAKPOINT, CannotAsk
from core.catalog import Catalog
from core.errors import (
    InternalError,
    InvalidParams,
    InvalidRequestState,
    MissingCapability,
    Refusal,
    RetryLater,
)
from core.protocol import InputRequired, ToolResult, error_result
from core.questions import Ended, Missing, Resume, Round, as_json, ask, read
from core.records import (
    Asking,
    Claim,
    ClaimLost,
    Interrupted,
    Rows,
    Seen,
    StoreError,
    Unavailable,
    Unholdable,
)
from core.request_state import Binding, KeyRing
from core.tools import Tool
from core.work import Work

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from core.agent_store import AgentStore
    from core.agents import OpenStore
    from core.claimed import Claimed
    from core.claims import Renewals
    from core.runs import Finished, Paused, Run, Stopped
    from core.store import Store

T = TypeVar("T")

PAUSED: Final = timedelta(hours=24)
"""How long a call waits for the answers to its newest round."""

KEPT: Final = timedelta(minutes=10)
"""How long the outcome of a finished call is kept for a repeat, or a round is withheld."""

LEASE: Final = timedelta(seconds=10)
"""How long a claim lasts unless it is renewed, on a server."""

PATIENCE: Final = 5
"""Seconds that claims get to be given back when the process ends."""

CANNOT_ANSWER: Final = "This tool paused to ask for human input, and this client can't answer it."
CANNOT_RESUME: Final = "This tool paused to ask for human input, and this call can't be resumed."
NOTHING_KEPT: Final = "This tool ran out of time. Nothing was kept: call it again."
OTHER_ANSWERS: Final = "This round was already answered with other answers"

_WAITS: Final = (0.01, 0.02, 0.04, 0.08, 0.15, 0.25)
"""Seconds; the last repeats."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One `tools/call` request, decoded and checked against the tool's input schema.

    Attributes:
        context: the agent's runtime context for this request alone.
        responses: answers by key; None when the request had none.
        modes: the elicitation modes that the client declared.
        modern: whether the client speaks a revision that can be asked.
        deadline: when to stop, in seconds of `time.monotonic()`.
        configurable: what the agent may read of the caller.
        threads: the deployment's rules for this caller, about the thread that the call is kept in.
    """

    tool: Tool
    arguments: dict[str, Any]
    context: dict[str, Any] | None = None
    responses: Mapping[str, Any] | None = None
    request_state: str | None = None
    modes: frozenset[str] = frozenset()
    modern: bool = True
    principal: str = ""
    deadline: float
    progress: Callable[[str, Any], None] | None = None
    configurable: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    threads: Threads | None = None


class Rounds:
    """Runs calls of the catalogue's agents and keeps their rounds.

    Args:
        store: opens the store; called when a call first needs rows.
        audience: which deployment the request states are for.
        lease: how long a claim outlives its holder at most, where claims are renewed.
        left: how much longer this process can live, on a platform that ends it. A claim lasts that
            long there, and is not renewed.
        largest: bytes that an answer may have; None when there is no bound.
    """

    def __init__(
        self,
        *,
        catalog: Catalog,
        store: "Callable[[], Store]",
        keys: KeyRing,
        audience: str = "",
        lease: timedelta = LEASE,
        left: Callable[[], timedelta] | None = None,
        largest: int | None = None,
    ) -> None:
        self._catalog = catalog
        self._open_store = store
        self._keys = keys
        self._audience = audience
        limit = timedelta.max
        if catalog.default_ttl is not None:
            limit = timedelta(minutes=catalog.default_ttl)
        self._paused = min(PAUSED, limit)
        self._kept = min(KEPT, limit)
        self._lease = lease
        self._left = left
        self._largest = largest
        self._renewals: Renewals | None = None
        self._stores: AgentStore | None = None
        self._at_work: WeakValueDictionary[UUID, Work] = WeakValueDictionary()
        self._running: set[asyncio.Future[Any]] = set()
        self._ending: set[asyncio.Future[Any]] = set()

    async def close(self) -> None:
        """Stop the runs that go on without their requests, and see their claims given back.

        A thread can't be stopped: one that is still at work after `PATIENCE` keeps its claim for
        as long as the process lives.
        """
        for run in list(self._running):
            run.cancel()
        ends = time.monotonic() + PATIENCE
        while (at_work := self._running | self._ending) and (left := ends - time.monotonic()) > 0:
            await asyncio.wait(at_work, timeout=left)
        for rest in at_work:
            rest.cancel()
        await asyncio.gather(*at_work, return_exceptions=True)

    async def call(self, call: Call) -> ToolResult | InputRequired:
        """Answer a request: run the agent as far as it goes, or give again what it came to.

        Raises:
            Refusal: the request is answered with an error.
        """
        account.current().agent = call.tool.agent
        try:
            if call.request_state is None:
                outcome = await self._first(call)
            else:
                outcome = await self._retry(call, call.request_state)
            account.ended(outcome)
            return outcome
        except (Unavailable, Interrupted) as error:
            kept = "Nothing was kept." if call.request_state is None else "Nothing is lost."
            raise RetryLater(f"The database can't be reached now. {kept}") from error
        except StoreError as error:
            raise InternalError(str(error)) from error

    # The first request: nothing is written unless the agent pauses and can be asked.

    async def _first(self, call: Call) -> ToolResult | InputRequired:
        id = account.current().call = uuid4()
        if call.threads is not None:
            await call.threads.start(call.tool.agent)
        run = await self._run(call, id)
        try:
            input = run.input(call.arguments)
        except InvalidParams as misfit:
            return error_result(misfit.message)
        try:
            async with asyncio.timeout_at(call.deadline):
                came_to = await self._first_run(call, run, input)
        except TimeoutError:
            return error_result(NOTHING_KEPT)
        finally:
            await run.state.close()
        if isinstance(came_to, ToolResult):
            return came_to
        from core.failures import failed

        metadata: bytes | None = None
        if call.threads is not None:
            if (marks := await call.threads.keep(id, call.tool.agent)) is None:
                return error_result(CANNOT_RESUME)
            metadata = canonical.dumps(marks)
        try:
            rows = run.state.rows()
        except Exception as error:
            return failed(call.tool.name, error)
        try:
            await self._open_store().pause(
                id, call.tool.agent, _asking(came_to), rows, ttl=self._paused, metadata=metadata
            )
        except Unholdable as error:
            return failed(call.tool.name, error)
        return self._input_required(call, id, 1, came_to)

    async def _first_run(self, call: Call, run: "Run", input: Any) -> ToolResult | Round:
        """To the result, or to the round to ask: the second, when the first is answered already."""
        from core.failures import failed, refused_answer

        answered: Round | None = None
        try:
            came_to = self._came_to(call, await run.start(input))
            if isinstance(came_to, Round) and call.responses:
                answered = came_to
                _require_modes(came_to, call)
                match read(came_to, call.responses):
                    case Missing():
                        return came_to
                    case Ended(text=text):
                        return error_result(text)
                    case Resume(values=values):
                        came_to = self._came_to(call, await run.resume(values, durable=False))
        except Refusal:
            raise
        except Exception as error:
            if refusal := refused_answer(answered, error):
                raise refusal from error
            return failed(call.tool.name, error)
        if isinstance(came_to, Round):
            _require_modes(came_to, call)
        return came_to

    def _came_to(self, call: Call, ended: "Finished | Paused | Stopped") -> ToolResult | Round:
        """What a run led to, for this client: the result, or the round that would be asked."""
        return fitting(self._led_to(call, ended), self._largest)

    def _led_to(self, call: Call, ended: "Finished | Paused | Stopped") -> ToolResult | Round:
        from core.results import render
        from core.runs import Finished, Stopped

        if isinstance(ended, Finished):
            return render(ended.output, tool=call.tool)
        if isinstance(ended, Stopped):
            if call.modern and call.modes:
                return error_result(str(CannotAsk(BREAKPOINT)))
            return render(ended.state, tool=call.tool)
        if not call.modern:
            return error_result(CANNOT_ANSWER, as_json(ended.pending))
        if not self._catalog.threads:
            return error_result(CANNOT_RESUME)
        try:
            ended.check()
            return ask(ended.pending)
        except CannotAsk as reason:
            return error_result(str(reason))

    # A retry: the round is claimed, or its outcome told, or the claim's holder waited for.

    async def _retry(self, call: Call, token: str) -> ToolResult | InputRequired:
        id, number = self._keys.open(token, self._binding(call))
        account.current().call, account.current().round = id, number
        permit: Permit | None = _anyone
        if call.threads is not None:
            permit = await call.threads.resume(id, call.tool.agent)
        if permit is None:
            return error_result(CANNOT_RESUME)
        for wait in _waits():
            claim = Claim(call=id, number=number, id=uuid4())
            seen = await self._claim(call, claim)
            round = await self._judged(permit, claim, seen)
            if round is None:
                return error_result(CANNOT_RESUME)
            if seen.won:
                answering = self._answer(call, claim, round, seen)
                try:
                    # A client that stops waiting for JSON will come back: the run goes on, and its
                    # retry finds the outcome. One that closes a stream cancels the run.
                    if call.progress is None:
                        return await asyncio.shield(self._detach(answering, self._running))
                    return await answering
                except ClaimLost:
                    log.warning("a claim was lost")
            elif told := await self._tell(call, id, number, round, seen):
                account.current().repeat = True
                return told
            if time.monotonic() + wait > call.deadline:
                break
            await asyncio.sleep(wait)
        raise RetryLater("Another copy of this request is still at work.")

    async def _claim(self, call: Call, claim: Claim) -> Seen:
        """The round as it is after trying to claim it."""
        store = self._open_store()
        try:
            seen = await store.claim(
                claim,
                call.tool.agent,
                given=list(call.responses or ()),
                modes=sorted(call.modes),
                lease=self._left() if self._left else self._lease,
            )
        except asyncio.CancelledError:
            await asyncio.shield(self._detach(store.release(claim)))  # it may have been made
            raise
        if seen is None:
            raise InvalidRequestState("unknown or expired")
        if seen.won and seen.lapsed:
            log.warning("a claim lapsed and was taken over")
        return seen

    async def _judged(self, permit: Permit, claim: Claim, seen: Seen) -> Round | None:
        """The round, when what the thread was kept with lets this caller go on; if not, a claim is
        given back."""
        round: Round | None = None
        try:
            if permit(json.loads(seen.metadata or b"{}")):
                round = Round.load(seen.questions)
        finally:
            if seen.won and round is None:
                await asyncio.shield(self._detach(self._open_store().release(claim)))
        return round

    async def _tell(
        self, call: Call, id: UUID, number: int, round: Round, seen: Seen
    ) -> ToolResult | InputRequired | None:
        """What a request that holds no claim is told; None: look again later."""
        if seen.state != "settled":
            _require_modes(round, call)
        reading = read(round, call.responses or {})
        if isinstance(reading, Missing):
            _require_modes(round, call)
            return InputRequired(requests=round.requests, request_state=call.request_state or "")
        if seen.answers is not None:
            self._require_same(id, number, seen.answers, reading)
        if seen.state != "settled":
            return None
        if seen.outcome is not None:
            return ToolResult.load(seen.outcome)
        assert seen.next is not None, "a settled round without an outcome led to the next one"
        following = Round.load(seen.next)
        _require_modes(following, call)
        if seen.next_state == "withheld":
            await self._open_store().ask_withheld(id, number + 1, ttl=self._paused)
        return self._input_required(call, id, number + 1, following)

    async def _answer(
        self, call: Call, claim: Claim, round: Round, seen: Seen
    ) -> ToolResult | InputRequired:
        """Settle a round that this request has claimed, or give the claim back."""
        from core.claimed import Claimed

        store = self._open_store()
        try:
            reading = read(round, call.responses or {})
            if isinstance(reading, Missing):
                raise InvalidParams("an answer is missing")
            if seen.answers is not None:
                self._require_same(claim.call, claim.number, seen.answers, reading)
            digests = self._keys.digest(claim.call, claim.number, reading.answers)
            if isinstance(reading, Ended):
                result = error_result(reading.text)
                await store.finish(claim, digests, result.dump(), ttl=self._kept)
                return result
            run = await self._run(call, claim.call, seen.rows, partial(store.flush, claim, digests))
            waiting = run.state.waiting.still_pending(round.asked)
            if seen.answers is not None:
                # A run with these answers did not get to its end. See first whether what this one
                # does can be stored, or each retry would do it once more.
                await store.flush(claim, digests, Rows(checkpoints=seen.rows.checkpoints))
            if self._left is None:
                claim = await self._fresh(claim)
        except ClaimLost:
            raise
        except BaseException:
            # Nothing ran, so the round is as it was before this request.
            await asyncio.shield(self._detach(store.release(claim)))
            raise
        claimed = Claimed(
            store=store,
            claim=claim,
            digests=digests,
            renewals=None if self._left else self._renewing(),
            detached=self._detach,
        )
        values = {id: value for id, value in reading.values.items() if id in waiting}
        with claimed.kept(run, call.deadline) as watch:
            return await self._settle(call, claimed, round, run, claimed.run(run, values, watch))

    async def _fresh(self, claim: Claim) -> Claim:
        """The claim, renewed if it grew old while the agent was loaded.

        Raises:
            ClaimLost: another took it meanwhile.
        """
        if time.monotonic() - claim.since < self._lease.total_seconds() / 3:
            return claim
        renewed = replace(claim, since=time.monotonic())
        await self._open_store().renew(claim, lease=self._lease)
        return renewed

    async def _settle(
        self,
        call: Call,
        claimed: "Claimed",
        round: Round,
        run: "Run",
        running: "Awaitable[Finished | Paused | Stopped]",
    ) -> ToolResult | InputRequired:
        """Run on and store what it came to: the result, or the next round."""
        from core.failures import failed, refused_answer

        store, claim = claimed.store, claimed.claim
        try:
            came_to = self._came_to(call, await running)
            if isinstance(came_to, Round):
                return await self._next(call, claimed, run, came_to)
        except Unholdable as error:
            came_to = failed(call.tool.name, error)
        except (Refusal, StoreError):
            raise
        except Exception as error:
            if refusal := refused_answer(round, error):
                await claimed.reopen(run, call.deadline)
                raise refusal from error
            came_to = failed(call.tool.name, error)
        settling = store.finish(claim, claimed.digests, came_to.dump(), ttl=self._kept)
        await claimed.settle(run, settling)
        return came_to

    async def _next(
        self, call: Call, claimed: "Claimed", run: "Run", round: Round
    ) -> InputRequired:
        """Settle a round with the next one."""
        claim = claimed.claim
        withheld = not round.modes <= call.modes
        settling = claimed.store.next(
            claim,
            claimed.digests,
            _asking(round),
            run.state.rows(),
            withheld=withheld,
            ttl=self._kept if withheld else self._paused,
        )
        await claimed.settle(run, settling)
        _require_modes(round, call)
        return self._input_required(call, claim.call, claim.number + 1, round)

    def _detach(
        self, work: Awaitable[T], among: "set[asyncio.Future[Any]] | None" = None
    ) -> "asyncio.Future[T]":
        """Let work go on whatever becomes of the request that started it."""
        task = asyncio.ensure_future(work)
        among = self._ending if among is None else among
        among.add(task)
        task.add_done_callback(among.discard)
        return task

    def _renewing(self) -> "Renewals":
        from core.claims import Renewals

        if self._renewals is None:
            self._renewals = Renewals(self._open_store(), lease=self._lease)
        return self._renewals

    async def _run(
        self,
        call: Call,
        id: UUID,
        rows: Rows | None = None,
        sink: "Callable[[Rows], Awaitable[None]] | None" = None,
    ) -> "Run":
        """The agent ready to run for this call, on the state that its rows hold.

        Raises:
            InvalidParams: the agent's context schema refuses the context.
        """
        from core.runs import Run
        from core.saver import CallState

        agent = await self._catalog.agent(call.tool.agent)
        return Run(
            agent,
            CallState(str(id), agent.serializer(), rows=rows, sink=sink),
            context=agent.context(call.context),
            store=self._agent_store(),
            executing=self._at_work.setdefault(id, Work()),
            configurable=call.configurable,
            progress=call.progress,
        )

    def _agent_store(self) -> "OpenStore":
        async def opened() -> "BaseStore":
            from core.agent_store import AgentStore

            if self._stores is None:
                self._stores = AgentStore(self._open_store())
            return await self._stores()

        return opened

    def _binding(self, call: Call) -> Binding:
        return Binding(
            audience=self._audience,
            agent=call.tool.agent,
            tool=call.tool.name,
            arguments=call.arguments,
            principal=call.principal,
        )

    def _input_required(self, call: Call, id: UUID, number: int, round: Round) -> InputRequired:
        account.current().round = number
        return InputRequired(
            requests=round.requests,
            request_state=self._keys.seal(id, number, self._binding(call)),
        )

    def _require_same(
        self, id: UUID, number: int, stored: Mapping[str, str], reading: Ended | Resume
    ) -> None:
        if not self._keys.same(stored, id, number, reading.answers):
            raise InvalidParams(OTHER_ANSWERS)


def _anyone(metadata: Mapping[str, Any]) -> bool:
    """The permit where the deployment has no rules of its own."""
    return True


def _waits() -> Iterator[float]:
    """Seconds between two looks at a round that another request is settling, without end."""
    yield from _WAITS
    yield from itertools.repeat(_WAITS[-1])


def _require_modes(round: Round, call: Call) -> None:
    if missing := round.modes - call.modes:
        raise MissingCapability(missing, round.modes)


def _asking(round: Round) -> Asking:
    return Asking(keys=list(round.requests), modes=sorted(round.modes), questions=round.dump())
