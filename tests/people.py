"""People at the clients of the Python world, who answer what an agent asks."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mcp_types
from fastmcp import Client as FastMcpClient
from fastmcp.client.elicitation import ElicitResult
from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext

Answer = Callable[[mcp_types.ElicitRequestParams], dict[str, Any]]
"""What a person does with a question."""


@dataclass(slots=True)
class Person:
    """Answers every question the same way, and remembers what was asked."""

    answer: Answer
    asked: list[mcp_types.ElicitRequestParams] = field(
        default_factory=list[mcp_types.ElicitRequestParams]
    )

    def reply(self, params: mcp_types.ElicitRequestParams) -> dict[str, Any]:
        self.asked.append(params)
        return self.answer(params)

    def messages(self) -> list[str]:
        return [params.message for params in self.asked]


def accepting(content: Mapping[str, Any] | None = None, **by_message: Any) -> Person:
    """Accepts: with this content, or with the response whose keyword begins the message."""

    def answer(params: mcp_types.ElicitRequestParams) -> dict[str, Any]:
        if content is not None:
            return {"action": "accept", "content": dict(content)}
        for start, value in by_message.items():
            if params.message.startswith(start.replace("_", " ")):
                return {"action": "accept", "content": {"response": value}}
        return {"action": "accept"}

    return Person(answer)


def refusing(action: str) -> Person:
    """Declines or cancels."""
    return Person(lambda params: {"action": action})


@dataclass(frozen=True, slots=True)
class Told:
    """What a call came to, as the client shows it; `code` is of a JSON-RPC error."""

    texts: tuple[str, ...]
    is_error: bool = False
    structured: Any = None
    code: int | None = None

    @property
    def output(self) -> Any:
        """The agent's output, which is the only text of a result."""
        assert not self.is_error, self
        assert self.code is None, self
        (text,) = self.texts
        return json.loads(text)


def shown(result: mcp_types.CallToolResult) -> Told:
    """A result as a client shows it."""
    texts = tuple(
        block.text for block in result.content if isinstance(block, mcp_types.TextContent)
    )
    return Told(texts, bool(result.is_error), result.structured_content)


Call = Callable[[str, Person, str, dict[str, Any]], Awaitable[Told]]


def official(mode: str) -> Call:
    """The official SDK's client, which answers by a callback."""

    async def call(url: str, person: Person, tool: str, arguments: dict[str, Any]) -> Told:
        async def answer(
            context: ClientRequestContext, params: mcp_types.ElicitRequestParams
        ) -> mcp_types.ElicitResult:
            return mcp_types.ElicitResult.model_validate(person.reply(params))

        async with Client(url, mode=mode, elicitation_callback=answer) as client:
            return await _told(client.call_tool(tool, arguments))

    return call


def fastmcp(mode: str) -> Call:
    """FastMCP's client, whose handler is given a class for the answer."""

    async def call(url: str, person: Person, tool: str, arguments: dict[str, Any]) -> Told:
        async def answer(
            message: str, kind: Any, params: mcp_types.ElicitRequestParams, context: Any
        ) -> Any:
            return ElicitResult(**person.reply(params))

        async with FastMcpClient(url, mode=mode, elicitation_handler=answer) as client:
            return await _told(client.call_tool_mcp(tool, arguments))

    return call


async def _told(calling: Awaitable[mcp_types.CallToolResult]) -> Told:
    try:
        return shown(await calling)
    except MCPError as error:
        return Told((error.error.message,), code=error.error.code)


async def never(
    context: ClientRequestContext, params: mcp_types.ElicitRequestParams
) -> mcp_types.ElicitResult:
    """The callback of a client that must declare one, where the test answers by itself."""
    raise AssertionError("nobody is asked")
