"""LangGraph's custom auth: the `langgraph_sdk.Auth` that `auth.path` in langgraph.json names.

Its `authenticate` says who calls. Its `@auth.on` handlers for threads say which calls that caller
may keep and resume, the most specific one that is registered:

    threads.create       once, when a call pauses: what it leaves in `metadata` is kept
    threads.update       then too, and at each retry
    threads.read         at each retry
    threads.create_run   before a run, where a handler is registered for that very action

The handlers are code of the deployment: what goes wrong in one refuses the request, and the log
gets the kind and place of the error alone, since its text may hold a token.
"""

import asyncio
import inspect
import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, cast
from uuid import UUID, uuid5

from langgraph_sdk import Auth
from starlette.exceptions import HTTPException as StarletteException

from core import canonical, modules
from core.caller import Caller, Permit
from core.catalog import CatalogError
from core.errors import InternalError, InvalidRequestState, Refusal
from core.project import Project
from handler.challenge import Challenge
from handler.filters import Filter, fixed, matches
from handler.payload import parse
from handler.principal import principal
from handler.refusals import Forbidden, HttpRefusal
from handler.users import User, configurable
from handler.visit import Visit

PATIENCE: Final = 10.0
"""Seconds that one handler may take."""

_ASSISTANTS: Final = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""The name space in which LangGraph gives each graph the id of its assistant."""

_DENIALS: Final = (Auth.exceptions.HTTPException, StarletteException)

_PARAMETERS: Final[Mapping[str, Callable[[Visit], Any]]] = {
    "request": Visit.request,
    "scope": lambda visit: visit.http.scope,
    "path": lambda visit: visit.http.url.path,
    "method": lambda visit: visit.http.method,
    "path_params": lambda visit: visit.http.path_params,
    "query_params": lambda visit: visit.query,
    "headers": lambda visit: dict(visit.http.scope["headers"]),
    "authorization": lambda visit: next(iter(visit.headers.all("Authorization")), None),
    "body": lambda visit: _body(visit),
}
"""What an `authenticate` may ask for by the name of a parameter."""

Handler: TypeAlias = Callable[..., Any]

_log: Final = logging.getLogger("intermezzo")


class CustomAuth:
    """Identifies callers as the deployment's own code does."""

    def __init__(self, auth: Auth, *, challenge: Challenge) -> None:
        self._authenticate: Handler = _kept(auth, "_authenticate_handler")
        self._wanted = [
            name for name in inspect.signature(self._authenticate).parameters if name in _PARAMETERS
        ]
        self._rules = Rules(auth)
        self._challenge = challenge

    @classmethod
    def load(cls, project: Project, *, challenge: Challenge) -> "CustomAuth":
        """The custom auth of a project.

        Raises:
            CatalogError: it can't be imported, or is no such thing.
        """
        assert project.auth_path is not None, "there is one"
        project.make_importable()
        place, _, attribute = project.auth_path.rpartition(":")
        try:
            auth = getattr(_module(place, project), attribute)
        except (Exception, SystemExit) as error:
            raise _unfit(project, f"importing it failed: {type(error).__name__}") from error
        if not isinstance(auth, Auth):
            raise _unfit(project, f"it is a {type(auth).__name__}: name a langgraph_sdk.Auth")
        authenticate = _kept(auth, "_authenticate_handler")
        if authenticate is None:
            raise _unfit(project, "it lets everybody in: register a function with @authenticate")
        if unknown := _unknown(authenticate):
            listed = ", ".join(_PARAMETERS)
            problem = f"authenticate wants {', '.join(unknown)}; it may ask for {listed}"
            raise _unfit(project, problem)
        return cls(auth, challenge=challenge)

    async def identify(self, visit: Visit) -> Caller:
        """Whom `authenticate` says that the request is from.

        Raises:
            HttpRefusal: it refuses the request.
            InternalError: it fails.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                said = await self._ask(visit)
            permissions, user = _normal(said)
        except Refusal:
            raise
        except _DENIALS as error:
            raise self._denied(error) from None
        except AssertionError:
            raise self._challenge.invalid("authenticate: AssertionError") from None
        except Exception as error:
            raise _fault("authenticate", error) from None
        return Caller(
            principal=principal("langgraph", user.identity),
            configurable=configurable(user, permissions),
            threads=CallerThreads(self._rules, user, permissions),
        )

    async def _ask(self, visit: Visit) -> Any:
        values: dict[str, Any] = {}
        for name in self._wanted:
            value = _PARAMETERS[name](visit)
            values[name] = await value if inspect.isawaitable(value) else value
        if inspect.iscoroutinefunction(self._authenticate):
            return await self._authenticate(**values)
        said = await asyncio.to_thread(self._authenticate, **values)
        return await said if inspect.isawaitable(said) else said

    def _denied(self, error: Any) -> Refusal:
        """The refusal that an HTTP exception stands for; its detail is meant for the client."""
        status, reason = int(error.status_code), f"authenticate: {error.status_code}"
        if not 400 <= status < 500:
            return _fault("authenticate", error)
        headers = self._challenge.invalid(reason).headers if status == 401 else None
        return Denied(status, str(error.detail), reason=reason, headers=headers)


class Denied(HttpRefusal):
    """A refusal in the words, and at the status, of the deployment's own code."""

    def __init__(
        self, status: int, message: str, *, reason: str, headers: Mapping[str, str] | None
    ) -> None:
        super().__init__(message, reason=reason, headers=headers)
        self.status = status


