"""A review: the question about one tool call that waits for approval.

Pure module. Three laws:

* The tool's name never comes from a client: an edit changes arguments, not the tool.
* A decision is one that the call allows, and nothing but `approve` or `edit` lets the tool run.
* A person sees the whole call: its name and its arguments are in the message or in the form, never
  cut, and nothing in the form can hide.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, cast

from core import forms, plain, validation
from core.answers import Answer, Given, Unfit, Withheld, withheld
from core.approvals import Approval, branches
from core.cannot_ask import CannotAsk
from core.validation import Misfit

_TITLES: Final = {
    "approve": "Approve",
    "edit": "Edit the arguments",
    "reject": "Reject",
    "respond": "Answer for the tool",
}

_TOO_LARGE: Final = "The arguments are too large to edit here."


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The question about one call.

    Attributes:
        tool: the tool under review.
        edited: how the middleware spells the member that holds an edit.
        schema: what a decision must fit beyond the form, or None when there is nothing to check.
    """

    message: str
    form: forms.Form
    tool: str
    edited: str
    schema: dict[str, Any] | None = None

    mode: ClassVar = "form"

    def params(self) -> dict[str, Any]:
        return {"message": self.message, "mode": "form", "requestedSchema": self.form.requested}

    def read(self, answer: Answer) -> Given | Withheld:
        """The decision that an answer stands for.

        Raises:
            Unfit: the call does not allow it, or it does not fit the tool.
        """
        if answer.action == "cancel":
            return withheld("cancel")
        if answer.action == "accept":
            decision = self._decision(self.form.content(answer.content))
        elif "reject" in self._allowed():
            decision = {"type": "reject"}
        else:
            return withheld("decline")
        self._check(decision)
        return Given(value=decision, record=decision)

    def as_json(self) -> dict[str, Any]:
        return {
            "message": self.message,
            "form": self.form.as_json(),
            "tool": self.tool,
            "edited": self.edited,
            "schema": self.schema,
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        return cls(
            message=entry["message"],
            form=forms.Form.from_json(entry["form"]),
            tool=entry["tool"],
            edited=entry["edited"],
            schema=entry["schema"],
        )

    def _allowed(self) -> list[str]:
        options: list[dict[str, Any]] = self.form.requested["properties"]["decision"]["oneOf"]
        return [option["const"] for option in options]

    def _decision(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """What was left over in fields that the decision does not use is ignored."""
        kind: str = content["decision"]
        message: str = content.get("message", "")
        if kind == "edit":
            args = _edited_args(content.get("args"))
            return {"type": "edit", self.edited: {"name": self.tool, "args": args}}
        if kind == "respond" and not message.strip():
            raise Unfit(Misfit("message", "the answer to send in place of the tool is missing"))
        if kind == "respond" or (kind == "reject" and message.strip()):
            return {"type": kind, "message": message}
        return {"type": kind}

    def _check(self, decision: dict[str, Any]) -> None:
        if self.schema is None:
            return
        kind = decision["type"]
        own = (branch for name, branch in branches(self.schema) if name == kind)
        misfits = validation.Check(next(own, self.schema)).misfits(decision)
        if misfits:
            message = f"The decision does not fit the tool: {misfits[0].reason}"
            raise Unfit(*(Misfit("args", each.reason) for each in misfits), message=message)


def review(approval: Approval) -> Review:
    """The question about a call.

    Raises:
        CannotAsk: its arguments are too large for a form, and nothing but to edit them is allowed.
    """
    described = approval.description or ""
    message = described if described.strip() else f"Run {approval.name}?"
    message, requested = _asked(approval, message)
    return Review(
        message=message,
        form=forms.Form(requested=requested, full={}),
        tool=approval.name,
        edited=approval.edited,
        schema=approval.schema,
    )


def _asked(approval: Approval, message: str) -> tuple[str, dict[str, Any]]:
    """The message and the form. What is too large for the form is not edited there, and what the
    message leaves out is said in the message then."""
    requested = _requested(approval, approval.allowed, message)
    if plain.size(requested) <= forms.LARGEST:
        return message, requested
    allowed = [each for each in approval.allowed if each != "edit"]
    if not allowed:
        raise CannotAsk(
            f'The arguments of "{approval.name}" are too large for a form, and the call allows'
            " nothing but to edit them. Allow another decision as well."
        )
    note = _TOO_LARGE if allowed != approval.allowed else None
    requested = _requested(approval, allowed, message, note=note)
    if plain.size(requested) > forms.LARGEST:
        message = "\n\n".join((message, *_unseen(approval, message, prefilled=False)))
        requested = _requested(approval, allowed, message, note=note)
    return message, requested


def _requested(
    approval: Approval, allowed: list[str], message: str, *, note: str | None = None
) -> dict[str, Any]:
    decision: dict[str, Any] = {
        "type": "string",
        "title": "Decision",
        "oneOf": [{"const": each, "title": _TITLES[each]} for each in allowed],
    }
    unseen = _unseen(approval, message, prefilled="edit" in allowed)
    if notes := [*unseen, *([note] if note else [])]:
        decision["description"] = "\n".join(notes)
    properties: dict[str, Any] = {"decision": decision}
    if "reject" in allowed or "respond" in allowed:
        properties["message"] = {
            "type": "string",
            "title": "Message",
            "description": "Why you reject the call, or the answer to send in its place",
        }
    if "edit" in allowed:
        properties["args"] = {
            "type": "string",
            "title": "Arguments",
            "description": "The arguments to run the tool with, as a JSON object",
            "default": plain.shown(approval.args),
        }
    return {"properties": properties, "required": ["decision"], "type": "object"}


def _unseen(approval: Approval, message: str, *, prefilled: bool) -> Iterator[str]:
    """What a person would not see of the call: a description of the agent's own may leave out the
    tool, its arguments, or both."""
    if not re.search(rf"(?<!\w){re.escape(approval.name)}(?!\w)", message):
        yield f"Tool: {plain.shown(approval.name)[1:-1]}"
    args = approval.args
    if args and not prefilled and not any(text in message for text in _texts(args)):
        yield f"Arguments: {plain.shown(args)}"


def _texts(args: dict[str, Any]) -> Iterator[str]:
    """How the middlewares, and most descriptions, write arguments in which nothing hides."""
    yield str(args)
    yield plain.shown(args)
    raw = plain.shown(args) == plain.dumps(args)
    for indent in (None, 2):
        yield json.dumps(args, indent=indent)
        if raw:
            yield json.dumps(args, ensure_ascii=False, indent=indent)


def _edited_args(text: str | None) -> dict[str, Any]:
    try:
        args = plain.parse(text or "")
    except plain.NotPlain as error:
        raise Unfit(Misfit("args", f"the arguments are not a JSON object: {error}")) from error
    if not isinstance(args, dict):
        raise Unfit(Misfit("args", "the arguments are not a JSON object"))
    return cast("dict[str, Any]", args)
