"""What a careful team writes today: the SDK, LangGraph, and one `AsyncPostgresSaver` over a pool.

The thread's id is the request state, which the SDK seals; interrupt ids are the keys, so that each
answer resumes its own question. The pool is opened and warmed before the first request. What it
lacks is known: a repeated answer runs again, and rows are never deleted.

    python -m benchmarks.contestants.handmade PORT DURABILITY
"""

import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.types import Command
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.request_state import RequestStateSecurity
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

from agents import greeter as greeting
from benchmarks import graphs
from benchmarks.contestants.serving import KEY, serve

Durability = Literal["sync", "async", "exit"]

CONNECTIONS: Final = 16

DURABILITY: Final = cast("Durability", sys.argv[2])
"""`async` is LangGraph's default: each superstep is stored while the next one runs."""

GRAPHS: Final[Mapping[str, Any]] = {
    "echo": graphs.echo,
    "greeter": greeting.graph,
    "four": graphs.four,
    "pair": graphs.pair,
    "history": graphs.history,
    "walk": graphs.walk,
}

_agents: dict[str, Any] = {}


@asynccontextmanager
async def lifespan(_: MCPServer[None]) -> AsyncGenerator[None]:
    pool = AsyncConnectionPool(
        os.environ["DATABASE_URL"],
        connection_class=AsyncConnection[DictRow],
        kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
        min_size=CONNECTIONS,
        max_size=CONNECTIONS,
        open=False,
    )
    async with pool:
        await pool.wait()
        saver = AsyncPostgresSaver(pool)
        for name, graph in GRAPHS.items():
            _agents[name] = graph.builder.compile(checkpointer=saver)
        yield


server = MCPServer(
    "handmade",
    log_level="WARNING",
    lifespan=lifespan,
    request_state_security=RequestStateSecurity(keys=[KEY]),
)


async def run(name: str, input: dict[str, Any], ctx: Context[Any]) -> str | InputRequiredResult:
    """Start a thread or resume one, to its end or its next questions."""
    graph = _agents[name]
    thread = ctx.request_state or uuid4().hex
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    start: Any = input
    if ctx.request_state:
        answers = cast("Mapping[str, ElicitResult]", ctx.input_responses or {})
        start = Command(resume={key: _value(answer) for key, answer in answers.items()})
    output = await graph.ainvoke(start, config, durability=DURABILITY)
    if interrupts := output.get("__interrupt__"):
        return InputRequiredResult(
            input_requests={each.id: _question(each.value) for each in interrupts},
            request_state=thread,
        )
    return json.dumps(output)


def _question(value: Any) -> ElicitRequest:
    if isinstance(value, str):
        field = {"type": "string"}
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {"response": field},
            "required": ["response"],
        }
        return ElicitRequest(params=ElicitRequestFormParams(message=value, requested_schema=schema))
    [asked] = value["requests"]
    return ElicitRequest(
        params=ElicitRequestFormParams(
            message=asked["message"], requested_schema=asked["requested_schema"]
        )
    )


def _value(answer: ElicitResult) -> Any:
    content = answer.content or {}
    if "response" in content:
        return content["response"]
    return {"responses": {"user_name": {"action": answer.action, "content": content}}}


@server.tool(structured_output=False)
async def echo(message: str, ctx: Context[Any]) -> str | InputRequiredResult:
    """Say back a message."""
    return await run("echo", {"message": message}, ctx)


@server.tool(structured_output=False)
async def greeter(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask for a name."""
    return await run("greeter", {}, ctx)


@server.tool(structured_output=False)
async def four(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask four questions."""
    return await run("four", {}, ctx)


@server.tool(structured_output=False)
async def pair(ctx: Context[Any]) -> str | InputRequiredResult:
    """Ask two questions at once."""
    return await run("pair", {}, ctx)


@server.tool(structured_output=False)
async def history(size: int, ctx: Context[Any]) -> str | InputRequiredResult:
    """Judge a conversation."""
    return await run("history", {"size": size}, ctx)


@server.tool(structured_output=False)
async def walk(size: int, ctx: Context[Any]) -> str | InputRequiredResult:
    """Take a number of steps."""
    return await run("walk", {"size": size}, ctx)


if __name__ == "__main__":
    serve(server.streamable_http_app(json_response=True, stateless_http=True), int(sys.argv[1]))
