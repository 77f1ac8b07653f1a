"""LangGraph's custom auth: the `langgraph_sdk.Auth` that `auth.path` in langgraph.json names.

Its `authenticate` says who calls; its `@auth.on` handlers, which calls that caller may keep and
resume (`handler.thread_rules`).
"""

import asyncio
import inspect
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from langgraph_sdk import Auth

from core import modules
from core.caller import Caller
from core.catalog import CatalogError
from core.errors import Refusal
from core.project import Project
from handler.challenge import Challenge
from handler.payload import parse
from handler.principal import principal
from handler.refusals import HttpRefusal
from handler.thread_rules import DENIALS, PATIENCE, CallerThreads, Handler, Rules, fault, kept
from handler.users import User, configurable
from handler.visit import Visit

_PARAMETERS: Final[Mapping[str, Callable[[Visit], Any]]] = {
    "request": Visit.request,
    "scope": lambda visit: visit.http.scope,
    "path": lambda visit: visit.http.scope["path"],
    "method": lambda visit: visit.http.method,
    "path_params": lambda visit: visit.http.path_params,
    "query_params": lambda visit: visit.query,
    "headers": lambda visit: dict(visit.http.scope["headers"]),
    "authorization": lambda visit: next(iter(visit.headers.all("Authorization")), None),
    "body": lambda visit: _body(visit),
}
"""What an `authenticate` may ask for by the name of a parameter."""

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")
"""What the name and the value of a field may hold: RFC 9110 (5.1, 5.5)."""

_OF_A_BODY: Final = frozenset(("content-length", "content-type", "transfer-encoding"))
"""Fields that describe a body, which is ours."""


class CustomAuth:
    """Identifies callers as the deployment's own code does."""

    def __init__(self, auth: Auth, *, challenge: Challenge) -> None:
        self._authenticate: Handler = kept(auth, "_authenticate_handler")
        self._wanted = [
            name for name in inspect.signature(self._authenticate).parameters if name in _PARAMETERS
        ]
        self._rules = Rules(auth)
        self._challenge = challenge
        # Of its own: nodes at work must not keep callers from being identified.
        self._threads = ThreadPoolExecutor(thread_name_prefix="authenticate")

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
            why = f"{type(error).__name__}: {error}"
            raise _unfit(project, f"importing it failed: {why}") from error
        if not isinstance(auth, Auth):
            raise _unfit(project, f"it is a {type(auth).__name__}: name a langgraph_sdk.Auth")
        authenticate = kept(auth, "_authenticate_handler")
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
            if said is None or said is False:
                raise self._challenge.invalid("authenticate names nobody")
            permissions, user = _normal(said)
            if not user.is_authenticated:
                raise self._challenge.invalid("authenticate names somebody unknown")
        except Refusal:
            raise
        except DENIALS as error:
            raise self._denied(error) from None
        except AssertionError:
            raise self._challenge.invalid("authenticate: AssertionError") from None
        except Exception as error:
            raise fault("authenticate", error) from None
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
        work = partial(copy_context().run, self._authenticate, **values)
        said = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        return await said if inspect.isawaitable(said) else said

    def _denied(self, error: Any) -> Refusal:
        """The refusal that an HTTP exception stands for; what it holds is meant for the client."""
        status, reason = int(error.status_code), f"authenticate: {error.status_code}"
        if not 400 <= status < 500:
            return fault("authenticate", error)
        headers: dict[str, str] = {}
        if status == 401:
            headers.update(self._challenge.invalid(reason).headers)
        given = cast("Mapping[Any, Any]", error.headers or {})
        own = {str(name).lower(): str(value) for name, value in given.items()}
        if not all(_NAME.fullmatch(name) and _VALUE.fullmatch(own[name]) for name in own):
            return fault("authenticate", error)
        headers.update({name: own[name] for name in own if name not in _OF_A_BODY})
        return Denied(status, str(error.detail), reason=reason, headers=headers)


class Denied(HttpRefusal):
    """A refusal in the words, and at the status, of the deployment's own code."""

    def __init__(
        self, status: int, message: str, *, reason: str, headers: Mapping[str, str] | None
    ) -> None:
        super().__init__(message, reason=reason, headers=headers)
        self.status = status


async def _body(visit: Visit) -> dict[str, Any]:
    """The JSON object that was sent; what is no such thing is refused later, by its own rung."""
    value = parse(await visit.body.read()).value
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _module(place: str, project: Project) -> Any:
    if "/" in place or place.endswith(".py"):
        return modules.load_file(Path(os.path.abspath(project.root / place)), project.root)
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
    return list(user.permissions or ()), user
