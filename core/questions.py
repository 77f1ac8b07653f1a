"""Questions: what is pending in a paused call, as elicitation requests, and back.

Pure module. Asking and reading are each other's inverse: `ask` makes of pending interrupts a round,
which holds all that `read` needs to make of the answers the values to resume with, on any machine.

A key is a pure function of its question, because clients replay calls from the start and answer by
key. The order in which interrupts were raised has no part in it: it varies from run to run. What
numbers equal questions is the place of their tasks in the graph.

| interrupt | key | resumes with |
|---|---|---|
| a string | `answer-<d>` | the string |
| a value with a response schema | `answer-<d>` | the content, or its `response` |
| `mcp_elicitation` | the agent's; of several `<d>.<n>/<key>` | `{"responses": {key: answer}}` |
| HITL, batched | `review-<d>.<n>` for each call | `{"decisions": [...]}` |
| HITL, per call | `review-<d>.<n>` | the decision |

Several pending questions with one text and schema share a key, and one answer resumes them all.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from core import plain, relays, reviews, typed
from core.answers import MISMATCH, Answer, Given, Unfit, Withheld, parse
from core.cannot_ask import BREAKPOINT, CannotAsk
from core.drafts import Draft, Question, Shape, draft
from core.errors import InvalidParams
from core.forms import RESPONSE
from core.pending import Pending, as_json, ordered
from core.validation import Misfit

__all__ = [
    "Asked",
    "Ended",
    "Missing",
    "Pending",
    "Resume",
    "Round",
    "as_json",
    "ask",
    "read",
]

_KINDS: Final[Mapping[str, type[Question]]] = {
    "typed": typed.Typed,
    "relayed_form": relays.RelayedForm,
    "relayed_url": relays.RelayedUrl,
    "review": reviews.Review,
}
"""What a stored round calls its questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An interrupt that a round asked, and how answers become what it resumes with.

    Attributes:
        namespace: of the deepest write that lists it; with `task` and `answered` it tells whether
            the interrupt is still pending later on.
        answered: how many answers its task had used when it asked.
        keys: the agent's own name and the key of each of its questions, in order.
    """

    id: str
    namespace: str
    task: str
    answered: int
    shape: Shape
    keys: tuple[tuple[str, str], ...]

    def resume(self, values: Mapping[str, Any]) -> Any:
        """The resume value, from the value of each of its keys."""
        if self.shape == "responses":
            return {"responses": {own: values[key] for own, key in self.keys}}
        if self.shape == "decisions":
            return {"decisions": [values[key] for _, key in self.keys]}
        [(_, key)] = self.keys
        return values[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One set of questions asked together: what it takes to ask them again and to check answers."""

    questions: dict[str, Question]
    asked: tuple[Asked, ...]

    @property
    def requests(self) -> dict[str, dict[str, Any]]:
        """The elicitation requests by key, as they go on the wire."""
        return {
            key: {"method": "elicitation/create", "params": question.params()}
            for key, question in self.questions.items()
        }

    @property
    def modes(self) -> frozenset[str]:
        """What a client must be able to do: `form`, `url` or both."""
        return frozenset(question.mode for question in self.questions.values())

    def refusal(self, misfits: Sequence[Misfit]) -> InvalidParams:
        """Of an answer that only the agent could judge. Whose it was is known where there is but
        one question."""
        if len(self.questions) > 1:
            errors = [{"field": each.field, "reason": each.reason} for each in misfits]
            return InvalidParams(MISMATCH, data={"errors": errors})
        [(key, question)] = self.questions.items()
        if isinstance(question, typed.Typed) and question.form.wrapped:
            misfits = [Misfit(RESPONSE, each.reason) for each in misfits]
        return Unfit(*misfits).refusal(key)

    def dump(self) -> bytes:
        """The round as JSON: keys keep their order, and NUL survives. `load` is the inverse."""
        names = {kind: name for name, kind in _KINDS.items()}
        questions = {
            key: {"kind": names[type(question)], **question.as_json()}
            for key, question in self.questions.items()
        }
        asked = [
            [each.id, each.namespace, each.task, each.answered, each.shape, each.keys]
            for each in self.asked
        ]
        return plain.dumps({"questions": questions, "asked": asked}).encode()

    @classmethod
    def load(cls, data: bytes) -> Self:
        """The round that `dump` wrote."""
        entry = json.loads(data)
        questions = {
            key: _KINDS[question["kind"]].from_json(question)
            for key, question in entry["questions"].items()
        }
        asked = tuple(
            Asked(
                id=id,
                namespace=namespace,
                task=task,
                answered=answered,
                shape=shape,
                keys=tuple((own, key) for own, key in keys),
            )
            for id, namespace, task, answered, shape, keys in entry["asked"]
        )
        return cls(questions=questions, asked=asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A question has no answer: ask all of them again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A decline or cancel ends the call with this text as its error result.

    Attributes:
        answers: for each key, the JSON that tells this answer from another one.
    """

    text: str
    answers: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """All questions are answered.

    Attributes:
        values: the resume value of each interrupt, by its id.
        answers: for each key, the JSON that tells this answer from another one.
    """

    values: dict[str, Any]
    answers: dict[str, Any]


def ask(pending: Sequence[Pending]) -> Round:
    """The questions of all pending interrupts, as one round.

    Args:
        pending: in any order; the same interrupt may be given once for each task that lists it.

    Raises:
        CannotAsk: one of them can't be asked; no other exception, whatever was raised. Nothing
            pending means that the graph stopped at a static breakpoint.
    """
    each_once = ordered(pending)
    if not each_once:
        raise CannotAsk(BREAKPOINT)
    questions: dict[str, Question] = {}
    asked: list[Asked] = []
    seen: Counter[str] = Counter()
    for interrupt in each_once:
        drafted = draft(interrupt)
        keys = tuple(_keys(drafted, seen, alone=len(each_once) == 1))
        for (_, key), question in zip(keys, drafted.questions.values(), strict=True):
            questions.setdefault(key, question)
        asked.append(
            Asked(
                id=interrupt.id,
                namespace=interrupt.namespace,
                task=interrupt.task,
                answered=interrupt.answered,
                shape=drafted.shape,
                keys=keys,
            )
        )
    return Round(questions=questions, asked=tuple(asked))


def read(round: Round, responses: Mapping[str, Any]) -> Missing | Ended | Resume:
    """What the answers to a round lead to. Answers to what it did not ask are ignored.

    Raises:
        InvalidParams: an answer is malformed or does not fit its question; no other exception,
            whatever JSON the answers are. A malformed one is told before a missing one, that
            before one that does not fit, and that before a decline.
    """
    answers = {
        key: parse(key, responses[key], form=question.mode == "form")
        for key, question in round.questions.items()
        if key in responses
    }
    if len(answers) < len(round.questions):
        return Missing()
    given = {key: _read(key, round.questions[key], answer) for key, answer in answers.items()}
    records = {key: each.record for key, each in given.items()}
    for each in given.values():
        if isinstance(each, Withheld):
            return Ended(text=each.text, answers=records)
    values = {key: each.value for key, each in given.items() if isinstance(each, Given)}
    return Resume(values={each.id: each.resume(values) for each in round.asked}, answers=records)


def _keys(drafted: Draft, seen: Counter[str], *, alone: bool) -> Iterator[tuple[str, str]]:
    """The agent's own name and the key of each question. `seen` counts equal digests."""
    if drafted.shape == "responses":
        [digest] = drafted.digests
        prefix = "" if alone else f"{_numbered(digest, seen)}/"
        yield from ((own, prefix + own) for own in drafted.questions)
        return
    for (own, question), digest in zip(drafted.questions.items(), drafted.digests, strict=True):
        if isinstance(question, reviews.Review):
            yield own, f"review-{_numbered(digest, seen)}"
        else:
            yield own, f"answer-{digest}"


def _numbered(digest: str, seen: Counter[str]) -> str:
    seen[digest] += 1
    return f"{digest}.{seen[digest]}"


def _read(key: str, question: Question, answer: Answer) -> Given | Withheld:
    try:
        return question.read(answer)
    except Unfit as error:
        raise error.refusal(key) from error
