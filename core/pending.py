"""Pending interrupts: what a paused call waits for, as LangGraph tells it.

Pure module. LangGraph lists one interrupt once for every task around it, in an order that varies
from run to run, and its value may be any Python object. What leaves this file is each interrupt
once, in an order that a fresh thread repeats, as plain JSON.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core import encoding, plain
from core.cannot_ask import CannotAsk


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """One pending interrupt of a call, as one task lists it.

    Attributes:
        id: LangGraph's interrupt id.
        value: what `interrupt()` was given.
        schema: the response schema as raised, JSON Schema.
        namespace: the checkpoint namespace of the write that lists it.
        task: the id of that write's task.
        path: the paths of the tasks from the root to that one. It orders equal questions, and a
            fresh thread orders alike.
        answered: how many answers that task had used when it asked.
    """

    id: str
    value: Any
    schema: dict[str, Any] | None
    namespace: str = ""
    task: str = ""
    path: str = ""
    answered: int = 0


def ordered(pending: Sequence[Pending]) -> list[Pending]:
    """Each interrupt once, as its deepest task lists it, in the order of the paths."""
    deepest = {each.id: each for each in sorted(pending, key=_depth)}
    return sorted(deepest.values(), key=lambda each: each.path)


def encoded(value: Any, name: str) -> Any:
    """Plain JSON of what an agent raised.

    Raises:
        CannotAsk: it has no such form; no other exception, though its classes run their own code.
    """
    try:
        # The name begins the path by which a part without a JSON form is told.
        json_value = encoding.encode({name: value})[name]
        plain.check(json_value)
    except (encoding.NotJson, plain.NotPlain) as error:
        raise CannotAsk(f"Its {name} has no JSON form to ask with: {error}.") from error
    except Exception as error:
        raise CannotAsk(f"Its {name} can't be read: {type(error).__name__}.") from error
    return json_value


def as_json(pending: Sequence[Pending]) -> str:
    """The pending interrupts as JSON text, for clients that can't be asked. Never raises."""
    entries: list[dict[str, Any]] = []
    for each in ordered(pending):
        entry = {"value": _told(each.value), "id": each.id}
        if each.schema is not None:
            entry["response_schema"] = _told(each.schema)
        entries.append(entry)
    return plain.dumps(entries)


def _depth(pending: Pending) -> tuple[int, int]:
    """How deep a write is that lists an interrupt; a task that was called is below its caller."""
    return pending.namespace.count("|") + bool(pending.namespace), len(pending.path)


def _told(value: Any) -> Any:
    try:
        return encoded(value, "value")
    except CannotAsk:
        return f"({type(value).__qualname__}, which has no JSON form)"
