"""The floor: the same graphs in a process of their own, in memory, with nothing around them.

    python -m benchmarks.floor

takes the tasks that `benchmarks.load` takes. No HTTP, no checks, nothing durable.
"""

from collections.abc import Mapping
from itertools import count
from typing import Any, Final
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agents import greeter
from benchmarks import graphs
from benchmarks.conversations import Wrong
from benchmarks.load import Result, Talk, Task, main, measure

GRAPHS: Final[Mapping[str, Any]] = {"echo": graphs.echo, "greeter": greeter.graph}

_words = count()


async def perform(task: Task) -> Result:
    """Run a task's graph in this process."""
    graph = GRAPHS[task.case].builder.compile(checkpointer=InMemorySaver())
    talk = _echo(graph) if task.case == "echo" else _greet(graph)
    return await measure([talk] * task.concurrency, task.seconds)


def _echo(graph: Any) -> Talk:
    async def talk() -> None:
        word = f"word-{next(_words)}"
        if await graph.ainvoke({"message": word}, _thread()) != {"echo": word}:
            raise Wrong(word)

    return talk


def _greet(graph: Any) -> Talk:
    async def talk() -> None:
        thread, word = _thread(), f"word-{next(_words)}"
        [asked] = (await graph.ainvoke({}, thread))["__interrupt__"]
        answer = {"responses": {"user_name": {"action": "accept", "content": {"name": word}}}}
        output = await graph.ainvoke(Command(resume={asked.id: answer}), thread)
        if output != {"greeting": f"Hello, {word}!"}:
            raise Wrong(word)

    return talk


def _thread() -> RunnableConfig:
    return {"configurable": {"thread_id": uuid4().hex}}


if __name__ == "__main__":
    main(perform)
