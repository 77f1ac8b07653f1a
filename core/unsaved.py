"""Graphs that are compiled with `checkpointer=False`, where every checkpoint is waited for.

LangGraph 1.2.24 tells a graph inside a node to wait for each of its saves when the run around it
does, and then fails on one that makes none: the attribute that it waits on is not there. Here it
is: a save that is over. This module imports LangGraph.
"""

from collections.abc import Generator
from typing import Any

from langgraph.pregel._loop import AsyncPregelLoop, SyncPregelLoop

_SAVE = "_put_checkpoint_fut"


class _Over:
    """The save of a graph that makes none: whoever waits for it goes on at once."""

    def result(self) -> None:
        return

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


def let_run() -> None:
    """Let such graphs run in calls that are stored. A graph that saves sets its own attribute."""
    for loop in (AsyncPregelLoop, SyncPregelLoop):
        if not hasattr(loop, _SAVE):
            setattr(loop, _SAVE, _Over())
