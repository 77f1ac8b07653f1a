"""An approval: one tool call that LangChain's HumanInTheLoopMiddleware holds back.

Pure module. It reads the interrupts of the middleware's two modes, as Python and as JavaScript
write them, and nothing of the order in which they were raised: equal calls are equal approvals.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from core import plain, validation
from core.cannot_ask import CannotAsk

PER_CALL: Final = "tool_approval"
"""The `type` of an interrupt about one call."""

DECISIONS: Final = ("approve", "edit", "reject", "respond")

_UNION: Final = ("oneOf", "anyOf", "discriminator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One call, and what may be decided about it.

    Attributes:
        name: the tool.
        allowed: decisions of `DECISIONS`, in the middleware's order.
        edited: how the middleware spells the member that holds an edit.
        schema: what a decision must fit, or None when there is nothing to check.
    """

    name: str
    args: dict[str, Any]
    description: str | None
    allowed: list[str]
    edited: str = "edited_action"
    schema: dict[str, Any] | None = None

    def parts(self) -> tuple[Any, ...]:
        """What makes the key of its question."""
        return self.name, self.args, self.description, self.allowed


def batched(value: Mapping[str, Any]) -> list[Approval] | None:
    """The calls of one batched interrupt, in the order in which it wants its decisions; None when
    the value is no such interrupt.

    Raises:
        CannotAsk: a call in it can't be reviewed.
    """
    actions = _member(value, "action_requests", "actionRequests")
    configs = _member(value, "review_configs", "reviewConfigs")
    if not isinstance(actions, list) or not isinstance(configs, list):
        return None
    actions, configs = cast("list[Any]", actions), cast("list[Any]", configs)
    edited = "edited_action" if "action_requests" in value else "editedAction"
    approvals = [
        _approval(action, _allowed(action, n, len(actions), configs), edited, None)
        for n, action in enumerate(actions)
    ]
    if not approvals:
        raise CannotAsk("It asks to review tool calls and names none.")
    for approval in approvals:
        if approval is None:
            raise CannotAsk('A tool call to review has no "name" or no "args".')
        if not approval.allowed:
            raise CannotAsk(f'Nothing says which decisions the call of "{approval.name}" allows.')
    return cast("list[Approval]", approvals)


def per_call(value: Mapping[str, Any], schema: dict[str, Any] | None) -> Approval | None:
    """The call of a per-call interrupt; None when the value is no such interrupt.

    A schema that refers to a document outside itself, or that nothing can be checked against for
    another reason, is left out: it is asked without the check.
    """
    if value.get("type") != PER_CALL or schema is None:
        return None
    allowed = _known([name for name, _ in branches(schema)])
    approval = _approval(value, allowed, _edited(schema), _checkable(schema))
    return approval if approval is not None and approval.allowed else None


def branches(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each decision that a response schema lists, with the part of the schema that is about it.

    Checked against the whole, a decision that misfits would only be said to fit none of them.
    """
    around = {keyword: value for keyword, value in schema.items() if keyword not in _UNION}
    union = _member(schema, "oneOf", "anyOf")
    for option in _list([None] if union is None else union):
        branch = {**around, **_object(option)}
        kind = _followed(_member(_properties(branch, schema), "type"), schema)
        for name in _known([kind.get("const"), *_list(kind.get("enum"))]):
            yield name, branch


def _approval(
    action: Any, allowed: list[str], edited: str, schema: dict[str, Any] | None
) -> Approval | None:
    name, args = _member(action, "name"), _member(action, "args", "arguments")
    if not isinstance(name, str) or not isinstance(args, dict):
        return None
    description = _member(action, "description")
    return Approval(
        name=name,
        args=cast("dict[str, Any]", args),
        description=description if isinstance(description, str) else None,
        allowed=allowed,
        edited=edited,
        schema=schema,
    )


def _allowed(action: Any, n: int, count: int, configs: list[Any]) -> list[str]:
    """The decisions that the config in the action's place lists, or the first for its tool."""
    in_place = configs[n : n + 1] if len(configs) == count else []
    for config in (*in_place, *configs):
        if _member(config, "action_name", "actionName") == _member(action, "name"):
            return _known(_list(_member(config, "allowed_decisions", "allowedDecisions")))
    return []


def _known(decisions: list[Any]) -> list[str]:
    """The decisions among these, each once. One that nobody could word is not offered."""
    known = [each for each in decisions if isinstance(each, str) and each in DECISIONS]
    return list(dict.fromkeys(known))


def _edited(schema: dict[str, Any]) -> str:
    for name, branch in branches(schema):
        if name == "edit" and "editedAction" in _properties(branch, schema):
            return "editedAction"
    return "edited_action"


def _checkable(schema: dict[str, Any]) -> dict[str, Any] | None:
    try:
        validation.Check(schema)
    except validation.Unusable:
        return None
    return schema


def _properties(branch: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    return _object(_followed(branch, document).get("properties"))


def _followed(schema: Any, document: dict[str, Any]) -> dict[str, Any]:
    followed = _object(schema)
    try:
        for _ in range(plain.DEPTH):
            if "$ref" not in followed:
                return followed
            followed = validation.follow(followed, document)
    except validation.Unusable:
        pass
    return {}


def _member(value: Any, *names: str) -> Any:
    """The first member of these names; None when there is none."""
    members = _object(value)
    return next((members[name] for name in names if name in members), None)


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
