"""What a deployment's `@auth.on` handlers let a caller do with the thread of a call.

The most specific handler that is registered decides, and without one everything is allowed, as
LangGraph has it:

    threads.create       once, when a call pauses: what it leaves in `metadata` is kept
    threads.update       then too, and at each retry
    threads.read         at each retry
    threads.create_run   before a run, where a handler is registered for that very action

The handlers are code of the deployment: what goes wrong in one refuses the request, and the log
gets the kind and place of the error alone, since its text may hold a token.
"""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast
from uuid import UUID, uuid5

from langgraph_sdk import Auth
from starlette.exceptions import HTTPException as StarletteException

from core import canonical
from core.caller import Permit
from core.errors import InternalError, InvalidRequestState
from handler.filters import Filter, fixed, matches
from handler.refusals import Forbidden
from handler.users import User

PATIENCE: Final = 10.0
"""Seconds that one handler may take."""

DENIALS: Final = (Auth.exceptions.HTTPException, StarletteException)
"""What a handler raises to refuse, besides AssertionError."""

_ASSISTANTS: Final = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""The name space in which LangGraph gives each graph the id of its assistant."""

Handler: TypeAlias = Callable[..., Any]

_log: Final = logging.getLogger("intermezzo")


class Rules:
    """The `@auth.on` handlers of a deployment."""

    def __init__(self, auth: Auth) -> None:
        self._handlers: Mapping[tuple[str, str], Sequence[Handler]] = kept(auth, "_handlers")
        self._global: Sequence[Handler] = kept(auth, "_global_handlers")

    def rule(self, action: str) -> Handler | None:
        """The most specific handler for an action on threads."""
        places = [("threads", action), ("threads", "*"), ("*", action), ("*", "*")]
        registered = [self._handlers[place][-1] for place in places if place in self._handlers]
        return next(iter((*registered, *self._global[-1:])), None)

    def rule_by_name(self, action: str) -> Handler | None:
        """The handler that names an action; those for any action do not count."""
        places = [("threads", action), ("*", action)]
        return next(
            (self._handlers[place][-1] for place in places if place in self._handlers), None
        )


class CallerThreads:
    """What the rules let one caller do with threads."""

    def __init__(self, rules: Rules, user: User, permissions: Sequence[str]) -> None:
        self._rules = rules
        self._user = user
        self._permissions = permissions

    async def start(self, agent: str) -> None:
        """Passes a caller who may run the agent.

        Raises:
            Forbidden: the caller may not.
        """
        await self._run(agent, None)

    async def keep(self, thread: UUID, agent: str) -> Mapping[str, Any] | None:
        """The metadata that the rules leave on a new thread; None when it may not be made, or not
        be changed once it is."""
        value: dict[str, Any] = {
            "thread_id": thread,
            "metadata": {"graph_id": agent},
            "if_exists": "raise",
        }
        wanted = await self._asked("create", value)
        if wanted is None:
            return None
        # A thread that is made under a filter is one that it means.
        metadata = {**fixed(wanted), **_metadata(value)}
        update = await self._updated(thread)
        if update is None or not (matches(metadata, wanted) and matches(metadata, update)):
            return None
        return metadata

    async def resume(self, thread: UUID, agent: str) -> Permit | None:
        """What the rules say of a retry, as far as they can without the thread's metadata."""
        run = await self._run(agent, thread)
        read = await self._asked("read", {"thread_id": thread, "run_id": None})
        if read is None:
            raise InvalidRequestState("the rules forbid to read the thread")
        update = await self._updated(thread)
        if update is None:
            return None

        def permit(metadata: Mapping[str, Any]) -> bool:
            if not (matches(metadata, read) and matches(metadata, run)):
                raise InvalidRequestState("the thread is not one that the rules let be read")
            return matches(metadata, update)

        return permit

    async def _updated(self, thread: UUID) -> Filter | None:
        return await self._asked("update", {"thread_id": thread, "metadata": {}, "action": None})

    async def _run(self, agent: str, thread: UUID | None) -> Filter:
        value: dict[str, Any] = {
            "assistant_id": uuid5(_ASSISTANTS, agent),
            "thread_id": thread,
            "metadata": {"graph_id": agent},
            "kwargs": {},
        }
        handler = self._rules.rule_by_name("create_run")
        wanted = await self._told("create_run", handler, value)
        if wanted is None:
            raise Forbidden("This caller may not run this tool.", reason="create_run: denied")
        return wanted

    async def _asked(self, action: str, value: dict[str, Any]) -> Filter | None:
        return await self._told(action, self._rules.rule(action), value)

    async def _told(
        self, action: str, handler: Handler | None, value: dict[str, Any]
    ) -> Filter | None:
        """The filter that a handler sets, which may be empty; None when it denies.

        Raises:
            InternalError: the handler fails, or says something else.
        """
        if handler is None:
            return {}
        context = Auth.types.AuthContext(
            permissions=self._permissions,
            user=cast("Any", self._user),  # its protocol has __contains__ return nothing
            resource="threads",
            action=cast("Any", action),
        )
        try:
            async with asyncio.timeout(PATIENCE):
                said = await cast("Awaitable[Any]", handler(ctx=context, value=value))
            if isinstance(said, dict):
                matches({}, cast("Filter", said))  # a filter that is none is told at once
                return cast("Filter", said)
            if said is not None and not isinstance(said, bool):
                raise TypeError("neither a filter nor a boolean nor None")
        except (*DENIALS, AssertionError):
            return None
        except Exception as error:
            raise fault(f"threads.{action}", error) from None
        return None if said is False else {}


def kept(auth: Auth, name: str) -> Any:
    """What langgraph_sdk keeps of an `Auth` for servers, under private names that it does not
    change."""
    return getattr(auth, name)


def fault(what: str, error: Exception) -> InternalError:
    """The refusal of a request that the deployment's own code failed on; the log gets its place."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    _log.error("custom auth failed in %s: %s%s", what, type(error).__name__, place)
    return InternalError("Internal error")


def _metadata(value: Mapping[str, Any]) -> dict[str, Any]:
    """What a handler left of a thread's metadata, which is to be kept as JSON."""
    metadata: Any = value.get("metadata")
    try:
        canonical.dumps(metadata)
        return {**metadata}
    except (TypeError, ValueError) as error:
        raise fault("threads.create", error) from None
