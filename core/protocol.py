"""The words of MCP on the wire: versions, `_meta` keys, a decoded request, and results.

Pure module; nothing here decides. Types of the official `mcp-types` package are imported where
they validate something, not here: that import costs as much as FastAPI.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from core.caller import ANYONE, Caller

LATEST: Final = "2026-07-28"
"""The revision with stateless requests and `input_required` results."""

HANDSHAKE: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions that begin with `initialize`, newest first."""

SUPPORTED: Final = (LATEST, *HANDSHAKE)

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"


LOG_LEVELS: Final = (
    *("debug", "info", "notice", "warning"),
    *("error", "critical", "alert", "emergency"),
)
"""From the least severe to the most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One decoded JSON-RPC request.

    Attributes:
        id: as the client sent it.
        version: the protocol revision it is answered in.
        modes: the elicitation modes that the client declared on this very request.
        caller: who sent it, as far as that is known.
        trace: W3C `traceparent` of the client, or empty.
    """

    id: str | int | float
    method: str
    params: Mapping[str, Any]
    version: str
    modes: frozenset[str] = frozenset()
    caller: Caller = ANYONE
    progress_token: str | int | None = None
    log_level: str | None = None
    trace: str = ""

    @property
    def modern(self) -> bool:
        """Whether the client speaks the revision that can be asked questions."""
        return self.version == LATEST


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """How a call ended. `structured` is any JSON value, or absent."""

    content: list[dict[str, Any]]
    structured: Any = None
    has_structured: bool = False
    is_error: bool = False

    def as_result(self) -> dict[str, Any]:
        """The `CallToolResult` members, without what every modern result carries."""
        result: dict[str, Any] = {"content": self.content}
        if self.has_structured:
            result["structuredContent"] = self.structured
        if self.is_error:
            result["isError"] = True
        return result

    def dump(self) -> bytes:
        """For the store; `load` reads it back."""
        entry = {
            "content": self.content,
            "structured": self.structured,
            "has_structured": self.has_structured,
            "is_error": self.is_error,
        }
        return json.dumps(entry, separators=(",", ":")).encode()

    @classmethod
    def load(cls, data: bytes) -> Self:
        return cls(**json.loads(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequired:
    """A call that waits for a person: the questions by key, and the state to come back with."""

    requests: dict[str, Any] = field(default_factory=dict[str, Any])
    request_state: str

    def as_result(self) -> dict[str, Any]:
        """The `InputRequiredResult` members."""
        return {
            "resultType": "input_required",
            "inputRequests": self.requests,
            "requestState": self.request_state,
        }


def text(value: str) -> dict[str, Any]:
    """A text content block."""
    return {"type": "text", "text": value}


def error_result(*texts: str) -> ToolResult:
    """A call that ended without doing what was asked; each text is one content block."""
    return ToolResult(content=[text(each) for each in texts], is_error=True)
