"""Calls in any order, with faults at any statement, against a model of what must come of them.

Two instances over one database, each behind a line that can be cut or held at a statement. After
each step the tables, and how often which node ran, are what the model says. The last tests plant a
fault in the product, and the machine must find it.
"""

import asyncio
import base64
import logging
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from psycopg.sql import SQL, Identifier

from core import gate, rounds, saver, store, sweeper
from core.errors import Refusal
from core.migrate import DIRECTORY
from core.protocol import InputRequired, ToolResult
from core.questions import Asked
from core.records import Interrupted
from core.request_state import KeyRing
from core.rounds import Rounds
from core.store import Store
from core.sweeper import sweep
from core.waiting import Waiting
from tests.clock import set_ahead
from tests.conversation import MODES, Instance, catalog, said
from tests.faults import Line, Lines
from tests.model import (
    BUSY,
    LEASE,
    STORIES,
    Asks,
    Call,
    Ends,
    Lost,
    Refused,
    Reply,
    Stalled,
    Stop,
    Told,
    World,
    replied,
)
from tests.tables import execute, setting

pytestmark = pytest.mark.direct

OLD, NEW = "old-key-0123456789-abcdefghijklmnop", "new-key-0123456789-abcdefghijklmnop"

RINGS = {"a": (OLD, NEW), "b": (NEW, OLD)}
"""The instances and their keys, which are being rotated: one signs with the new key already."""

ANSWERS = ("right",) * 8 + ("extra", "missing", "missing", "wrong", "word", "decline", "cancel")

CHECKPOINTS = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")

FAULTS = st.builds(
    Stop,
    st.sampled_from([1, 2, 2, 3, 3, 4]),
    st.sampled_from(["before", "after"]),
    st.sampled_from(["cut", "crash", "stall"]),
)

Answer = ToolResult | InputRequired | Refusal | None
"""What a request was told; nothing, when its instance died or hangs."""


