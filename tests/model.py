"""What must happen to calls: who is told what, which nodes run how often, and which rows are left.

A model: it knows the design's rules and nothing of how they are kept. A request is a list of
statements, with the nodes that run before each; a fault stops it before or after one of them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

LEASE, KEPT, PAUSED = 100.0, 600.0, 86_400.0
"""Seconds. The lease is longer than the product's own, so that nothing is renewed meanwhile."""

MARGIN = 25.0
"""Real seconds that a test may take without a lifetime ending by it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One round of a story.

    Attributes:
        questions: the messages that are asked.
        runs: the nodes that a right answer makes run, superstep by superstep.
        again: the nodes that run once more when all of that is stored, but not the outcome.
    """

    questions: tuple[str, ...]
    runs: tuple[tuple[str, ...], ...]
    again: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Story:
    """What one of the tests' agents does.

    Attributes:
        starts: the nodes that a first request makes run.
        lists: the answers that the result lists, by what was answered in each round.
    """

    starts: tuple[str, ...]
    turns: tuple[Turn, ...]
    lists: tuple[str, ...]

    def result(self, *words: str) -> tuple[str, ...]:
        return tuple(each.format(*words) for each in self.lists)


def _two(question: str, other: str) -> Story:
    return Story(
        ("first?",),
        (
            Turn((question,), (("first?", "first"), ("second?",)), ("second?",)),
            Turn((other,), (("second?", "second"),)),
        ),
        ("first={0}", "second={1}"),
    )


STORIES: Mapping[str, Story] = {
    "one": Story(
        ("before", "ask?"),
        (Turn(("Go?",), (("ask?", "ask"),)),),
        ("before", "ask={0}"),
    ),
    "then": Story(
        ("ask?",),
        (Turn(("Go?",), (("ask?", "ask"), ("charge",), ("ship",))),),
        ("ask={0}", "charge", "ship"),
    ),
    "two": _two("First?", "Second?"),
    "same": _two("Sure?", "Sure?"),
    "twice": Story(
        ("both",),
        (Turn(("Name?",), (("both",),), ("both",)), Turn(("Colour?",), (("both",),))),
        ("{0}={1}",),
    ),
    "pair": Story(
        ("left?", "right?"),
        (Turn(("Left?", "Right?"), (("left?", "left", "right?", "right"),)),),
        ("left={0}", "right={0}"),
    ),
    "url_later": Story(
        ("url?",),
        (Turn(("Form first?",), (("url?",),), ("url?",)), Turn(("Open it.",), (("url?", "url"),))),
        ("{0}:{1}",),
    ),
    "choosy_alone": Story(
        ("picky?",),
        (Turn(("How many?",), (("picky?", "picky"),)),),
        ("picky={0}",),
    ),
    "drifting": Story(
        ("moving?", "slow?"),
        (
            Turn(
                ("Delete A?", "Slow?"),
                (("moving?", "moving-first", "slow?", "slow"),),
                ("moving?", "moving-first"),
            ),
            Turn(("Delete B?",), (("moving?", "moving-first", "moving={0},{1}"),)),
        ),
        ("moving={0},{1}", "slow={0}"),
    ),
}

