"""Tasks whose questions can't be told apart, or can't be answered.

LangGraph hands out the answers of one task in the order in which its code asks, and names graphs
that it calls in the order in which they start. When a task runs several tools or graphs at once
(a tool node that got several calls in one message), that order is chance: the answer to "pay?" can
reach "ship?". Nothing in an answer tells, so such a pause is not asked.

A graph that keeps nothing (`checkpointer=False`) may ask, but LangGraph brings no answer into it:
it would ask the same for ever.

Tools and graphs that ask nothing may run side by side. What is certain: every one that ran beside
another in its task was seen, and whether it asked; a tool node with several calls is known before
they start. What no one can see is code that calls `interrupt()`
itself from several threads or coroutines of one node.

Imports LangChain: for what runs graphs, and nothing else.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Set
from threading import Lock
from typing import Any, Final, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.pregel import Pregel

from core.cannot_ask import CannotAsk
from core.pending import Pending

_NODE: Final = "graph:step:"
"""How the tag of a node's run begins."""


class Overlaps(BaseCallbackHandler):
    """Sees which tasks of one run do several things at once. One for each run of a graph."""

    run_inline = True
    raise_error = True

    def __init__(self) -> None:
        self._lock = Lock()  # a sync node calls from a thread of its own
        self._parents: dict[UUID, UUID | None] = {}
        self._tasks: dict[UUID, str] = {}
        self._open: dict[str, set[UUID]] = {}
        self._beside: dict[str, set[UUID]] = {}
        self._namespaces: dict[str, str] = {}
        self._nodes: dict[str, tuple[UUID, Any]] = {}
        self._asking: set[str] = set()
        self._asked: set[UUID] = set()

    def check(self, graph: "Pregel[Any, Any, Any, Any]", pending: Iterable[Pending]) -> None:
        """Let a pause of the run pass when each answer to it can only reach its own question.

        Raises:
            CannotAsk: in a task around one of the questions something asked while something else
                was at work, or one runs a graph that asks and keeps nothing.
        """
        asking = list(pending)
        self._check_answered({each.task for each in asking})
        for task in {task for each in asking for task in _around(each)}:
            asked_beside = not self._asked.isdisjoint(self._beside.get(task, ()))
            if asked_beside or self._has_several_calls(task, graph):
                name, _ = _way(self._namespaces[task])[-1]
                raise CannotAsk(
                    f'The node "{name}" runs several tools or graphs at once in one task, and an'
                    " answer could reach the wrong one. Give each a task of its own: create_agent"
                    " does so, and so does one Send for each tool call."
                )

    def _check_answered(self, waiting: Set[str]) -> None:
        """A task that asks inside one that waits, and does not wait itself, has kept nothing."""
        for task in self._asking - waiting:
            for name, around in _way(self._namespaces[task]):
                if around in waiting:
                    raise CannotAsk(
                        f'The node "{name}" runs a graph that asks and keeps nothing, so that no'
                        " answer would reach it. Compile that graph without checkpointer=False."
                    )

    # What LangChain tells. Models ask nobody.

    @property
    def ignore_llm(self) -> bool:
        return True

    @property
    def ignore_chat_model(self) -> bool:
        return True

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        with self._lock:
            task = self._know(run_id, parent_run_id, metadata)
            if not any(tag.startswith(_NODE) for tag in tags or ()):
                return
            self._nodes[task] = run_id, inputs
            # Whatever has nodes is a graph: one inside a task runs beside what else is open there.
            if parent_run_id is not None and self._tasks.get(parent_run_id):
                self._begin(parent_run_id)

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        with self._lock:
            if self._know(run_id, parent_run_id, metadata):
                self._begin(run_id)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._fail(run_id, error)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._fail(run_id, error)

    def _know(self, run: UUID, parent: UUID | None, metadata: Mapping[str, Any] | None) -> str:
        """The id of the task that a run is in; empty for the run of the whole graph."""
        namespace: str = (metadata or {}).get("langgraph_checkpoint_ns", "")
        task = _task(namespace)
        self._parents[run] = parent
        self._tasks[run] = task
        self._namespaces[task] = namespace
        return task

    def _begin(self, run: UUID) -> None:
        task = self._tasks[run]
        opened = self._open.setdefault(task, set())
        if run not in opened:
            if others := opened.difference(self._ancestors(run)):
                self._beside.setdefault(task, set()).update(others, (run,))
            opened.add(run)

    def _ancestors(self, run: UUID) -> Iterator[UUID]:
        parent = self._parents.get(run)
        while parent is not None:
            yield parent
            parent = self._parents.get(parent)

    def _end(self, run: UUID) -> None:
        with self._lock:
            self._parents.pop(run, None)
            task = self._tasks.pop(run, "")
            self._open.get(task, set()).discard(run)
            if task in self._nodes and self._nodes[task][0] == run:
                del self._nodes[task]  # and let go of its input

    def _fail(self, run: UUID, error: BaseException) -> None:
        """One that asks stays open: what starts after it in its task runs beside it."""
        if not isinstance(error, GraphBubbleUp):
            self._end(run)
        elif isinstance(error, GraphInterrupt):
            with self._lock:
                self._asking.add(self._tasks.get(run, ""))
                self._asked.add(run)

    def _has_several_calls(self, task: str, graph: "Pregel[Any, Any, Any, Any]") -> bool:
        """Whether the task runs a tool node with several calls. They need not be seen side by side:
        one may end before another starts, or ask before its tool does (in `wrap_tool_call`)."""
        if task not in self._nodes or _tool_calls(self._nodes[task][1]) < 2:
            return False
        bound = _node(graph, [name for name, _ in _way(self._namespaces[task])])
        return _is_tool_node(bound) or (task in self._open and _uses_tool_node(bound))


