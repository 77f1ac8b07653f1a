"""A typed question: text, or a form from a response schema, that the agent itself asks.

Pure module. A decline or cancel of it ends the call: the agent asked for a value and gets none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from core import forms, plain
from core.answers import Answer, Given, Withheld, withheld
from core.cannot_ask import CannotAsk

TEXT: Final[dict[str, Any]] = {"type": "string"}
"""The schema of a question that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A question, and the form for its answer."""

    message: str
    form: forms.Form

    mode: ClassVar = "form"

    def params(self) -> dict[str, Any]:
        """The elicitation as it goes on the wire."""
        return {"message": self.message, "mode": "form", "requestedSchema": self.form.requested}

    def read(self, answer: Answer) -> Given | Withheld:
        """The value that the agent resumes with.

        Raises:
            Unfit: the content does not fit the form, or not the whole schema.
        """
        if answer.action != "accept":
            return withheld(answer.action)
        content = self.form.content(answer.content)
        record = {"action": "accept", "content": content}
        return Given(value=self.form.value(content), record=record)

    def as_json(self) -> dict[str, Any]:
        """What `from_json` reads back."""
        return {"message": self.message, "form": self.form.as_json()}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """The question that `as_json` told."""
        return cls(message=entry["message"], form=forms.Form.from_json(entry["form"]))


def typed(value: Any, schema: dict[str, Any] | None) -> Typed:
    """The question for an interrupt value of plain JSON: shown as JSON unless it is a string.

    Raises:
        CannotAsk: nothing says what the answer looks like, or no form can ask for it.
    """
    if schema is None and not isinstance(value, str):
        raise CannotAsk(
            "Its interrupt value is not a string and has no response schema. Say what the answer"
            " looks like: interrupt(value, response_schema=...), with a Pydantic model, a type such"
            " as bool or str, or a JSON Schema."
        )
    message = value if isinstance(value, str) else plain.shown(value)
    return Typed(message=message, form=forms.build(TEXT if schema is None else schema))
