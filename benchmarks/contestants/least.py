"""The least that stops in PostgreSQL, goes on anywhere, and goes on once: what any endpoint pays.

Nothing is checked, nobody is told of progress, only these two agents are served. The state of a
call is one value of bytes in its only row; a statement stores it, one claims and loads it, one
keeps the result. A call that lost its claim gets no answer.

    python -m benchmarks.contestants.least PORT
"""

import json
import os
import pickle
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from psycopg_pool import AsyncConnectionPool

from agents import greeter as greeting
from benchmarks import graphs
from benchmarks.contestants.serving import serve

CONNECTIONS: Final = 16

_saver = InMemorySaver()
_agents: Final[Mapping[str, Any]] = {
    "echo": graphs.echo.builder.compile(checkpointer=_saver),
    "greeter": greeting.graph.builder.compile(checkpointer=_saver),
}
_pool = AsyncConnectionPool(
    os.environ["DATABASE_URL"],
    kwargs={"autocommit": True, "prepare_threshold": 0},
    min_size=CONNECTIONS,
    max_size=CONNECTIONS,
    open=False,
)


async def opened() -> None:
    await _pool.open(wait=True)
    async with _pool.connection() as connection:
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS least"
            " (thread text PRIMARY KEY, state bytea, claimed boolean, result text)"
        )


async def call(params: dict[str, Any]) -> dict[str, Any]:
    """Start a thread or resume one, to its end or its next questions."""
    graph = _agents[params["name"]]
    thread = params.get("requestState") or uuid4().hex
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    if "requestState" not in params:
        output = await graph.ainvoke(params["arguments"], config)
    else:
        (state,) = await _one(
            "UPDATE least SET claimed = true WHERE thread = %s AND claimed IS NULL RETURNING state",
            thread,
        )
        _put(thread, state)
        answers = {
            key: {"responses": {"user_name": answer}}
            for key, answer in params["inputResponses"].items()
        }
        output = await graph.ainvoke(Command(resume=answers), config)
    state = _taken(thread)
    if asked := output.get("__interrupt__"):
        await _one(
            "INSERT INTO least (thread, state) VALUES (%s, %s) RETURNING thread",
            thread,
            pickle.dumps(state),
        )
        questions = {each.id: _question(each.value) for each in asked}
        return {
            "resultType": "input_required",
            "inputRequests": questions,
            "requestState": thread,
        }
    text = json.dumps(output)
    if "requestState" in params:
        await _one("UPDATE least SET result = %s WHERE thread = %s RETURNING thread", text, thread)
    return {"resultType": "complete", "content": [{"type": "text", "text": text}]}


async def _one(statement: str, *values: Any) -> Any:
    async with _pool.connection() as connection:
        return await (await connection.execute(statement.encode(), values)).fetchone()


def _question(value: Any) -> dict[str, Any]:
    [asked] = value["requests"]
    params = {
        "mode": "form",
        "message": asked["message"],
        "requestedSchema": asked["requested_schema"],
    }
    return {"method": "elicitation/create", "params": params}


def _taken(thread: str) -> tuple[Any, Any, Any]:
    """What the saver has of a thread, which has nothing of it any more."""
    checkpoints = {each: dict(of) for each, of in _saver.storage.pop(thread, {}).items()}
    writes = {key: _saver.writes.pop(key) for key in list(_saver.writes) if key[0] == thread}
    blobs = {key: _saver.blobs.pop(key) for key in list(_saver.blobs) if key[0] == thread}
    return checkpoints, writes, blobs


def _put(thread: str, state: bytes) -> None:
    checkpoints, writes, blobs = pickle.loads(state)
    _saver.storage[thread].update(checkpoints)
    _saver.writes.update(writes)
    _saver.blobs.update(blobs)


async def app(scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
    if scope["type"] == "lifespan":
        await receive()
        await opened()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await _pool.close()
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = b""
    more = True
    while more:
        part = await receive()
        body += part.get("body", b"")
        more = part.get("more_body", False)
    message = json.loads(body)
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": await call(message["params"])}
    content = json.dumps(answer).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})


if __name__ == "__main__":
    serve(app, int(sys.argv[1]))
