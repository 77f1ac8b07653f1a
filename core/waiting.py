"""Which questions of a call wait: what the newest writes of each namespace tell of its tasks.

A task that asks leaves its interrupt, and its answers once it has used them; any other write means
that it ended. An interrupt is listed by every task around the one that raised it, and the deepest
decides.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from langgraph.checkpoint.base import WRITES_IDX_MAP, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME
from langgraph.types import Interrupt

from core.pending import Pending, ordered
from core.questions import Asked

_CONTROL = frozenset((ERROR, INTERRUPT, RESUME))
"""Writes that tell what happened to a task, which may run again; any other one means that it ended:
it finished, or it failed and its error handler runs in its place."""

Typed: TypeAlias = tuple[str, bytes]


@dataclass(slots=True)
class Saved:
    """One checkpoint: as LangGraph handed it over, or as it was loaded."""

    parent: str | None
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    loaded: bool
    durable: bool


@dataclass(slots=True)
class Write:
    """One write of a task: the object, or the typed bytes it was loaded as."""

    channel: str
    path: str
    value: Any
    loaded: bool
    durable: bool


Checkpoints: TypeAlias = dict[str, dict[str, Saved]]
"""By namespace and id, in the order of their steps."""

Writes: TypeAlias = dict[tuple[str, str], dict[tuple[str, int], Write]]
"""By namespace and checkpoint, then by task and index."""


class Waiting:
    """Reads what the state of a call holds, as it is at the moment."""

    def __init__(self, checkpoints: Checkpoints, writes: Writes, serde: SerializerProtocol) -> None:
        self._checkpoints = checkpoints
        self._writes = writes
        self._serde = serde

    def pending(self) -> list[Pending]:
        """The interrupts that wait for an answer, each where its deepest write lists it."""
        live = {
            interrupt.id
            for task in self._unfinished("")
            for interrupt in self._interrupts("", task)
        }
        listed = [
            Pending(
                id=interrupt.id,
                value=interrupt.value,
                schema=_schema(interrupt),
                namespace=ns,
                task=task,
                path=self._path(ns, task),
                answered=self._answered(ns, task),
            )
            for ns in self._checkpoints
            for task in self._unfinished(ns)
            for interrupt in self._interrupts(ns, task)
            if interrupt.id in live
        ]
        return ordered(listed)

    def still_pending(self, asked: Iterable[Asked]) -> set[str]:
        """Of the interrupts that a round asked, those that wait in the very task that raised them.

        After a crash a task may have moved on to a question that nobody has seen. LangGraph would
        take an answer to the old one for it, and the root's writes may still list the old one: the
        deepest task's newest interrupt decides. A task that was stopped after it had used the
        answer has it still, and LangGraph would take a second one for its next question.
        """
        return {
            each.id
            for each in asked
            if each.task in self._unfinished(each.namespace)
            and any(i.id == each.id for i in self._interrupts(each.namespace, each.task))
            and self._answered(each.namespace, each.task) == each.answered
        }

    def ran_before(self, pending: Pending) -> bool:
        """Whether a graph around the question was run before by the same node, and failed after it
        had used an answer. The node would run that one again, and never get to the question."""
        segments = pending.namespace.split("|")
        runs = [at for at, segment in enumerate(segments) if segment.isdigit()]
        earlier = (
            "|".join((*segments[:at], *([str(number)] if number else ())))
            for at in runs
            for number in range(int(segments[at]))
        )
        return any(
            (task, WRITES_IDX_MAP[ERROR]) in self._head(ns) and self._answered(ns, task)
            for ns in earlier
            for task in self._unfinished(ns)
        )

    def _head(self, ns: str) -> dict[tuple[str, int], Write]:
        chain = self._checkpoints.get(ns)
        return self._writes.get((ns, newest(chain)), {}) if chain else {}

    def _unfinished(self, ns: str) -> set[str]:
        writes = self._head(ns)
        ended = {task for (task, _), write in writes.items() if write.channel not in _CONTROL}
        return {task for task, _ in writes} - ended

    def _interrupts(self, ns: str, task: str) -> list[Interrupt[Any]]:
        value = self._control(ns, task, INTERRUPT)
        return [value] if isinstance(value, Interrupt) else list(value or ())

    def _answered(self, ns: str, task: str) -> int:
        """How many answers a task has used: they are kept, and given to its next attempt."""
        value = self._control(ns, task, RESUME)
        return len(cast("list[Any]", value)) if isinstance(value, list) else value is not None

    def _control(self, ns: str, task: str, channel: str) -> Any:
        """What a control write of a task says; None when there is none."""
        write = self._head(ns).get((task, WRITES_IDX_MAP[channel]))
        if write is None:
            return None
        return self._serde.loads_typed(write.value) if write.loaded else write.value

    def _path(self, ns: str, task: str) -> str:
        """A task's path from the root, by which a fresh thread orders its tasks alike.

        Task ids differ from thread to thread, so each level gives the path of its task instead.
        """
        levels: list[str] = []
        parent = ""
        for segment in ns.split("|") if ns else ():
            name, _, id = segment.partition(":")
            write = next((w for (t, _), w in self._head(parent).items() if t == id), None)
            levels.append(name if write is None else write.path)
            parent = f"{parent}|{segment}" if parent else segment
        own = next((w.path for (t, _), w in self._head(ns).items() if t == task), "")
        return "|".join((*levels, own))


def newest(chain: dict[str, Saved]) -> str:
    """The id of the last checkpoint of a namespace: they stand in the order of their steps. The
    ids themselves tell the time, and clocks differ from machine to machine."""
    return next(reversed(chain))


def _schema(interrupt: Interrupt[Any]) -> dict[str, Any] | None:
    schema = interrupt.response_schema
    return schema if isinstance(schema, dict) else None