@dataclass(slots=True)
class Process:
    """One instance in an event loop of its own: when the loop is closed, nothing of it goes on."""

    name: str
    line: Line
    journals: Path
    stack: ExitStack
    runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    stalled: "asyncio.Task[Answer] | None" = None
    release: asyncio.Event = field(default_factory=asyncio.Event)
    instance: Instance = field(init=False)

    def __post_init__(self) -> None:
        store = Store(self.line.conninfo)
        rounds = Rounds(
            catalog=catalog,
            store=lambda: store,
            keys=KeyRing(RINGS[self.name]),
            lease=timedelta(seconds=LEASE),
        )
        self.instance = Instance(store=store, rounds=rounds, journal=self.journals)

    def ask(self, request: Coroutine[Any, Any, Answer], stop: Stop | None) -> Answer:
        """What a request is told, unless it dies or hangs at the fault that was chosen."""
        return self.runner.run(self._asked(request, stop))

    async def _asked(self, request: Coroutine[Any, Any, Answer], stop: Stop | None) -> Answer:
        over, release, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()

        async def crash() -> bool:
            await self.line.cut_off()
            loop.call_soon_threadsafe(over.set)
            return False

        async def stall() -> bool:
            loop.call_soon_threadsafe(over.set)
            await release.wait()
            return True

        if stop is not None:
            acts = {"cut": self.line.cut, "crash": crash, "stall": stall}
            self.line.at(stop.number, stop.when, acts[stop.act])
        task = asyncio.create_task(request)
        waiting = asyncio.create_task(over.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        self.line.calm()
        if not over.is_set():
            waiting.cancel()
            return await task
        if stop is not None and stop.act == "stall":
            self.stalled, self.release = task, release
        return None

    def go_on(self) -> Answer:
        """Let a stalled request go on."""
        task, self.stalled = self.stalled, None
        assert task is not None
        self.line.loop.call_soon_threadsafe(self.release.set)

        async def ended() -> Answer:
            return await task

        return self.runner.run(ended())

    def die(self) -> None:
        """End whatever runs here; of what it holds, nothing is given back."""
        self.line.go_down()
        self.close()

    def close(self) -> None:
        if not self.line.down:
            self.runner.run(self.instance.rounds.close())
            self.runner.run(self.instance.store.close())
        self.runner.run(_end_the_rest())
        self.runner.close()
        self.stack.close()


async def _end_the_rest() -> None:
    for _ in range(100):
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        if not rest:
            return
        for task in rest:
            task.cancel()
        await asyncio.wait(rest, timeout=0.005)  # a pool's task may swallow one


@dataclass(frozen=True, slots=True)
class Place:
    """Where the machine runs."""

    database: str
    folder: Path
    lines: Lines
    refusals: list[logging.LogRecord]


class Refusals(logging.Handler):
    """Collects what the database did not do for another reason than a fault on the line: what its
    constraints forbid, above all."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "the database failed" in record.getMessage():
            self.records.append(record)


class Calls(RuleBasedStateMachine):
    """The product beside its model."""

    place: Place

    def __init__(self) -> None:
        super().__init__()
        place = self.place
        self.started = time.monotonic()
        self.world = World()
        self.calls: list[Call] = []
        self.going_on: Callable[[], Told] | None = None
        self.stalled_call: Call | None = None
        self.questions: dict[str, dict[str, Any]] = {}
        self.journals = Path(tempfile.mkdtemp(dir=place.folder))
        self.processes: dict[str, Process] = {}
        self.database = psycopg.connect(place.database, autocommit=True)
        for table in ("intermezzo_calls", *CHECKPOINTS):
            self.database.execute(SQL("DELETE FROM {}").format(Identifier(table)))
        set_ahead(self.database, 0)
        for name in RINGS:
            self._start(name)

    def _start(self, name: str) -> None:
        stack = ExitStack()
        line = stack.enter_context(self.place.lines.to(self.place.database))
        self.processes[name] = Process(name, line, self.journals, stack)

    def teardown(self) -> None:
        for process in self.processes.values():
            if process.stalled is None:
                process.close()
            else:
                process.die()
        self.database.close()

    def _process(self, name: str) -> Process:
        """The instance of that name, or the other one while it hangs."""
        if self.processes[name].stalled is not None:
            [name] = RINGS.keys() - {name}
        return self.processes[name]

    def _send(
        self,
        process: Process,
        call: Call,
        expected: Told,
        stop: Stop | None,
        responses: dict[str, Any] | None,
        token: str | None = None,
        *,
        pages: bool = True,
    ) -> Answer:
        """A request; it gets all the time it needs, but where it is to be told to come back."""

        async def request() -> Answer:
            seconds = 0 if expected == BUSY else 20  # none for a second look
            try:
                return await process.instance.call(
                    call.agent,
                    responses,
                    token,
                    arguments={"journal": call.journal},
                    modes=MODES if pages else frozenset({"form"}),
                    deadline=time.monotonic() + seconds,
                )
            except Refusal as refusal:
                return refusal

        answer = process.ask(request(), stop)
        if isinstance(expected, Lost):
            process.die()
            self._start(process.name)
        return answer

    # What people and clients do.

    def _runnable(self) -> list[Call]:
        """Calls whose newest round a right answer would run on."""
        return [
            call
            for call in self.calls[-6:]
            if any(self.world.runs(call, call.known, Reply("right", word)) for word in "xy")
        ]

    def _drifting(self) -> list[Call]:
        """Calls of which one branch could ask on while the other is at work."""
        return [
            call
            for call in self._runnable()
            if call.agent == "drifting" and call.known == 1 and call.rounds[0].answers is None
            if not call.skipped
        ]

    @rule(
        agent=st.sampled_from([*STORIES]),
        name=st.sampled_from([*RINGS]),
        reply=st.none() | st.builds(Reply, st.sampled_from(ANSWERS)),
        stop=st.none()
        | st.builds(
            Stop,
            st.just(1),
            st.sampled_from(["before", "after"]),
            st.sampled_from(["cut", "crash"]),
        ),
    )
    def begin(self, agent: str, name: str, reply: Reply | None, stop: Stop | None) -> None:
        process = self._process(name)
        known = self.questions.get(agent)
        if known is None:
            reply = None
        call = Call(agent, tempfile.mkdtemp(dir=self.journals))
        expected = self.world.first(call, reply, stop)
        responses = None if reply is None or known is None else replied(reply, known)
        answer = self._send(process, call, expected, stop, responses)
        if isinstance(expected, Lost) and call.stored:
            [call.id] = self._stored() - {each.id for each in self.world.calls}
        self._check(call, expected, answer)
        if isinstance(expected, Asks):
            self.calls.append(call)

    @precondition(lambda self: self.calls)
    @rule(
        call=st.runner().flatmap(lambda self: st.sampled_from(self.calls[-6:])),
        name=st.sampled_from([*RINGS]),
        back=st.sampled_from([0, 0, 1]),
        kind=st.sampled_from(ANSWERS),
        word=st.sampled_from("xxxy"),
        odd=st.booleans(),
        newest=st.booleans(),
        pages=st.sampled_from([True, True, False]),
        stop=st.none() | FAULTS,
    )
    def answer(
        self,
        call: Call,
        name: str,
        back: int,
        kind: Any,
        word: str,
        odd: bool,
        newest: bool,
        pages: bool,
        stop: Stop | None,
    ) -> None:
        """Any answer to any round that was asked."""
        reply = Reply("odd" if odd and call.agent == "choosy_alone" else kind, word)
        number = max(1, call.known - back)
        self._answer(call, number, reply, self._process(name), stop, newest=newest, pages=pages)

    @precondition(lambda self: self._runnable())
    @rule(
        call=st.runner().flatmap(lambda self: st.sampled_from(self._runnable())),
        name=st.sampled_from([*RINGS]),
        word=st.sampled_from("xxxy"),
        stop=FAULTS,
    )
    def answer_in_trouble(self, call: Call, name: str, word: str, stop: Stop) -> None:
        """A right answer to the newest round, and a fault on the way."""
        self._answer(call, call.known, Reply("right", word), self._process(name), stop)

    def _answer(
        self,
        call: Call,
        number: int,
        reply: Reply,
        process: Process,
        stop: Stop | None,
        *,
        newest: bool = True,
        pages: bool = True,
    ) -> None:
        round = call.rounds[number - 1]
        pages = pages or self.world.is_page(call, number)
        if stop is not None and stop.act == "stall":
            can = self.going_on is None and self.world.runs(call, number, reply)
            stop = Stop(stop.number, "before", "stall") if can else None
        token = (max if newest else min)(round.tokens)
        expected = self.world.retry(call, number, reply, stop, pages=pages)
        responses = replied(reply, round.requests)
        answer = self._send(process, call, expected, stop, responses, token, pages=pages)
        if isinstance(expected, Stalled):
            self.going_on, self.stalled_call = expected.go_on, call
        self._check(call, expected, answer)

    @precondition(lambda self: self.going_on is not None)
    @rule(dies=st.sampled_from([False, False, True]))
    def go_on(self, dies: bool) -> None:
        """A request that hung goes on, or its process dies."""
        [process] = [each for each in self.processes.values() if each.stalled is not None]
        going_on, call = self.going_on, self.stalled_call
        self.going_on = self.stalled_call = None
        assert going_on is not None
        assert call is not None
        if dies:
            process.die()
            self._start(process.name)
        else:
            expected = going_on()
            self._check(call, expected, process.go_on())

    @precondition(lambda self: self.going_on is None and self._runnable())
    @rule(
        call=st.runner().flatmap(lambda self: st.sampled_from(self._runnable())),
        words=st.sampled_from(["xx", "xy"]),
    )
    def answer_twice_at_once(self, call: Call, words: str) -> None:
        """Both instances are sent an answer at the same moment."""
        number = call.known
        round = call.rounds[number - 1]
        replies = [Reply("right", word) for word in words]
        if not all(self.world.runs(call, number, reply) for reply in replies):
            return
        answers: dict[int, Answer] = {}

        def send(place: int, name: str) -> None:
            responses = replied(replies[place], round.requests)
            answers[place] = self._send(
                self.processes[name], call, Ends(), None, responses, min(round.tokens)
            )

        threads = [threading.Thread(target=send, args=each) for each in enumerate(RINGS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        order = [0, 1] if not isinstance(answers[0], Refusal) else [1, 0]
        for place in order:
            expected = self.world.retry(call, number, replies[place], None)
            self._check(call, expected, answers[place])

    @precondition(lambda self: self._drifting())
    @rule(call=st.runner().flatmap(lambda self: st.sampled_from(self._drifting())))
    def die_while_a_branch_has_asked_on(self, call: Call) -> None:
        """The second question of a branch is stored and seen by nobody; the sibling is at work."""
        reply = Reply("right")
        [round] = call.rounds
        process = self._process("a")
        (Path(call.journal) / "hold-slow").touch()
        saver.FLUSH_AFTER = 0.0
        stop = Stop(2, "after", "crash")
        responses = replied(reply, round.requests)
        self._send(process, call, Lost(), stop, responses, min(round.tokens))
        saver.FLUSH_AFTER = NEVER
        (Path(call.journal) / "hold-slow").unlink()
        self.world.drift(call, reply)

    @precondition(lambda self: self.world.any_claimed())
    @rule()
    def claims_lapse(self) -> None:
        self._pass_time(LEASE + 20)

    @precondition(lambda self: self.calls)
    @rule(seconds=st.sampled_from([60, 300, 590, 36_000]))
    def time_passes(self, seconds: float) -> None:
        self._pass_time(seconds)

    @precondition(lambda self: self._runnable())
    @rule(call=st.runner().flatmap(lambda self: st.sampled_from(self._runnable())))
    def a_call_has_nearly_expired(self, call: Call) -> None:
        if (left := call.expires - self.world.now) > LEASE:
            self._pass_time(left - LEASE / 3)

    def _pass_time(self, seconds: float) -> None:
        self.world.pass_time(seconds)
        set_ahead(self.database, self.world.now)

    @precondition(lambda self: self.world.any_expired())
    @rule(name=st.sampled_from([*RINGS]), cut=st.none() | st.integers(1, 9))
    def sweep(self, name: str, cut: int | None) -> None:
        process = self._process(name)
        line = process.line
        if cut is not None:
            line.at(cut, "before", line.cut)
        try:
            swept: int | None = process.runner.run(sweep(process.instance.store))
        except Interrupted:
            swept = None
            self._until_nobody_sweeps()
        line.calm()
        expected = self.world.sweep(done=swept is not None)
        assert swept in (None, expected)
        if swept is None:
            assert cut is not None
            assert cut <= (9 if expected else 5)

    def _until_nobody_sweeps(self) -> None:
        """Until the server has noticed that a sweep's connection is gone."""
        held = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"
        while self.database.execute(held).fetchone():
            pass

    # What must be so.

    def _check(self, call: Call, expected: Told, answer: Answer) -> None:
        if isinstance(expected, Lost | Stalled):
            assert answer is None
        elif isinstance(expected, Refused):
            assert isinstance(answer, Refusal), answer
            assert answer.code == expected.code
            assert answer.message.startswith(expected.text)
        elif isinstance(expected, Ends):
            assert isinstance(answer, ToolResult), answer
            assert answer.is_error == bool(expected.error)
            told = said(answer)
            if expected.error:
                assert told == expected.error
            else:
                listed = ",".join(f'"{each}"' for each in expected.answers)
                assert told.endswith(f'"answers":[{listed}]}}'), told
        else:
            assert isinstance(answer, InputRequired), answer
            self._check_questions(call, expected.number, answer)

    def _check_questions(self, call: Call, number: int, answer: InputRequired) -> None:
        id, stated = _opened(answer.request_state)
        assert stated == number
        call.id = call.id or id
        assert id == call.id
        messages = sorted(each["params"]["message"] for each in answer.requests.values())
        assert messages == sorted(call.turn(number).questions)
        round = call.rounds[number - 1]
        assert round.requests in ({}, answer.requests)
        round.requests = answer.requests
        round.tokens.add(answer.request_state)
        assert len(round.tokens) <= 2, "one for each key"
        if number == 1 and not call.skipped:
            self.questions[call.agent] = answer.requests

    def _stored(self) -> set[str]:
        return {str(id) for (id,) in self.database.execute("SELECT id FROM intermezzo_calls")}

    @invariant()
    def the_tables_agree(self) -> None:
        stored = {call.id: call for call in self.world.calls if call.stored}
        rows = self.database.execute(
            "SELECT id::text, agent, extract(epoch FROM expires_at - now())::float"
            " FROM intermezzo_calls"
        ).fetchall()
        assert {(id, agent) for id, agent, _ in rows} == {
            (call.id, call.agent) for call in stored.values()
        }
        for id, _, lives in rows:
            took = time.monotonic() - self.started
            assert stored[id].expires - took - 1 < lives < stored[id].expires + 1
        rounds = self.database.execute(
            "SELECT call_id::text, number, state, claimed_until > intermezzo_now(),"
            " answers IS NOT NULL, outcome IS NOT NULL FROM intermezzo_rounds"
        ).fetchall()
        assert set(rounds) == set(self._rounds(stored.values()))
        for table in CHECKPOINTS:
            threads = self.database.execute(
                SQL("SELECT DISTINCT thread_id FROM {}").format(Identifier(table))
            ).fetchall()
            assert {thread for (thread,) in threads} <= stored.keys()

    def _rounds(self, calls: Any) -> Iterator[tuple[Any, ...]]:
        for call in calls:
            for number, each in enumerate(call.rounds, 1):
                live = each.until > self.world.now if each.state == "claimed" else None
                answered = each.answers is not None
                outcome = each.state == "settled" and isinstance(each.led_to, Ends)
                yield call.id, number, each.state, live, answered, outcome

    @invariant()
    def the_database_had_nothing_to_forbid(self) -> None:
        assert not self.place.refusals

    @invariant()
    def every_node_ran_as_often_as_it_may(self) -> None:
        for call in self.world.calls:
            notes = Path(call.journal) / "ran"
            ran = Counter(notes.read_text("utf-8").split() if notes.exists() else ())
            assert ran == call.ran, call.agent


def _opened(token: str) -> tuple[str, int]:
    """What a token says of itself."""
    data = base64.urlsafe_b64decode(token.partition(".")[0] + "==")
    return str(UUID(bytes=data[:16])), int.from_bytes(data[16:])


NEVER = 3600.0
"""Seconds after which a finished node is stored beside its siblings: here, only when it is told."""


@pytest.fixture
def place(
    database: str, lines: Lines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    monkeypatch.setattr(saver, "FLUSH_AFTER", NEVER)
    # The server itself is not killed here, so that nothing needs to wait for the disk.
    setting(database, "synchronous_commit", "off")
    refusals = Refusals()
    logging.getLogger("core").addHandler(refusals)
    yield Place(database, tmp_path, lines, refusals.records)
    logging.getLogger("core").removeHandler(refusals)


EXAMPLES = os.environ.get("MODEL_EXAMPLES")
"""So many examples, other ones each time, instead of the same hundred."""

BUDGET = settings(
    max_examples=int(EXAMPLES or 100),
    stateful_step_count=30,
    deadline=None,
    derandomize=EXAMPLES is None,
    database=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def run_machine(where: Place, budget: settings) -> None:
    class Placed(Calls):
        place = where

    run_state_machine_as_test(Placed, settings=budget)


def test_calls_are_as_their_model_says(place: Place) -> None:
    run_machine(place, BUDGET)


# The machine itself is tested: with one rule of the design taken out, it must fail.


def without(monkeypatch: pytest.MonkeyPatch, module: Any, text: str, *statements: str) -> None:
    """Take a condition out of statements."""
    for name in statements:
        changed = getattr(module, name).replace(text, "")
        assert changed != getattr(module, name), "there was nothing to take out"
        monkeypatch.setattr(module, name, changed)


def no_fence(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    without(monkeypatch, store, " AND claim = %(claim)s", "_LAPSE")
    without_in_functions(database, " AND claim = the_claim")


def no_digests(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    def same(*_: Any) -> bool:
        return True

    monkeypatch.setattr(KeyRing, "same", same)


def no_filter_on_what_is_pending(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    def still_pending(_: Waiting, asked: Iterable[Asked]) -> set[str]:
        return {each.id for each in asked}

    monkeypatch.setattr(Waiting, "still_pending", still_pending)


def without_in_functions(database: str, text: str) -> None:
    """Take a condition out of the database's functions."""
    functions = (DIRECTORY / "0003_functions.sql").read_text("utf-8")
    assert text in functions, "there was nothing to take out"
    execute(database, functions.replace(text, ""))


def no_expiry(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    without_in_functions(database, " AND c.expires_at > intermezzo_now()")


def no_end_of_a_claim(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    without_in_functions(database, " AND r.claimed_until <= intermezzo_now()")


def no_regard_for_claims(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    clause = "AND NOT (r.state = 'claimed' AND r.claimed_until > {schema}.intermezzo_now())"
    without(monkeypatch, sweeper, clause, "_EXPIRED")


def no_gate(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    async def pass_by(*_: Any, **__: Any) -> None:
        pass

    monkeypatch.setattr(gate.Gate, "on_chain_start", pass_by)


def no_longer_life(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    monkeypatch.setattr(rounds, "KEPT", rounds.PAUSED)


PLANTED = (
    *(no_fence, no_digests, no_filter_on_what_is_pending, no_expiry),
    *(no_end_of_a_claim, no_regard_for_claims, no_gate, no_longer_life),
)


@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_fault_is_found(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch, str], None],
) -> None:
    plant(monkeypatch, place.database)
    # Some are noticed by a constraint of the tables first, and some by chance.
    with pytest.raises((AssertionError, ExceptionGroup, psycopg.IntegrityError, Flaky)):
        run_machine(place, settings(BUDGET, phases=[Phase.generate]))
