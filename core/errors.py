"""Every refusal that reaches a client as a JSON-RPC error.

    Refusal
    ├── ParseError                 -32700   the body is not JSON
    ├── InvalidRequest             -32600   not one JSON-RPC message
    ├── MethodNotFound             -32601
    ├── InvalidParams              -32602
    │   └── InvalidRequestState    -32602   one text for every reason
    ├── HeaderMismatch             -32020   an MCP header is missing or contradicts the body
    ├── MissingCapability          -32021   the client did not declare what the round needs
    ├── UnsupportedVersion         -32022
    ├── RetryLater                   1001   nothing is lost: send the same request again
    └── InternalError              -32603   a fault of ours, told by a correlation id alone

The message is what the client reads. `reason` is for the log and never leaves the process.
Problems of an agent are not here: those are error results (`core.results`).
"""

from collections.abc import Collection
from typing import Any, ClassVar, Final

RETRY_AFTER_MS: Final = 1000
"""What a client is told to wait before it sends the same request again."""


class Refusal(Exception):
    """A request is answered with a JSON-RPC error."""

    code: ClassVar[int]

    def __init__(self, message: str, *, data: Any = None, reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.data = data
        self.reason = reason

    def as_error(self) -> dict[str, Any]:
        """The `error` member of the JSON-RPC response."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


class ParseError(Refusal):
    code = -32700


class InvalidRequest(Refusal):
    code = -32600


class MethodNotFound(Refusal):
    code = -32601


class InvalidParams(Refusal):
    code = -32602


class InvalidRequestState(InvalidParams):
    """Forged, foreign, expired, unknown: a client can't tell which."""

    def __init__(self, reason: str) -> None:
        super().__init__("Invalid or expired requestState", reason=reason)


class HeaderMismatch(Refusal):
    code = -32020


class MissingCapability(Refusal):
    """The client did not declare the elicitation modes that a round needs."""

    code = -32021

    def __init__(self, missing: Collection[str], needed: Collection[str]) -> None:
        modes = " and ".join(sorted(missing))
        super().__init__(
            f"This tool asks for human input and needs {modes} elicitation.",
            data={"requiredCapabilities": {"elicitation": {mode: {} for mode in sorted(needed)}}},
        )


class UnsupportedVersion(Refusal):
    code = -32022


class RetryLater(Refusal):
    """The same request, sent again, continues: another copy is at work, or time ran out.

    The code is the application's own: outside the range that JSON-RPC and MCP reserve.
    """

    code = 1001

    def __init__(self, message: str) -> None:
        super().__init__(
            f"{message} Send the same request again.", data={"retryAfterMs": RETRY_AFTER_MS}
        )


class InternalError(Refusal):
    code = -32603