Kind = Literal["right", "extra", "missing", "wrong", "word", "odd", "decline", "cancel"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a person, or a client, makes of a round.

    right, and extra: with answers to questions that were not asked; missing: one has no answer;
    wrong: it doesn't fit the form; word: no action that there is; odd: only the node can tell that
    it doesn't fit.
    """

    kind: Kind
    word: str = "x"

    @property
    def delivered(self) -> str | None:
        """What tells this reply from another one that may run; None when it may not."""
        if self.kind in ("right", "extra"):
            return self.word
        return self.kind if self.kind in ("odd", "decline", "cancel") else None


def replied(reply: Reply, requests: Mapping[str, Any]) -> dict[str, Any]:
    """The `inputResponses` of a reply to these questions."""
    answers = {key: _answer(reply, request["params"]) for key, request in requests.items()}
    if reply.kind == "missing":
        answers.pop(min(answers))
    if reply.kind == "extra":
        answers |= {"undefined": {"action": "accept"}, "": {"action": "reject"}}
    return answers


def _answer(reply: Reply, params: Mapping[str, Any]) -> dict[str, Any]:
    if reply.kind in ("decline", "cancel"):
        return {"action": reply.kind, "content": {"response": "left over"}}
    if reply.kind == "word":
        return {"action": "reject"}
    if params["mode"] == "url":
        return {"action": "accept"}
    if params["message"] == "How many?":
        numbers = {"wrong": "many", "odd": 3, "x": 4, "y": 6}
        return {
            "action": "accept",
            "content": {"number": numbers.get(reply.kind, numbers[reply.word])},
        }
    return {"action": "accept", "content": {"response": 5 if reply.kind == "wrong" else reply.word}}


# What a request leads to.


@dataclass(frozen=True, slots=True)
class Asks:
    """The questions of a round, with its state."""

    call: "Call"
    number: int


@dataclass(frozen=True, slots=True)
class Ends:
    """A result: what it lists, or the text of its error."""

    answers: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A JSON-RPC error: its code, and what its text begins with."""

    code: int
    text: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Nobody is told anything: the process is gone."""


@dataclass(frozen=True, slots=True)
class Stalled:
    """The request hangs before a statement; `go_on` tells what happens once it is let go."""

    go_on: Callable[[], "Told"]


Told = Asks | Ends | Refused | Lost | Stalled

UNKNOWN = Refused(-32602, "Invalid or expired requestState")
MISFIT = Refused(-32602, "Form content does not match requestedSchema")
UNREADABLE = Refused(-32602, "The answer to")
OTHER = Refused(-32602, "This round was already answered with other answers")
BUSY = Refused(1001, "Another copy of this request is still at work.")
UNREACHED = Refused(1001, "The database can't be reached now.")
NO_PAGE = Refused(-32021, "This tool asks for human input and needs url elicitation.")


@dataclass(slots=True)
class Round:
    """A round's row, and what its client knows."""

    state: Literal["withheld", "asked", "claimed", "settled"] = "asked"
    holder: object = None
    until: float = 0.0
    answers: str | None = None
    done: int = 0
    led_to: Told | None = None
    requests: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tokens: set[str] = field(default_factory=set[str])


@dataclass(slots=True)
class Call:
    """A call: its rows, and how often its nodes ran.

    Attributes:
        id: of the call, once it is known.
        skipped: rounds that were answered in the first request, of which nothing is stored.
        drifted: a branch has moved on to a question that nobody has seen.
    """

    agent: str
    journal: str
    expires: float = 0.0
    id: str = ""
    stored: bool = False
    rounds: list[Round] = field(default_factory=list[Round])
    skipped: list[str] = field(default_factory=list[str])
    ran: Counter[str] = field(default_factory=Counter[str])
    drifted: bool = False

    @property
    def story(self) -> Story:
        return STORIES[self.agent]

    @property
    def known(self) -> int:
        """The newest round whose state a client has."""
        return sum(bool(each.tokens) for each in self.rounds)

    def turn(self, number: int) -> Turn:
        return self.story.turns[len(self.skipped) + number - 1]

    def is_last(self, number: int) -> bool:
        return len(self.skipped) + number == len(self.story.turns)

    def words(self, number: int) -> list[str]:
        """What was answered up to a round, with its answer."""
        return [*self.skipped, *(each.answers or "" for each in self.rounds[:number])]

    def expired(self, now: float) -> bool:
        return self.expires <= now


@dataclass(frozen=True, slots=True)
class Step:
    """One statement: the nodes that run before it, what it does, and what a cut leads to.

    Attributes:
        cut: what is told when the connection breaks there; None: a second try is made unseen.
        kept: what is left once the claim was given back after that.
    """

    runs: Sequence[str] = ()
    does: Callable[[], None] = lambda: None
    cut: Told | None = None
    kept: Callable[[], None] = lambda: None


Act = Literal["cut", "crash", "stall"]


@dataclass(frozen=True, slots=True)
class Stop:
    """A fault at the nth statement of a request."""

    number: int
    when: Literal["before", "after"]
    act: Act


class World:
    """All calls, and the time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[Call] = []

    # Time and the sweep.

    def pass_time(self, seconds: float) -> None:
        """Let time pass: so many seconds, or a few more, so that no lifetime ends just then."""
        self.now += seconds
        while any(abs(end - self.now) < MARGIN for end in self._ends()):
            self.now += MARGIN

    def _ends(self) -> Iterator[float]:
        for call in self.calls:
            if call.stored:
                yield call.expires
            yield from (each.until for each in call.rounds if each.state == "claimed")

    def sweep(self, *, done: bool = True) -> int:
        """What a sweep deletes; with a fault before its end, nothing."""
        swept = [
            call
            for call in self.calls
            if call.stored
            and call.expired(self.now)
            and not any(self._live(each) for each in call.rounds)
        ]
        for call in swept if done else ():
            call.stored = False
        return len(swept)

    def _live(self, round: Round) -> bool:
        return round.state == "claimed" and round.until > self.now

    # First requests.

    def first(self, call: Call, reply: Reply | None, stop: Stop | None) -> Told:
        """A first request, perhaps with an answer to its first round."""
        self.calls.append(call)
        call.ran.update(call.story.starts)
        turn = call.story.turns[0]
        if reply is not None and reply.kind != "missing":
            if reply.kind == "word":
                return UNREADABLE
            if reply.kind == "wrong":
                return MISFIT
            if reply.kind in ("decline", "cancel"):
                return _declined(reply)
            if reply.kind == "odd":
                call.ran.update(("picky?",))
                return MISFIT
            for nodes in turn.runs:
                call.ran.update(nodes)
            call.skipped.append(_word(call, turn, reply))
            if call.is_last(0):
                return Ends(call.story.result(*call.skipped))

        def pause() -> None:
            call.stored = True
            call.expires = self.now + PAUSED
            call.rounds.append(Round())

        return self._take([Step((), pause)], Asks(call, 1), call, stop)

    # Retries.

    def retry(
        self, call: Call, number: int, reply: Reply, stop: Stop | None, *, pages: bool = True
    ) -> Told:
        """A request with the state of a round. Without `pages` its client knows forms alone."""
        round = call.rounds[number - 1]
        look = Step()
        if not call.stored or call.expired(self.now):
            return self._take([look], UNKNOWN, call, stop)
        turn = call.turn(number)
        if reply.kind == "missing":
            return self._take([look], Asks(call, number), call, stop)
        if round.state == "settled" or self._live(round):
            return self._look(call, number, reply, stop, pages)
        if reply.kind in ("word", "wrong"):
            told = MISFIT if reply.kind == "wrong" else UNREADABLE
            if _is_page(turn) and reply.kind == "wrong":
                return self._run(call, number, reply, stop, pages)
            return self._take(self._given_back(call, round), told, call, stop)
        word = _word(call, turn, reply)
        if round.answers not in (None, word):
            return self._take(self._given_back(call, round), OTHER, call, stop)
        if reply.kind in ("decline", "cancel") and not _is_page(turn):
            return self._decline(call, round, reply, stop)
        if reply.kind == "odd":
            return self._misfit(call, round, stop)
        return self._run(call, number, reply, stop, pages)

    def runs(self, call: Call, number: int, reply: Reply) -> bool:
        """Whether a reply would make the agent run on."""
        round = call.rounds[number - 1]
        return (
            reply.kind in ("right", "extra")
            and call.stored
            and not call.expired(self.now)
            and round.state != "settled"
            and not self._live(round)
            and round.answers in (None, _word(call, call.turn(number), reply))
        )

    def any_claimed(self) -> bool:
        return any(self._live(each) for call in self.calls for each in call.rounds)

    def any_expired(self) -> bool:
        return any(call.stored and call.expired(self.now) for call in self.calls)

    def is_page(self, call: Call, number: int) -> bool:
        """Whether a round asks for a page, which a client of forms never saw."""
        return _is_page(call.turn(number))

    def drift(self, call: Call, reply: Reply) -> None:
        """A run of `drifting` dies when one branch has asked on, and the other is at work."""
        [round] = call.rounds
        round.state, round.holder, round.until = "claimed", object(), self.now + LEASE
        round.answers = reply.word
        call.ran.update(("moving?", "moving-first", "slow?"))
        call.drifted = True

    def _look(self, call: Call, number: int, reply: Reply, stop: Stop | None, pages: bool) -> Told:
        """What is told of a round that can't be claimed."""
        round, look = call.rounds[number - 1], Step()
        turn = call.turn(number)
        told: Told | None = None
        if reply.kind == "word":
            told = UNREADABLE
        elif reply.kind == "wrong" and not _is_page(turn):
            told = MISFIT
        elif round.answers not in (None, _word(call, turn, reply)):
            told = OTHER
        elif round.state != "settled":
            told = BUSY
        if told is not None:
            return self._take([look], told, call, stop)
        assert round.led_to is not None
        if not isinstance(round.led_to, Asks):
            return self._take([look], round.led_to, call, stop)
        if not pages and _is_page(call.turn(number + 1)):
            return self._take([look], NO_PAGE, call, stop)
        if call.rounds[number].state != "withheld":
            return self._take([look], round.led_to, call, stop)

        def ask() -> None:
            call.rounds[number].state = "asked"
            call.expires = self.now + PAUSED

        return self._take([look, Step((), ask)], round.led_to, call, stop)

    def _claimed(self, round: Round, holder: object) -> Step:
        def claim() -> None:
            round.state, round.holder, round.until = "claimed", holder, self.now + LEASE

        return Step((), claim)

    def _given_back(self, call: Call, round: Round) -> list[Step]:
        holder = object()

        def give_back() -> None:
            if round.holder is holder:
                self._let_go(round)

        return [self._claimed(round, holder), Step((), give_back)]

    def _let_go(self, round: Round) -> None:
        if round.answers is None:
            round.state, round.holder = "asked", None
        else:
            round.until = self.now

    def _decline(self, call: Call, round: Round, reply: Reply, stop: Stop | None) -> Told:
        holder, told = object(), _declined(reply)

        def settle() -> None:
            self._settle(call, round, reply.kind, told)

        steps = [
            self._claimed(round, holder),
            Step((), settle, UNREACHED, lambda: self._let_go(round)),
        ]
        return self._take(steps, told, call, stop, round, holder)

    def _misfit(self, call: Call, round: Round, stop: Stop | None) -> Told:
        holder = object()

        def reopen() -> None:
            round.state, round.holder, round.answers = "asked", None, None

        steps = [self._claimed(round, holder), Step(("picky?",), reopen)]
        return self._take(steps, MISFIT, call, stop, round, holder)

    def _run(self, call: Call, number: int, reply: Reply, stop: Stop | None, pages: bool) -> Told:
        round, turn, holder = call.rounds[number - 1], call.turn(number), object()
        word = _word(call, turn, reply)
        left = turn.runs[round.done :] or (turn.again,)
        total = len(turn.runs)
        steps = [self._claimed(round, holder)]
        if round.answers is not None:
            steps.append(Step())  # an earlier run came to nothing: can anything be stored?
        words = [*call.words(number - 1), word]
        told: Told = Asks(call, number + 1)
        if call.is_last(number):
            told = Ends(call.story.result(*words))
        withheld = not call.is_last(number) and not pages and _is_page(call.turn(number + 1))
        for place, nodes in enumerate(left, total - len(left) + 1):
            finished = min(place, total)

            def mark(finished: int = finished) -> None:
                round.answers, round.done = word, finished

            def give_back(finished: int = finished) -> None:
                round.answers, round.done, round.until = word, finished, self.now

            def settle() -> None:
                self._settle(call, round, word, told, withheld=withheld)

            runs = [node.format(*words) for node in nodes]
            last = place >= total
            # What finished is stored again, unseen; an outcome is not.
            steps.append(Step(runs, settle, UNREACHED, give_back) if last else Step(runs, mark))
        ended = NO_PAGE if withheld else told
        return self._take(
            steps, ended, call, stop, round, holder, lambda: self.retry(call, number, reply, None)
        )

    def _settle(
        self, call: Call, round: Round, word: str, told: Told, *, withheld: bool = False
    ) -> None:
        round.state, round.holder, round.answers, round.led_to = "settled", None, word, told
        if isinstance(told, Asks):
            call.rounds.append(Round("withheld" if withheld else "asked"))
        lives = PAUSED if isinstance(told, Asks) and not withheld else KEPT
        call.expires = self.now + lives

    # Faults.

    def _take(
        self,
        steps: Sequence[Step],
        told: Told,
        call: Call,
        stop: Stop | None,
        round: Round | None = None,
        holder: object = None,
        anew: Callable[[], Told] | None = None,
    ) -> Told:
        """Take the steps of a request, up to its fault."""
        for place, step in enumerate(steps, 1):
            call.ran.update(step.runs)
            if stop is None or stop.number != place:
                step.does()
                continue
            if stop.act == "stall":
                return self._stalled(steps[place - 1 :], told, call, round, holder, anew, place)
            if stop.when == "after" or (stop.act == "cut" and step.cut is None):
                step.does()
            if stop.act == "crash":
                return Lost()
            if step.cut is not None:
                if round is not None and round.holder is holder:
                    step.kept()
                return step.cut
        return told

    def _stalled(
        self,
        steps: Sequence[Step],
        told: Told,
        call: Call,
        round: Round | None,
        holder: object,
        anew: Callable[[], Told] | None,
        place: int,
    ) -> Told:
        def go_on() -> Told:
            assert anew is not None, "only runs are stalled"
            if place == 1 or round is None or round.holder is not holder or not call.stored:
                return anew()
            first, *rest = steps
            first.does()
            return self._take(rest, told, call, None)

        return Stalled(go_on)


def _is_page(turn: Turn) -> bool:
    return turn.questions == ("Open it.",)


def _word(call: Call, turn: Turn, reply: Reply) -> str:
    """What a right reply is to its agent."""
    if _is_page(turn):
        return reply.kind if reply.kind in ("decline", "cancel") else "accept"
    if call.agent == "choosy_alone" and reply.kind in ("right", "extra"):
        return {"x": "4", "y": "6"}[reply.word]
    return reply.delivered or ""


def _declined(reply: Reply) -> Ends:
    word = "declined" if reply.kind == "decline" else "cancelled"
    return Ends(error=f"The request for input was {word}.")