class Rules:
    """The `@auth.on` handlers of a deployment."""

    def __init__(self, auth: Auth) -> None:
        self._handlers: Mapping[tuple[str, str], Sequence[Handler]] = _kept(auth, "_handlers")
        self._global: Sequence[Handler] = _kept(auth, "_global_handlers")

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
            if said not in (None, True, False):
                raise TypeError("neither a filter nor a boolean nor None")
        except (*_DENIALS, AssertionError):
            return None
        except Exception as error:
            raise _fault(f"threads.{action}", error) from None
        return None if said is False else {}


def _kept(auth: Auth, name: str) -> Any:
    """What langgraph_sdk keeps of an `Auth` for servers, under private names that it does not
    change."""
    return getattr(auth, name)


async def _body(visit: Visit) -> dict[str, Any]:
    """The JSON object that was sent; what is no such thing is refused later, by its own rung."""
    value = parse(await visit.body.read()).value
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _module(place: str, project: Project) -> Any:
    if "/" in place or place.endswith(".py"):
        return modules.load_file(Path(project.root, place).resolve(), project.root)
    return modules.load_module(place)


def _unfit(project: Project, problem: str) -> CatalogError:
    return CatalogError(project.path, [f"auth.path: {project.auth_path}: {problem}"])


def _unknown(authenticate: Handler) -> list[str]:
    """The parameters that nothing is known for."""
    return [
        name
        for name, each in inspect.signature(authenticate).parameters.items()
        if name not in _PARAMETERS
        and each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]


def _normal(said: Any) -> tuple[list[str], User]:
    """Permissions and user, in whichever of its forms `authenticate` returned them."""
    if isinstance(said, tuple):
        permissions, who = cast("tuple[Any, Any]", said)
        return list(permissions), User.of(who)
    user = User.of(said)
    return list(user.permissions), user


def _metadata(value: Mapping[str, Any]) -> dict[str, Any]:
    """What a handler left of a thread's metadata, which is to be kept as JSON."""
    metadata: Any = value.get("metadata")
    try:
        canonical.dumps(metadata)
        return {**metadata}
    except (TypeError, ValueError) as error:
        raise _fault("threads.create", error) from None


def _fault(what: str, error: Exception) -> InternalError:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    _log.error("custom auth failed in %s: %s%s", what, type(error).__name__, place)
    return InternalError("Internal error")