def _around(pending: Pending) -> Iterator[str]:
    """The ids of the task that asks and of all tasks around it."""
    yield pending.task
    for segment in pending.namespace.split("|"):
        yield segment.partition(":")[2]


def _task(namespace: str) -> str:
    """The id at the end of a way to a task; empty where there is none."""
    return namespace.rpartition(":")[2].partition("|")[0] if ":" in namespace else ""


def _way(namespace: str) -> list[tuple[str, str]]:
    """The nodes on the way to a task, the last its own, each with its task's id."""
    # A segment without an id only counts the graphs that one task has called.
    steps = [segment.partition(":") for segment in namespace.split("|") if ":" in segment]
    return [(name, task) for name, _, task in steps]


def _node(graph: "Pregel[Any, Any, Any, Any]", names: list[str]) -> Any:
    """What runs at the end of a way through the graph and its subgraphs; None in a graph that only
    code knows."""
    *above, name = names
    inner: Any = graph
    if above:
        inner = dict(cast("Any", graph).get_subgraphs(recurse=True)).get("|".join(above))
    return inner.nodes[name].bound if isinstance(inner, Pregel) and name in inner.nodes else None


def _is_tool_node(bound: Any) -> bool:
    from langgraph.prebuilt import ToolNode  # costs more than this whole file

    return isinstance(bound, ToolNode)


def _uses_tool_node(bound: Any) -> bool:
    """Whether a node's function names a tool node, or can't be looked into."""
    functions = (getattr(bound, "func", None), getattr(bound, "afunc", None))
    try:
        known = [inspect.getclosurevars(each) for each in functions if inspect.isroutine(each)]
    except (TypeError, ValueError):  # it is compiled, or one of its names is not bound yet
        return True
    named = [
        value for each in known for value in (*each.nonlocals.values(), *each.globals.values())
    ]
    return any(_is_tool_node(value) for value in named)


def _tool_calls(inputs: Any) -> int:
    """How many calls a tool node would run for an input: those of the last message that has any, in
    whichever key messages are kept, or those that are given themselves."""
    if isinstance(inputs, list):
        return _calls(cast("list[Any]", inputs))
    state: dict[str, Any] = getattr(inputs, "__dict__", {})
    if isinstance(inputs, dict):
        state = cast("dict[str, Any]", inputs)
    if "tool_call" in state:  # one call, sent with its state
        return 1
    lists = [cast("list[Any]", each) for each in state.values() if isinstance(each, list)]
    return max((_calls(each) for each in lists), default=0)


def _calls(items: list[Any]) -> int:
    if items and isinstance(items[-1], dict) and items[-1].get("type") == "tool_call":
        return len(items)
    calls = (getattr(item, "tool_calls", None) for item in reversed(items))
    return next((len(each) for each in calls if each), 0)
