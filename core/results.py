"""How a finished call is told: the agent's final output as a tool result.

The text is the output as JSON. An output with the key `mcp_content` brings its own content blocks
instead, and the rest of it is the structured content. A tool with an output schema always has
structured content, checked here because clients drop a result that does not fit.
"""

from typing import Any, cast

from core.content import BadContent, content
from core.encoding import NotJson, encode
from core.plain import dumps
from core.protocol import ToolResult, error_result, text
from core.tools import Tool

CONTENT_KEY = "mcp_content"


def render(output: Any, *, tool: Tool) -> ToolResult:
    """The result of a call that finished with this output. Never raises for what an agent returned.

    An output that has no JSON form, is no MCP content or does not fit the tool's output schema is
    an error result that says where.
    """
    try:
        value = encode(output)
        if isinstance(value, dict) and CONTENT_KEY in value:
            return _with_content(cast("dict[str, Any]", value), tool)
    except (NotJson, BadContent) as error:
        return error_result(f"{tool.name} finished, but its output can't be sent: {error}.")
    return _structured(value, [text(dumps(value))], tool, given=tool.output_schema is not None)


def _with_content(value: dict[str, Any], tool: Tool) -> ToolResult:
    rest = {key: each for key, each in value.items() if key != CONTENT_KEY}
    blocks = content(value[CONTENT_KEY])
    return _structured(rest, blocks, tool, given=bool(rest) or tool.output_schema is not None)


def _structured(value: Any, blocks: list[dict[str, Any]], tool: Tool, *, given: bool) -> ToolResult:
    problem = tool.output_problem(value)
    if problem:
        told = f"{tool.name} finished, but its output does not fit its output schema: {problem}"
        return ToolResult(content=[text(told), *blocks], is_error=True)  # and nothing is lost
    if not given:
        return ToolResult(content=blocks)
    return ToolResult(content=blocks, structured=value, has_structured=True)
