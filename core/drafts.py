"""A draft: one interrupt as questions that have no keys yet.

Pure module. Here, and only here, the value of an interrupt decides what kind of question it is. The
digests depend on the question alone: on no id, no order and no thread.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from core import approvals, forms, relays, reviews
from core.cannot_ask import CannotAsk
from core.canonical import digest
from core.pending import Pending, encoded
from core.typed import Typed, typed

Question: TypeAlias = Typed | relays.RelayedForm | relays.RelayedUrl | reviews.Review

Shape: TypeAlias = Literal["value", "responses", "decisions"]
"""How the answers of one interrupt become its resume value: the one value itself, an object of
answers by the agent's own keys, or a list of decisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The questions of one interrupt.

    Attributes:
        questions: in order, each under the agent's own name for it.
        digests: one for each question; for a relay one for the whole interrupt.
    """

    shape: Shape
    questions: dict[str, Question]
    digests: list[str]


def draft(pending: Pending) -> Draft:
    """The questions of an interrupt.

    Raises:
        CannotAsk: it can't be asked.
    """
    value = encoded(pending.value, "value")
    schema = None if pending.schema is None else encoded(pending.schema, "response_schema")
    if not isinstance(schema, dict | None):
        raise CannotAsk("Its response_schema is not a JSON Schema.")
    said = cast("dict[str, Any] | None", schema)
    if isinstance(value, dict):
        known = _known(cast("dict[str, Any]", value), said)
        if known is not None:
            return known
    question = typed(value, said)
    digests = [digest(question.message, question.form.full)]
    return Draft(shape="value", questions={forms.RESPONSE: question}, digests=digests)


def _known(value: dict[str, Any], schema: dict[str, Any] | None) -> Draft | None:
    """A relay or a review; None when the value is neither."""
    if value.get("type") == relays.TYPE:
        return Draft(
            shape="responses", questions={**relays.relayed(value)}, digests=[digest(value)]
        )
    batch = approvals.batched(value)
    if batch is not None:
        return _reviews("decisions", batch)
    call = approvals.per_call(value, schema)
    return None if call is None else _reviews("value", [call])


def _reviews(shape: Shape, calls: list[approvals.Approval]) -> Draft:
    questions: dict[str, Question] = {str(n): reviews.review(call) for n, call in enumerate(calls)}
    return Draft(shape=shape, questions=questions, digests=[digest(*c.parts()) for c in calls])
