"""FastMCP, with the guard pattern that it documents for questions: the tool asks until it has all.

As documented, it checks no answer and no capability, and a repeated answer runs the tool again.
"""

import json
import sys
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.dependencies import get_context
from mcp.server.request_state import RequestStateSecurity
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

from benchmarks.contestants.serving import KEY, serve

security = RequestStateSecurity(keys=[KEY], audience="fast")
server = FastMCP("fast", request_state_security=security)


def _form(message: str, field: str) -> ElicitRequest:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field: {"type": "string"}},
        "required": [field],
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _answers(field: str) -> dict[str, str]:
    """What has been answered so far: the token has the earlier answers."""
    ctx: Any = get_context()
    known: dict[str, str] = json.loads(ctx.request_state) if ctx.request_state else {}
    given: dict[str, Any] = ctx.input_responses or {}
    return {**known, **{key: answer.content[field] for key, answer in given.items()}}


@server.tool()
async def echo(message: str) -> str:
    """Say back a message."""
    return message


@server.tool()
async def greeter() -> str | InputRequiredResult:
    """Ask for a name."""
    answers = _answers("name")
    if "name" not in answers:
        return InputRequiredResult(
            input_requests={"name": _form("What is your name?", "name")},
            request_state=json.dumps(answers),
        )
    return f"Hello, {answers['name']}!"


@server.tool()
async def four() -> str | InputRequiredResult:
    """Ask four questions."""
    answers = _answers("response")
    for name in ("first", "second", "third", "fourth"):
        if name not in answers:
            return InputRequiredResult(
                input_requests={name: _form(f"What is the {name}?", "response")},
                request_state=json.dumps(answers),
            )
    return " ".join(answers.values())


@server.tool()
async def pair() -> str | InputRequiredResult:
    """Ask two questions at once."""
    answers = _answers("response")
    missing = [name for name in ("first", "second") if name not in answers]
    if missing:
        return InputRequiredResult(
            input_requests={name: _form(f"What is the {name}?", "response") for name in missing},
            request_state=json.dumps(answers),
        )
    return f"{answers['first']} {answers['second']}"


if __name__ == "__main__":
    serve(server.http_app(json_response=True, stateless_http=True), int(sys.argv[1]))
