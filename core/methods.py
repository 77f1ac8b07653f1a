"""The methods that are answered, by era, and what each of them answers.

Nothing of an agent is decided here: a call goes to `core.rounds`. What every result of an era
carries is put on in one place; an older client never sees any of it.
"""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from core import account
from core.errors import InvalidParams, InvalidRequestState, MethodNotFound
from core.parameters import cursor, requested_version, tool_call
from core.protocol import (
    HANDSHAKE,
    SERVER_INFO_KEY,
    SUPPORTED,
    InputRequired,
    Request,
    ToolResult,
    error_result,
)

if TYPE_CHECKING:
    from core.catalog import Catalog
    from core.rounds import Rounds
    from core.tools import Tool

PAGE: Final = 100
"""Tools in one answer to `tools/list`."""

CAPABILITIES: Final[Mapping[str, Any]] = MappingProxyType({"tools": {}})
"""The tools change with a deployment only, so that no notification of a change is promised."""

Progress: TypeAlias = Callable[[str, Any], None]


class Endpoint:
    """Answers requests. One per process; it holds nothing of any request.

    Args:
        catalog: the tools.
        rounds: makes what runs calls. It is first asked when a call needs it: a list needs neither
            keys nor a database.
        name, version: what clients show of this server.
        ttl_ms: how long a client may keep a list.
        private: whether a list may differ from caller to caller.
    """

    def __init__(
        self,
        *,
        catalog: "Catalog",
        rounds: "Callable[[], Awaitable[Rounds]]",
        name: str,
        version: str,
        ttl_ms: int,
        private: bool = False,
    ) -> None:
        self._catalog = catalog
        self._rounds = rounds
        self._info = {"name": name, "version": version}
        self._caching = {"ttlMs": ttl_ms, "cacheScope": "private" if private else "public"}

    async def answer(
        self, request: Request, *, deadline: float, progress: Progress | None = None
    ) -> dict[str, Any]:
        """The `result` of a request.

        Args:
            deadline: seconds of `time.monotonic()` at which the answer must be on its way.
            progress: is told what a running agent streams, as stream mode and chunk.

        Raises:
            Refusal: the request is answered with an error.
        """
        method = self.METHODS[request.modern].get(request.method)
        if method is None:
            raise MethodNotFound(f"Method not found: {request.method[:100]}")
        result = await method(self, request, deadline, progress)
        return self._dressed(result) if request.modern else result

    async def tool(self, name: str) -> "Tool | None":
        """The tool of that name."""
        return await self._catalog.tool(name)

    async def tools(self) -> "tuple[Tool, ...]":
        """Every tool, in the order in which they are listed."""
        return await self._catalog.tools()

    def _dressed(self, result: dict[str, Any]) -> dict[str, Any]:
        """With what every result of the newest revision carries."""
        return {"resultType": "complete", **result, "_meta": {SERVER_INFO_KEY: self._info}}

    async def _discover(
        self, request: Request, deadline: float, progress: Progress | None
    ) -> dict[str, Any]:
        # Which log messages a client wants, each request says for itself. An older client says it
        # once, for a session that there is not.
        capabilities: dict[str, Any] = {**CAPABILITIES, "logging": {}}
        supported = {"supportedVersions": list(SUPPORTED), "capabilities": capabilities}
        return {**supported, **self._caching}

    async def _initialize(
        self, request: Request, deadline: float, progress: Progress | None
    ) -> dict[str, Any]:
        """Agrees on a revision. No session begins: every later request stands for itself."""
        requested = requested_version(request.params)
        return {
            "protocolVersion": requested if requested in HANDSHAKE else HANDSHAKE[0],
            "capabilities": dict(CAPABILITIES),
            "serverInfo": self._info,
        }

    async def _ping(
        self, request: Request, deadline: float, progress: Progress | None
    ) -> dict[str, Any]:
        return {}

    async def _list(
        self, request: Request, deadline: float, progress: Progress | None
    ) -> dict[str, Any]:
        tools = await self.tools()
        start = _start(cursor(request.params), len(tools))
        end = start + PAGE
        result: dict[str, Any] = {
            "tools": [tool.listed(any_output=request.modern) for tool in tools[start:end]]
        }
        if end < len(tools):
            result["nextCursor"] = str(end)
        return {**result, **self._caching} if request.modern else result

    async def _call(
        self, request: Request, deadline: float, progress: Progress | None
    ) -> dict[str, Any]:
        params = tool_call(request.params, modern=request.modern)
        tool = await self.tool(params.name)
        if tool is None:
            if params.request_state is not None:
                raise InvalidRequestState("unknown tool")
            raise InvalidParams(f"Unknown tool: {params.name[:100]}")
        # With a request state, the arguments are those of the first request or the state refuses
        # them, and that refusal says more.
        if params.request_state is None and (problem := tool.problem(params.arguments)):
            account.current().agent = tool.agent
            account.ended(misfit := error_result(problem))
            return misfit.as_result()

        from core.rounds import Call  # a list does not wait for what runs agents

        rounds = await self._rounds()
        outcome = await rounds.call(
            Call(
                tool=tool,
                arguments=params.arguments,
                context=params.context,
                responses=params.responses,
                request_state=params.request_state,
                modes=request.modes,
                modern=request.modern,
                principal=request.caller.principal,
                configurable={**request.caller.configurable, **_trace(request)},
                threads=request.caller.threads,
                deadline=deadline,
                progress=progress,
            )
        )
        return _as_result(outcome, modern=request.modern)

    METHODS: ClassVar[Mapping[bool, Mapping[str, "_Method"]]] = MappingProxyType(
        {
            True: {"server/discover": _discover, "tools/list": _list, "tools/call": _call},
            False: {
                "initialize": _initialize,
                "ping": _ping,
                "tools/list": _list,
                "tools/call": _call,
            },
        }
    )
    """The methods of the newest revision, and of those before it."""


_Method: TypeAlias = Callable[
    [Endpoint, Request, float, Progress | None], Awaitable[dict[str, Any]]
]


def _trace(request: Request) -> dict[str, str]:
    """The client's trace, which the agent may carry on."""
    return {"traceparent": request.trace} if request.trace else {}


def _start(cursor: str | None, count: int) -> int:
    """Where a page begins; the first one without a cursor."""
    if cursor is None:
        return 0
    if cursor not in (str(start) for start in range(PAGE, count, PAGE)):
        raise InvalidParams("Invalid cursor")
    return int(cursor)


def _as_result(outcome: ToolResult | InputRequired, *, modern: bool) -> dict[str, Any]:
    result = outcome.as_result()
    # Before 2026-07-28 structured content is an object; clients throw the rest of a result away.
    if not modern and not isinstance(result.get("structuredContent", {}), dict):
        del result["structuredContent"]
    return result
