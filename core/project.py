"""langgraph.json, as LangGraph defines it: what of it is served, and what is wrong with it.

Reading imports no agent and no LangGraph. Everything wrong with a file is told at once.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, cast

from core import modules
from core.tools import COMFORTABLE_NAME, closest, name_problem

_USED: Final = {
    "": {"$schema", "auth", "checkpointer", "dependencies", "env", "graphs", "http"},
    "auth": {"path"},
    "checkpointer": {"serde", "ttl"},
    "checkpointer.ttl": {"default_ttl"},
    "http": {"disable_threads"},
}
"""The keys that are read, by the object they stand in."""

_LANGGRAPH: Final = {
    *("_INTERNAL_docker_tag", "agent_server", "api_version", "base_image", "dockerfile_lines"),
    *("encryption", "image_distro", "keep_pkg_tools", "node_version", "pip_config_file"),
    *("pip_installer", "python_version", "store", "ui", "ui_config", "webhooks"),
}
"""Keys that LangGraph knows and nothing here needs; any other key is called unknown."""

_OURS: Final = Path(__file__).resolve().parent.parent
"""Where this `core` and its `handler` lie."""


class CatalogError(Exception):
    """Everything that is wrong with a langgraph.json or its agents, each with the fix."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        self.path = path
        self.problems = tuple(problems)
        listed = "".join(f"\n- {problem}" for problem in problems)
        super().__init__(f"{path} can't be served:{listed}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where one agent comes from: an attribute of a file, or of an importable module."""

    name: str
    reference: str
    attribute: str
    file: Path | None = None
    module: str | None = None
    description: str = ""
    input_schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Serde:
    """Which classes a checkpoint may bring back to life, beyond those that the graph declares.

    Attributes:
        msgpack: `(module, name)` of each further class, or True for all of them.
        json: the same for checkpoints that old versions of LangGraph wrote.
        pickle: whether pickles are loaded, which runs whatever they say.
    """

    msgpack: tuple[tuple[str, ...], ...] | bool = ()
    json: tuple[tuple[str, ...], ...] | bool = ()
    pickle: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A langgraph.json without fault.

    Attributes:
        root: the folder that the file lies in; its paths are relative to it.
        digest: of the file's bytes.
        folders: what its imports are looked up in: the root and its local dependencies.
        default_ttl: `checkpointer.ttl.default_ttl`, minutes.
        threads: false when `http.disable_threads` says that no call may be kept.
        env: variables, or the file that holds them. Nothing here applies them.
        auth_path: `auth.path`, as written.
        warnings: what a developer should know; at most a line per subject.
    """

    path: Path
    root: Path
    digest: str
    sources: tuple[Source, ...]
    folders: tuple[Path, ...]
    default_ttl: float | None = None
    threads: bool = True
    env: Mapping[str, str] | Path | None = None
    auth_path: str | None = None
    serde: Serde = field(default_factory=Serde)
    warnings: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read and check a langgraph.json.

        Raises:
            CatalogError: with every problem that can be seen without importing an agent.
        """
        # Made absolute, but no link is followed: a mounted file is often a link to elsewhere, while
        # its paths are meant from where it is seen.
        path = Path(os.path.abspath(path))
        try:
            data = path.read_bytes()
            config = json.loads(data, object_pairs_hook=_object)
        except (OSError, ValueError) as error:
            raise CatalogError(path, [f"it is not readable JSON: {error}"]) from error
        if not isinstance(config, dict):
            raise CatalogError(path, ["it must hold one JSON object"])
        reading = _Reading(path.parent, cast("dict[str, Any]", config))
        project = cls(
            path=path,
            root=path.parent,
            digest=hashlib.sha256(data).hexdigest(),
            sources=reading.sources(),
            folders=reading.folders(),
            default_ttl=reading.default_ttl(),
            threads=reading.threads(),
            env=reading.env(),
            auth_path=reading.auth_path(),
            serde=reading.serde(),
            warnings=reading.warnings(),
        )
        if reading.problems:
            raise CatalogError(path, reading.problems)
        return project

    def make_importable(self) -> None:
        """Let the agents import the project's own packages, as LangGraph does."""
        modules.make_importable(self.folders)


class _Reading:
    """One reading of a file: each method reads one subject and adds what is wrong with it."""

    def __init__(self, root: Path, config: dict[str, Any]) -> None:
        self.root = root
        self.config = config
        self.problems: list[str] = []
        self.notes: list[str] = []

    def sources(self) -> tuple[Source, ...]:
        graphs = self.config.get("graphs")
        if not isinstance(graphs, dict) or not graphs:
            self.problems.append(
                'graphs: name at least one, such as {"greeter": "./agents/greeter.py:graph"}'
            )
            return ()
        entries = cast("dict[str, Any]", graphs)
        self._names(list(entries))
        found = [self._source(name, entry) for name, entry in entries.items()]
        return tuple(source for source in found if source is not None)

    def folders(self) -> tuple[Path, ...]:
        folders = [self.root]
        dependencies = self._get("dependencies", (list,), [])
        for dependency in dependencies:
            if not isinstance(dependency, str):
                self.problems.append(f"dependencies: {dependency!r} is not a string")
                continue
            folder = Path(os.path.abspath(self.root / dependency))
            if folder.is_dir():
                folders.append(folder)
                # A project with a src folder is installed in LangGraph's image, not put on a path.
                if (folder / "src").is_dir() and not (folder / "src" / "__init__.py").exists():
                    folders.append(folder / "src")
            elif dependency.startswith("."):
                self.problems.append(f"dependencies: there is no folder {dependency!r}")
        unique = tuple(dict.fromkeys(folders))
        for folder in unique:
            self._foreign_packages(folder)
        return unique

    def default_ttl(self) -> float | None:
        ttl = self._get("checkpointer.ttl.default_ttl", (int, float), None)
        if ttl is None:
            return None
        if isinstance(ttl, bool) or not 0 < ttl < float("inf"):
            self.problems.append(f"checkpointer.ttl.default_ttl: {ttl!r} is no number of minutes")
            return None
        return float(ttl)

    def threads(self) -> bool:
        return not self._get("http.disable_threads", (bool,), False)

    def env(self) -> Mapping[str, str] | Path | None:
        env = self._get("env", (dict, str), None)
        if not env:
            return None
        if isinstance(env, str):
            file = self.root / env
            if file.is_file():
                return file
            self.notes.append(f"env: there is no file {env!r}, so nothing is read from it")
            return None
        wrong = [name for name, value in env.items() if not isinstance(value, str)]
        if wrong:
            self.problems.append(f"env: the value of {', '.join(wrong)} must be a string")
        return cast("dict[str, str]", env)

    def auth_path(self) -> str | None:
        path = self._get("auth.path", (str,), None)
        if path is not None and ":" not in path:
            self.problems.append(f"auth.path: {path!r} must name a file and an attribute, a.py:b")
        return path

    def serde(self) -> Serde:
        return Serde(
            msgpack=self._classes("checkpointer.serde.allowed_msgpack_modules"),
            json=self._classes("checkpointer.serde.allowed_json_modules"),
            pickle=self._get("checkpointer.serde.pickle_fallback", (bool,), False),
        )

    def warnings(self) -> tuple[str, ...]:
        ignored = sorted(self._ignored())
        known = [key for key in ignored if "." in key or key in _LANGGRAPH]
        unknown = [key for key in ignored if key not in known]
        parts: list[str] = []
        if known:
            parts.append(f"not used here: {', '.join(known)}")
        if unknown:
            parts.append(f"unknown: {', '.join(unknown)}")
        return (*self.notes, *(["; ".join(parts)] if parts else []))

    def _names(self, names: list[str]) -> None:
        seen: dict[str, str] = {}
        for name in names:
            problem = name_problem(name)
            if problem:
                self.problems.append(f"graphs.{name!r}: {problem}")
            elif len(name) > COMFORTABLE_NAME:
                self.notes.append(
                    f"graphs.{name!r}: a name above {COMFORTABLE_NAME} characters is refused by"
                    " hosts that put a prefix before it"
                )
            twin = seen.setdefault(name.casefold(), name)
            if twin != name:
                self.problems.append(
                    f"graphs.{name!r}: differs from {twin!r} by case alone, which hosts take for"
                    " the same tool; rename one"
                )

    def _source(self, name: str, entry: Any) -> Source | None:
        where = f"graphs.{name!r}"
        members: dict[str, Any] = {"path": entry} if isinstance(entry, str) else _members(entry)
        if not isinstance(members.get("path"), str):
            self.problems.append(f'{where}: must be "path.py:attribute" or {{"path": …}}')
            return None
        reference: str = members["path"]
        place, _, attribute = reference.rpartition(":")
        if not place or not attribute.isidentifier():
            self.problems.append(
                f"{where}: {reference!r} must name an attribute, such as ./agent.py:graph"
            )
            return None
        description = members.get("description") or ""
        input_schema = members.get("input_schema")
        if not isinstance(description, str):
            self.problems.append(f"{where}.description: must be a string")
        if input_schema is not None and not _is_object_schema(input_schema):
            self.problems.append(
                f'{where}.input_schema: must be a JSON Schema whose root has "type": "object"'
            )
        source = Source(
            name=name,
            reference=reference,
            attribute=attribute,
            description=str(description).strip(),
            input_schema=input_schema,
            **self._place(where, place),
        )
        return source if source.file or source.module else None

    def _place(self, where: str, place: str) -> dict[str, Any]:
        """A file when it looks like a path, else a module: LangGraph decides by the slash."""
        if place.endswith((".js", ".ts", ".mjs", ".mts", ".cjs", ".cts")):
            self.problems.append(f"{where}: {place!r} is JavaScript; only Python agents are served")
            return {}
        if "/" not in place and "\\" not in place and not place.endswith(".py"):
            return {"module": place}
        file = Path(os.path.abspath(self.root / place))
        if not file.is_file():
            near = closest(place, [f"./{each.relative_to(self.root)}" for each in self._python()])
            self.problems.append(f"{where}: there is no file {place!r}{near}")
            return {}
        return {"file": file}

    def _python(self) -> list[Path]:
        return [*self.root.glob("*.py"), *self.root.glob("*/*.py")][:500]

    def _foreign_packages(self, folder: Path) -> None:
        for package in ("core", "handler"):
            if _is_foreign(folder, package):
                self.problems.append(
                    f"{folder} holds a package {package!r} of its own, which this process can't"
                    f" import beside the server's {package!r}: rename it, or move it into a package"
                )

    def _classes(self, key: str) -> tuple[tuple[str, ...], ...] | bool:
        listed = self._get(key, (list, bool), None)
        if listed is None or isinstance(listed, bool):
            return listed or ()
        if not all(isinstance(each, list) for each in listed):
            self.problems.append(f'{key}: must list classes as ["module", "Name"]')
            return ()
        return tuple((".".join(each[:-1]), each[-1]) for each in listed if len(each) > 1)

    def _ignored(self) -> Iterator[str]:
        for place, used in _USED.items():
            members = _members(self._member(place) if place else self.config)
            yield from (f"{place}.{name}".lstrip(".") for name in members if name not in used)

    def _get(self, key: str, kinds: tuple[type, ...], default: Any) -> Any:
        """The member at a dotted key, when it is of that kind; null is as good as absent."""
        value = self._member(key)
        if value is None or isinstance(value, kinds):
            return default if value is None else value
        names = " or ".join(dict.fromkeys(_JSON_NAMES[each] for each in kinds))
        self.problems.append(f"{key}: must be {names}")
        return default

    def _member(self, key: str) -> Any:
        value: Any = self.config
        for part in key.split("."):
            value = _members(value).get(part)
        return value


_JSON_NAMES: Final[dict[Any, str]] = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "a number",
    list: "an array",
    str: "a string",
}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, whose second member of a name would replace the first without a word."""
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has two members called {twice!r}")
    return members


def _members(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _is_object_schema(value: Any) -> bool:
    return _members(value).get("type") == "object"


def _is_foreign(folder: Path, package: str) -> bool:
    """Whether a folder holds Python under that name which is not this server's."""
    ours = _OURS / package
    single, directory = folder / f"{package}.py", folder / package
    if single.is_file():
        return True
    if not directory.is_dir() or (ours.exists() and directory.samefile(ours)):
        return False
    return next(directory.rglob("*.py"), None) is not None
