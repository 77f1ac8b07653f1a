"""The catalogue: the agents that a langgraph.json names, as tools and as graphs.

Importing this module imports neither LangGraph nor a graph, and with a built `catalog.json` beside
langgraph.json neither does listing: a graph is imported by the first call that runs it.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast
from weakref import WeakKeyDictionary

from core.collection import loading
from core.project import CatalogError, Project, Serde, Source
from core.tools import Tool

if TYPE_CHECKING:
    from core.agents import Agent

__all__ = ["BUILT", "Catalog", "CatalogError", "build"]

BUILT: Final = "catalog.json"
"""The built catalogue's file, beside langgraph.json."""

_FORMAT: Final = 1
"""Raised when a built catalogue of an older version must not be read."""


class Catalog:
    """The agents of one project. Reading it imports none of them."""

    def __init__(self, project: Project, built: tuple[Tool, ...] | None = None) -> None:
        self.project = project
        self._tools = built
        self._agents: dict[str, Agent] = {}
        # A lock belongs to the event loop that waits on it, and a process may have had several.
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a langgraph.json, and the built catalogue beside it when it is of these files.

        Raises:
            CatalogError: with every problem that can be seen without importing an agent.
        """
        project = Project.read(path)
        return cls(project, _built(project))

    @property
    def default_ttl(self) -> float | None:
        """`checkpointer.ttl.default_ttl`, minutes."""
        return self.project.default_ttl

    @property
    def threads(self) -> bool:
        """Whether a call may be kept; false with `http.disable_threads`."""
        return self.project.threads

    @property
    def env(self) -> Mapping[str, str] | Path | None:
        """The variables that the agents want, or the file that holds them."""
        return self.project.env

    @property
    def auth_path(self) -> str | None:
        """`auth.path`, as written."""
        return self.project.auth_path

    @property
    def serde(self) -> Serde:
        """`checkpointer.serde`."""
        return self.project.serde

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a developer should know about the file."""
        return self.project.warnings

    async def tools(self) -> tuple[Tool, ...]:
        """Every agent as a tool, in the file's order, without importing one when it is built.

        Raises:
            CatalogError: with the problem of each agent that can't be served.
        """
        if self._tools is None:
            self._tools = await self._described()
        return self._tools

    async def tool(self, name: str) -> Tool | None:
        """The tool of that name; at most its own agent is imported."""
        if self._tools is not None:
            return next((tool for tool in self._tools if tool.name == name), None)
        if self._source(name) is None:
            return None
        return (await self.agent(name)).tool

    async def agent(self, name: str) -> "Agent":
        """The agent of that name, imported once per process however many ask at once.

        Raises:
            LookupError: there is none.
            CatalogError: it can't be served.
        """
        source = self._source(name)
        if source is None:
            raise LookupError(f"no agent is called {name!r}")
        if name not in self._agents:
            lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
            async with lock:
                if name not in self._agents:
                    self._agents[name] = await self._load(source)
        return self._agents[name]

    def _source(self, name: str) -> Source | None:
        return next((each for each in self.project.sources if each.name == name), None)

    async def _load(self, source: Source) -> "Agent":
        with loading():
            # LangGraph costs three times what the web framework does; a list or a refusal needs
            # none.
            from core.agents import Agent
            from core.factories import Unfit

            self.project.make_importable()
            try:
                return await Agent.load(source, self.project)
            except Unfit as error:
                problem = f"graphs.{source.name!r}: {error}"
                raise CatalogError(self.project.path, [problem]) from (error.__cause__ or error)

    async def _described(self) -> tuple[Tool, ...]:
        tools: list[Tool] = []
        errors: list[CatalogError] = []
        for source in self.project.sources:
            try:
                tools.append((await self.agent(source.name)).tool)
            except CatalogError as error:
                errors.append(error)
        if errors:
            problems = [problem for error in errors for problem in error.problems]
            raise CatalogError(self.project.path, problems) from _cause(errors)
        return tuple(tools)


async def build(catalog: Catalog) -> bytes:
    """The content of `catalog.json`, which lets a process list its tools without LangGraph.

    It says which files it was built from: one that has changed since makes it void.
    """
    content = {
        "format": _FORMAT,
        "files": _digests(catalog.project),
        "tools": [tool.as_json() for tool in await catalog.tools()],
    }
    return json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n"


def _built(project: Project) -> tuple[Tool, ...] | None:
    try:
        content = cast("dict[str, Any]", json.loads((project.root / BUILT).read_bytes()))
        if content["format"] != _FORMAT or content["files"] != _digests(project):
            return None
        return tuple(Tool.from_json(entry) for entry in content["tools"])
    except (OSError, ValueError, TypeError, LookupError):
        return None


def _digests(project: Project) -> dict[str, str]:
    """Of langgraph.json and of each agent's own file, by path from the root."""
    files = {source.file for source in project.sources if source.file}
    digests = {project.path.name: project.digest}
    for file in sorted(files):
        relative = Path(os.path.relpath(file, project.root)).as_posix()
        digests[relative] = hashlib.sha256(file.read_bytes()).hexdigest()
    return digests


def _cause(errors: list[CatalogError]) -> BaseException | None:
    causes = [error.__cause__ for error in errors if isinstance(error.__cause__, Exception)]
    if len(causes) < 2:
        return causes[0] if causes else None
    return ExceptionGroup("agents that can't be served", causes)
