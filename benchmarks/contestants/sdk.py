"""The official SDK's `MCPServer` with its elicitation, and no LangGraph.

It keeps nothing: the state of a call is in its token, and a repeated answer runs the tool again.
"""

import sys
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.request_state import RequestStateSecurity
from pydantic import BaseModel

from benchmarks.contestants.serving import KEY, serve

server = MCPServer(
    "sdk", log_level="WARNING", request_state_security=RequestStateSecurity(keys=[KEY])
)


class Name(BaseModel):
    name: str


class Response(BaseModel):
    response: str


@server.tool()
async def echo(message: str) -> str:
    """Say back a message."""
    return message


async def _name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


@server.tool()
async def greeter(name: Annotated[Name, Resolve(_name)]) -> str:
    """Ask for a name."""
    return f"Hello, {name.name}!"


async def _first() -> Elicit[Response]:
    return Elicit("What is the first?", Response)


async def _beside() -> Elicit[Response]:
    return Elicit("What is the second?", Response)


async def _second(first: Annotated[Response, Resolve(_first)]) -> Elicit[Response]:
    return Elicit("What is the second?", Response)


async def _third(second: Annotated[Response, Resolve(_second)]) -> Elicit[Response]:
    return Elicit("What is the third?", Response)


async def _fourth(third: Annotated[Response, Resolve(_third)]) -> Elicit[Response]:
    return Elicit("What is the fourth?", Response)


@server.tool()
async def four(
    first: Annotated[Response, Resolve(_first)],
    second: Annotated[Response, Resolve(_second)],
    third: Annotated[Response, Resolve(_third)],
    fourth: Annotated[Response, Resolve(_fourth)],
) -> str:
    """Ask four questions."""
    return " ".join(each.response for each in (first, second, third, fourth))


@server.tool()
async def pair(
    first: Annotated[Response, Resolve(_first)], second: Annotated[Response, Resolve(_beside)]
) -> str:
    """Ask two questions at once."""
    return f"{first.response} {second.response}"


if __name__ == "__main__":
    serve(server.streamable_http_app(json_response=True, stateless_http=True), int(sys.argv[1]))
