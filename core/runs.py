"""One run of an agent's graph, from an input or a resume to its end or its next pause.

The only place that invokes LangGraph. What a run came to is a value; an exception of the agent's
own passes through.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError, is_invalid_resume
from langgraph.types import Command

from core import threads
from core.agents import Agent, OpenStore
from core.gate import Gate
from core.questions import Pending
from core.saver import CallSaver, CallState

__all__ = [
    "Finished",
    "GraphRecursionError",
    "Paused",
    "Run",
    "Stopped",
    "is_invalid_resume",
]

Progress = Callable[[str, Any], None]

_INTERRUPT = "__interrupt__"


@dataclass(frozen=True, slots=True)
class Finished:
    """The graph ran to its end."""

    output: Any


@dataclass(frozen=True, slots=True)
class Paused:
    """The graph waits for answers."""

    pending: list[Pending]


@dataclass(frozen=True, slots=True)
class Stopped:
    """The graph stopped at a static breakpoint, where no question can lead it on."""

    output: Any


class Run:
    """How an agent is run for one call: where its state goes, and what it may know.

    Args:
        state: of the call; with a sink, each superstep is durable before the next begins.
        configurable: what the agent may read of the caller.
    """

    def __init__(
        self,
        agent: Agent,
        state: CallState,
        *,
        context: Any,
        store: OpenStore | None,
        configurable: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.state = state
        self.threads = threads.RunThreads()
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
        return await self._drive(command, durable=durable)

    async def _drive(self, input: Any, *, durable: bool) -> Finished | Paused | Stopped:
        threads.prepare(asyncio.get_running_loop())
        threads.current.set(self.threads)
        config: RunnableConfig = {
            "configurable": {**self._configurable, "thread_id": self.state.thread}
        }
        if durable:
            config["callbacks"] = [Gate(self.state)]
        output: Any = None
        interrupted = False
        opening = self._agent.open(
            config, saver=CallSaver(self.state), store=self._store, context=self._context
        )
        async with opening as graph:
            modes = ["updates", "values"] + (["custom"] if self._progress else [])
            stream: Any = graph.astream(
                input,
                config,
                context=self._context,
                output_keys=graph.output_channels,  # as `ainvoke` has it: the output, not the state
                stream_mode=modes,  # pyright: ignore[reportArgumentType] - a list of literals
                # In a stored call LangGraph waits for each checkpoint before the next step.
                durability="sync" if durable else "async",
            )
            async with aclosing(stream) as chunks:
                async for mode, chunk in chunks:
                    if mode == "values":
                        output = chunk
                    elif mode == "updates" and isinstance(chunk, dict) and _INTERRUPT in chunk:
                        interrupted = True
                    if self._progress is not None and mode != "values":
                        self._progress(mode, chunk)
        if pending := self.state.pending():
            return Paused(pending)
        if isinstance(output, dict):
            output.pop(_INTERRUPT, None)
        return Stopped(output) if interrupted else Finished(output)
