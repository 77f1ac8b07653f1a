"""Agents whose tool calls a person reviews: the human message lists the calls to propose, as JSON.

Each tool notes that it ran, and with what, in the folder that the runtime context names; so the
context must reach the run of every round.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType] - generics
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolRetryMiddleware
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.tools import StructuredTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.runtime import get_runtime
from langgraph.types import interrupt

from tests.agents.journal import ran
from tests.scripted import ProposingModel


@dataclass
class Desk:
    """Where the notes are."""

    journal: str


def note(*words: str) -> None:
    ran(get_runtime(Desk).context.journal, ":".join(words)[:60])


@tool
def send_email(to: str, subject: str) -> str:
    """Send an e-mail."""
    note("send", to)
    return f'Sent "{subject}" to {to}.'


@tool
def read_calendar(day: str) -> str:
    """Read a calendar."""
    note("read", day)
    return "free"


@tool
def delete_file(path: str) -> str:
    """Delete a file."""
    note("delete", path)
    return f"deleted {path}"


@tool
def rename_file(path: str) -> str:
    """Rename a file."""
    note("rename", path)
    return f"renamed {path}"


@tool
def run_shell(command: str) -> str:
    """Run a command."""
    note("shell")
    return "ran"


def _lookup(**arguments: Any) -> str:
    note("lookup")
    return "found"


lookup = StructuredTool(
    name="lookup",
    description="Look something up.",
    func=_lookup,
    args_schema={
        "type": "object",
        "properties": {"what": {"$ref": "https://schemas.example.com/what.json"}},
    },
)
"""A tool whose arguments another document describes."""

GATES: dict[str, Any] = {
    "send_email": True,
    "delete_file": {"allowed_decisions": ["approve", "edit"]},
    "rename_file": {"allowed_decisions": ["edit"]},
    "run_shell": {"allowed_decisions": ["approve", "reject"], "description": "Looks harmless."},
    "lookup": {"allowed_decisions": ["approve", "edit"]},
}


def proposed(messages: Sequence[BaseMessage]) -> list[ToolCall]:
    """The calls that the human message lists."""
    calls: list[tuple[str, dict[str, Any]]] = json.loads(str(messages[0].content))
    return [
        ToolCall(name=name, args=args, id=str(n), type="tool_call")
        for n, (name, args) in enumerate(calls, start=1)
    ]


MODEL = ProposingModel(proposed=proposed)


def reviewed(mode: Literal["batched", "per_call"]) -> Any:
    tools = [send_email, read_calendar, delete_file, rename_file, run_shell, lookup]
    review: Any = HumanInTheLoopMiddleware(GATES, interrupt_mode=mode)
    return create_agent(
        MODEL,
        tools,
        middleware=[review],
        context_schema=Desk,
        name="reviewed",
    )


batched = reviewed("batched")
per_call = reviewed("per_call")


# Tools that ask by themselves.


@tool
def pay(amount: int) -> str:
    """Pay, once somebody agrees."""
    answer = interrupt(f"Pay {amount}?")
    note("pay", answer)
    return answer


@tool
def log(line: str) -> str:
    """Ask nobody."""
    note("log")
    return line


own_tasks = create_agent(MODEL, [pay, log], context_schema=Desk, name="own_tasks")
"""Each call has a task of its own."""

retried = create_agent(
    MODEL,
    [pay, log],
    middleware=[ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)],
    context_schema=Desk,
    name="retried",
)
"""Failed calls are tried again; a question is no failure."""


def model(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage("", tool_calls=proposed(state["messages"]))]}


def passing(request: Any, execute: Any) -> Any:
    return execute(request)


def classic(node: ToolNode) -> Any:
    return (
        StateGraph(MessagesState, context_schema=Desk)
        .add_node("model", model)
        .add_node("tools", node)
        .add_edge(START, "model")
        .add_edge("model", "tools")
    )


shared = classic(ToolNode([pay, log]))
"""All calls share one task."""

wrapped = classic(ToolNode([pay, log], wrap_tool_call=passing, handle_tool_errors=True))
"""A tool node with a wrapper that turns errors into messages; a question is no error."""
