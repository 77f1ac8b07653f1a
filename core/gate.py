"""Durable supersteps: nothing of a stored call runs before what finished earlier is stored.

LangGraph tells its callback handlers of each node and task before their code begins, in subgraphs
and in graphs called inside a node too, and waits for those that run inline. Flushing there costs
one round trip per further superstep. Once a run is over nothing of it begins any more: a thread
can't be stopped, but what it runs passes here.

Two handlers, because a graph that a sync node runs is told in that node's thread, where LangChain
does not wait for an async handler, and only logs what one raises.
"""

import asyncio
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler

from core.ambiguity import Overlaps
from core.saver import CallState


class Gate(AsyncCallbackHandler):
    """Holds each node of the event loop back until everything that was put before it is durable.

    A flush that fails raises in the node's place: its code does not run.
    """

    run_inline = True
    raise_error = True

    def __init__(self, state: CallState) -> None:
        self._state = state

    @property
    def ignore_llm(self) -> bool:
        """Models stream without us: their tokens are no concern of the gate."""
        return True

    @property
    def ignore_chat_model(self) -> bool:
        return True

    async def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if _begins(name, tags, metadata) and asyncio.get_running_loop() is self._state.loop:
            # LangGraph puts checkpoints and writes from tasks of its own: those that were made
            # before this node are scheduled before it, and have run when this returns.
            await asyncio.sleep(0)
            await self._state.flush()


class ThreadGate(Overlaps):
    """Does so in threads; in a call that is only in memory it holds nothing back. One handler with
    what sees overlaps: each is told of every step of every run, and LangChain takes its time."""

    def __init__(self, state: CallState) -> None:
        super().__init__()
        self._state = state

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().on_chain_start(
            serialized,
            inputs,
            run_id=run_id,
            parent_run_id=parent_run_id,
            tags=tags,
            metadata=metadata,
        )
        if _begins(name, tags, metadata):
            self._state.flush_from_thread()


def _begins(name: str | None, tags: list[str] | None, metadata: dict[str, Any] | None) -> bool:
    """Whether this is the run of a whole node or task, and not of something in it."""
    if any(tag.startswith("graph:step:") for tag in tags or ()):
        return True
    # A task has no such tag, but like a node it runs under its own name.
    return name is not None and name == (metadata or {}).get("langgraph_node")
