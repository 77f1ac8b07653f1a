"""Durable supersteps: nothing of a stored call runs before what finished earlier is stored.

LangGraph awaits an inline callback handler before a node's code begins, in subgraphs, in graphs
called inside a node and in tasks too. Flushing there costs one round trip per further superstep.
"""

import asyncio
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler

from core.saver import CallState


class Gate(AsyncCallbackHandler):
    """Holds each node back until everything that was put before it is durable.

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

    async def on_chain_start(
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
        if any(tag.startswith("graph:step:") for tag in tags or ()):
            # LangGraph puts checkpoints and writes from tasks of its own: those that were made
            # before this node are scheduled before it, and have run when this returns.
            await asyncio.sleep(0)
            await self._state.flush_from_anywhere()
