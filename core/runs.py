"""One run of an agent's graph, from an input or a resume to its end or its next pause.

The only place that invokes LangGraph. What a run came to is a value; an exception of the agent's
own passes through.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers.context import register_configure_hook
from langgraph.types import Command

from core import unsaved, work
from core.agents import Agent, OpenStore
from core.ambiguity import Overlaps
from core.cannot_ask import CannotAsk
from core.factories import Graph
from core.gate import Gate, ThreadGate
from core.questions import Pending
from core.saver import CallSaver, CallState

unsaved.let_run()

# Handlers that stand in a configuration are replaced by those that an agent gives to what it runs.
# These LangChain adds to whatever runs in the context of a call.
_thread_gate: ContextVar[BaseCallbackHandler | None] = ContextVar("thread_gate", default=None)
_gate: ContextVar[BaseCallbackHandler | None] = ContextVar("gate", default=None)
for _handler in (_thread_gate, _gate):
    register_configure_hook(_handler, inheritable=True)

Progress = Callable[[str, Any], None]

_INTERRUPT = "__interrupt__"

_RESUMABLE = re.compile("[0-9a-f]{32}")
"""The id of an interrupt() call. LangGraph takes an answer to any other id for the answer to the
next interrupt() of whichever node."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The graph ran to its end."""

    output: Any


@dataclass(frozen=True, slots=True)
class Paused:
    """The graph waits for answers.

    Attributes:
        check: raises `CannotAsk` when an answer could reach another question than its own.
    """

    pending: list[Pending]
    check: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Stopped:
    """The graph stopped at a static breakpoint, where no question can lead it on.

    Attributes:
        state: the graph's, there.
    """

    state: Any


class Escaped(Exception):
    """What the agent raised is no exception that a program may pass over, such as a cancellation
    that nobody asked for; it is the cause."""


class Run:
    """How an agent is run for one call: where its state goes, and what it may know.

    Args:
        state: of the call; with a sink, each superstep is durable before the next begins.
        executing: where it counts what it executes; runs of one call may share it.
        configurable: what the agent may read of the caller.
    """

    def __init__(
        self,
        agent: Agent,
        state: CallState,
        *,
        context: Any,
        store: OpenStore | None,
        executing: work.Work | None = None,
        configurable: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.state = state
        self.work = executing or work.Work()
        self._agent = agent
        self._context = context
        self._store = store
        self._configurable = dict(configurable or {})
        self._progress = progress

    def input(self, arguments: dict[str, Any]) -> Any:
        """What to start with.

        Raises:
            InvalidParams: the agent's own validation refuses the arguments.
        """
        return self._agent.input(arguments)

    async def start(self, input: Any) -> Finished | Paused | Stopped:
        """Run from the beginning."""
        return await self._drive(input, durable=False)

    async def resume(
        self, values: Mapping[str, Any], *, durable: bool
    ) -> Finished | Paused | Stopped:
        """Run on with a value per interrupt id; with none, from where the graph stands."""
        command: Command[Any] | None = Command(resume=dict(values)) if values else None
        ended = await self._drive(command, durable=durable)
        if isinstance(ended, Paused) and any(each.id in values for each in ended.pending):
            return Paused(ended.pending, _unheard)
        return ended

    async def _drive(self, input: Any, *, durable: bool) -> Finished | Paused | Stopped:
        try:
            return await self._driven(input, durable=durable)
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
                raise
            raise Escaped(f"the agent raised {type(error).__name__}") from error

    async def _driven(self, input: Any, *, durable: bool) -> Finished | Paused | Stopped:
        work.prepare(asyncio.get_running_loop())
        work.current.set(self.work)
        config: RunnableConfig = {
            "configurable": {**self._configurable, "thread_id": self.state.thread}
        }
        overlaps = ThreadGate(self.state)
        _thread_gate.set(overlaps)
        _gate.set(Gate(self.state) if durable else None)
        output: Any = None
        interrupted = False
        opening = self._agent.open(
            config, saver=CallSaver(self.state), store=self._store, context=self._context
        )
        async with opening as graph:
            telling = self._progress is not None
            modes = ["updates", "values"] + (["custom"] if telling else [])
            stream: Any = graph.astream(
                input,
                config,
                context=self._context,
                output_keys=graph.output_channels,  # as `ainvoke` has it: the output, not the state
                stream_mode=modes,  # pyright: ignore[reportArgumentType] - a list of literals
                # In a stored call LangGraph waits for each checkpoint before the next step.
                # A first one does not, but `exit` would forget what has finished in a graph that a
                # node called before it asked: that would run again.
                durability="sync" if durable else "async",
                subgraphs=telling,  # what is written there is told too
            )
            async with aclosing(stream) as chunks:
                async for *namespaces, mode, chunk in chunks:
                    inside = any(namespaces)  # written in a subgraph
                    if mode == "values" and not inside:
                        output = chunk
                    elif mode == "updates" and not inside and _INTERRUPT in chunk:
                        interrupted = True
                    if self._progress is not None and (
                        mode == "custom" or mode == "updates" and not inside
                    ):
                        self._progress(mode, chunk)
            if pending := self.state.waiting.pending():
                return Paused(pending, partial(self._check, overlaps, graph, pending))
            if interrupted and (stands := await graph.aget_state(config)).next:
                return Stopped(stands.values)
        if isinstance(output, dict):
            output.pop(_INTERRUPT, None)
        return Finished(output)

    def _check(self, overlaps: Overlaps, graph: Graph, pending: list[Pending]) -> None:
        """Let a pause pass when each answer reaches its own question and no other.

        Raises:
            CannotAsk: one may not.
        """
        if not all(_RESUMABLE.fullmatch(each.id) for each in pending):
            raise CannotAsk(
                "It raises NodeInterrupt, which takes no answer. Call interrupt() instead."
            )
        if any(self.state.waiting.ran_before(each) for each in pending):
            raise CannotAsk(
                "A node ran a graph again that had failed after an answer, and the next answer"
                " would reach the one that failed. Let what may fail be tried again inside it."
            )
        overlaps.check(graph, pending)


def _unheard() -> None:
    raise CannotAsk("No node took the answer: the graph is not the one that asked any more.")
