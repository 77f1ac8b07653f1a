"""What a running agent tells of itself → notifications to the client that asked for them.

Pure module. An agent tells by LangGraph's stream writer, anywhere in its graph:

    write({"progress": 3, "total": 10, "message": "3 of 10 read"})   notifications/progress
    write({"level": "info", "data": "any JSON", "logger": "name"})   notifications/message

`total`, `message` and `logger` may be left out. Anything else that is written is for other readers
and passed over. As long as an agent reports no progress of its own, each finished node of its
outermost graph is one step of progress, with the node's name as the message.

The protocol wants every report of progress to be greater than the one before: one that is not is
dropped. The first of the agent's own counts on from the steps that were told until then.
"""

import math
from collections.abc import Mapping
from typing import Any, Final, TypeGuard, cast

from core.encoding import NotJson, encode
from core.protocol import LOG_LEVELS

_OF_LANGGRAPH: Final = "__"
"""How the keys begin that LangGraph adds to its updates."""


class Progress:
    """The notifications of one request.

    Args:
        token: what the client wants progress reported under; None when it wants none.
        level: the least level of log messages that it wants; None when it wants none.
    """

    def __init__(self, *, token: str | int | None, level: str | None) -> None:
        self._token = token
        self._levels = () if level is None else LOG_LEVELS[LOG_LEVELS.index(level) :]
        self._steps = 0
        self._reports = False
        self._last: float = -math.inf

    @property
    def wanted(self) -> bool:
        """Whether the client asked for any notification."""
        return self._token is not None or bool(self._levels)

    def notifications(self, mode: str, chunk: Any) -> list[dict[str, Any]]:
        """The notifications for a chunk of LangGraph's stream in that mode."""
        if not isinstance(chunk, dict):
            return []
        members = cast("dict[str, Any]", chunk)
        if mode == "updates":
            nodes = [name for name in members if not name.startswith(_OF_LANGGRAPH)]
            told = [self._finished(name) for name in nodes]
        else:
            told = [self._reported(members), self._logged(members)]
        return [notification for notification in told if notification is not None]

    def _finished(self, node: str) -> dict[str, Any] | None:
        if self._reports:
            return None
        self._steps += 1
        return self._progress(self._steps, {"message": node})

    def _reported(self, written: Mapping[str, Any]) -> dict[str, Any] | None:
        progress, total = written.get("progress"), written.get("total")
        if not _is_number(progress):
            return None
        self._reports = True
        about: dict[str, Any] = {}
        if _is_number(total):
            about["total"] = self._steps + total
        if isinstance(message := written.get("message"), str):
            about["message"] = encode(message)
        return self._progress(self._steps + progress, about)

    def _progress(self, progress: float, about: Mapping[str, Any]) -> dict[str, Any] | None:
        if self._token is None or progress <= self._last:
            return None
        self._last = progress
        params = {"progressToken": self._token, "progress": progress, **about}
        return _notification("notifications/progress", params)

    def _logged(self, written: Mapping[str, Any]) -> dict[str, Any] | None:
        level, logger = written.get("level"), written.get("logger")
        if not isinstance(level, str) or level not in self._levels or "data" not in written:
            return None
        try:
            params = {"level": level, "data": encode(written["data"])}
        except NotJson:
            return None
        if isinstance(logger, str):
            params["logger"] = encode(logger)
        return _notification("notifications/message", params)


def _is_number(value: Any) -> TypeGuard[float]:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def _notification(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}
