"""The Lambda artifact: a folder with all that the functions need, and nothing else.

    <folder>/              locked dependencies, and those that the agents' langgraph.json names
        core/ handler/     without what only a developer's machine uses
        migrations/
        project/           langgraph.json, its agents, and the catalogue built of them
        contents.json      what is inside

Dependencies are fetched for the function's platform, not for this machine's, so that no container
is needed. The agents are described by this machine's Python with the same dependencies: their
schemas do not depend on the platform. Compiled files are of the function's Python, when it is here.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, Final

from core.project import Project
from handler import __version__, env

CHECKOUT: Final = Path(__file__).resolve().parent.parent

FOLDER: Final = Path(".aws-sam/build/EndpointFunction")
"""Where `template.yaml` looks for the functions' code."""

CONFIG: Final = "project/langgraph.json"
"""Of every artifact, whatever the file was called: `template.yaml` names it."""

CONTENTS: Final = "contents.json"

PYTHON: Final = "3.13"
"""The runtime that `template.yaml` names."""

PLATFORMS: Final[Mapping[str, str]] = {
    "arm64": "aarch64-manylinux_2_34",
    "x86_64": "x86_64-manylinux_2_34",
}
"""Lambda's name of each architecture, and what its Python 3.12 and later can load."""

LARGEST: Final = 250_000_000
"""Bytes that Lambda takes, unzipped."""

# What an artifact has no use for, by its path in the checkout.
_LOCAL: Final = frozenset(
    f"handler/{name}.py" for name in ("__main__", "artifact", "local", "postgres", "serving")
)
_PRODUCT: Final = ("core", "handler", "migrations")
_OURS: Final = frozenset(("agents", "langgraph.json"))
"""What of the checkout itself is an agents' project."""

_UNUSED: Final = frozenset(("zstandard",))
"""Packages that others ask for and do without: it compresses langsmith's traces, at 21 MB."""

_IGNORED: Final = frozenset(("__pycache__", "node_modules", "test", "tests"))


class ArtifactError(Exception):
    """The artifact can't be built; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What an artifact is built for."""

    architecture: str = "arm64"
    python: str = PYTHON

    @property
    def is_here(self) -> bool:
        """Whether this process could run the artifact."""
        machine = platform.machine().lower().replace("aarch64", "arm64")
        here = (sys.platform, machine, sysconfig.get_python_version())
        return here == ("linux", self.architecture, self.python)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """An artifact that was built."""

    folder: Path
    target: Target
    size: int
    packages: int
    compiled: bool

    def __str__(self) -> str:
        said = (
            f"{self.folder}: {self.size / 1e6:.1f} MB unzipped, {self.packages} packages,"
            f" for Python {self.target.python} on {self.target.architecture}"
        )
        if self.compiled:
            return said
        version = self.target.python
        return (
            f"{said}\nNot compiled, so that cold starts take three times as long: there is no"
            f" Python {version} here. `uv python install {version}` gets one; then build again."
        )


def build(config: Path, folder: Path, target: Target) -> Built:
    """Builds the artifact of a langgraph.json's agents. What was in the folder before goes.

    Raises:
        ArtifactError: it can't be built; the folder is as it was.
        CatalogError: the langgraph.json has faults.
    """
    project = Project.read(config)
    env.read(project)  # what is wrong with it would be found by the first request
    dependencies = _Dependencies.of(project)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as made:
        fresh = Path(made, "artifact")
        dependencies.install(fresh, target)
        _copy_product(fresh)
        _copy_project(project, fresh / CONFIG)
        _describe(fresh, dependencies, target)
        python = find_python(target.python)
        if python is not None:
            _compile(python, fresh)
        size = _write_contents(fresh, project, target, compiled=python is not None)
        if size > LARGEST:
            raise ArtifactError(f"It has {size / 1e6:.0f} MB; Lambda takes {LARGEST / 1e6:.0f}.")
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    return Built(
        folder=folder,
        target=target,
        size=size,
        packages=len(_packages(folder)),
        compiled=python is not None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dependencies:
    """What is installed: our own locked ones, then what the project names.

    Attributes:
        requirements: of the project, as `langgraph.json` or the files of its folders have them.
        files: of the project, each a requirements.txt or a pyproject.toml.
        lock: the versions that hold for both.
    """

    requirements: tuple[str, ...]
    files: tuple[Path, ...]
    lock: Path

    @classmethod
    def of(cls, project: Project) -> "_Dependencies":
        config: dict[str, Any] = json.loads(project.path.read_bytes())
        listed = [each for each in config.get("dependencies", ()) if isinstance(each, str)]
        named = [each for each in listed if not (project.root / each).is_dir()]
        files = [file for folder in project.folders if (file := _requirements_of(folder))]
        ours = project.root == CHECKOUT
        lock = CHECKOUT / ("requirements-dev.txt" if ours else "requirements.txt")
        if not lock.is_file():
            raise ArtifactError(f"{lock} is not there: build from a checkout of Intermezzo.")
        return cls(requirements=tuple(named), files=tuple(dict.fromkeys(files)), lock=lock)

    def install(self, folder: Path, target: Target | None) -> None:
        """Puts all of them into a folder, for a target or for this process."""
        place = ["--target", str(folder), "--python", sys.executable]
        if target is not None:
            place += ["--python-version", target.python, "--only-binary", ":all:"]
            place += ["--python-platform", PLATFORMS[target.architecture]]
        locked = str(CHECKOUT / "requirements.txt")
        _uv("install", *place, "--require-hashes", "--requirement", locked)
        if self.requirements or self.files:
            named = [word for file in self.files for word in ("--requirement", str(file))]
            _uv("install", *place, "--constraint", str(self.lock), *named, *self.requirements)
        self._thin(folder)

    def _thin(self, folder: Path) -> None:
        wanted = " ".join((*self.requirements, *(file.read_text() for file in self.files)))
        for package in _UNUSED:
            if package not in wanted:
                for path in folder.glob(f"{package}*"):
                    shutil.rmtree(path)
        for path in (folder / "bin", *folder.rglob("tests")):
            shutil.rmtree(path, ignore_errors=True)
        for path in (folder / ".lock", *folder.rglob("*.pyi")):
            path.unlink(missing_ok=True)


def _requirements_of(folder: Path) -> Path | None:
    """The file that names what a project's folder needs, if any."""
    if folder == CHECKOUT:
        return None
    listed, described = folder / "requirements.txt", folder / "pyproject.toml"
    if listed.is_file():
        return listed
    if described.is_file() and "project" in tomllib.loads(described.read_text("utf-8")):
        return described
    return None


def _uv(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uv", "--quiet", "pip", *arguments],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ArtifactError(f"The dependencies can't be installed:\n{done.stderr.strip()}")


def _copy_product(folder: Path) -> None:
    def is_local(path: Path) -> bool:
        return path.relative_to(CHECKOUT).as_posix() in _LOCAL

    for name in _PRODUCT:
        _copy(CHECKOUT / name, folder / name, leave=is_local)
    shutil.copy(CHECKOUT / "LICENSE", folder)


def _copy_project(project: Project, config: Path) -> None:
    """The project's files, without its tests, hidden files, virtual environments and secrets."""
    root = project.root
    for outside in (each for each in project.folders if not each.is_relative_to(root)):
        raise ArtifactError(
            f"dependencies: {outside} lies outside the project, which is all that is deployed: move"
            f" it below {root}."
        )
    secrets = project.env if isinstance(project.env, Path) else None

    def is_left(path: Path) -> bool:
        foreign = root == CHECKOUT and path.parent == root and path.name not in _OURS
        return foreign or path == secrets

    _copy(root, config.parent, leave=is_left)
    shutil.copy(project.path, config)


def _copy(source: Path, target: Path, *, leave: Callable[[Path], bool]) -> None:
    def left(folder: str, names: Iterable[str]) -> set[str]:
        paths = [Path(folder, name) for name in names]
        return {path.name for path in paths if _is_no_code(path) or leave(path)}

    shutil.copytree(source, target, ignore=left)


def _is_no_code(path: Path) -> bool:
    return (
        path.name.startswith(".")
        or path.name in _IGNORED
        or path.suffix in (".pyc", ".egg-info")
        or (path / "pyvenv.cfg").exists()
    )


def _describe(artifact: Path, dependencies: _Dependencies, target: Target) -> None:
    """Builds the catalogue, in a process that sees the artifact and nothing of this checkout."""
    config = artifact / CONFIG
    if target.is_here:
        return _write_catalog(config, artifact)
    with tempfile.TemporaryDirectory() as folder:
        dependencies.install(Path(folder), None)
        _write_catalog(config, Path(folder), artifact)


_DESCRIBE: Final = """
import asyncio, sys
from pathlib import Path
config, *folders = sys.argv[1:]
sys.path[:0] = folders
from core.catalog import BUILT, Catalog, CatalogError, build
try:
    catalog = asyncio.run(build(Catalog.read(Path(config))))
except CatalogError as error:
    sys.exit(str(error))
Path(config).with_name(BUILT).write_bytes(catalog)
"""


def _write_catalog(config: Path, *folders: Path) -> None:
    arguments = [str(config), *map(str, folders)]
    done = subprocess.run(
        # Without site-packages: what is not in the artifact will not be on Lambda either.
        [sys.executable, "-ISB", "-c", _DESCRIBE, *arguments],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ArtifactError(f"The agents can't be described:\n{done.stderr.strip()}")


def find_python(version: str) -> str | None:
    """A CPython of this version: ours, or on the PATH, or one that pyenv or uv keeps."""
    tag = f"cpython-{version.replace('.', '')}"
    return next((each for each in _pythons(version) if _cache_tag(each) == tag), None)


def _pythons(version: str) -> Iterator[str]:
    yield sys.executable
    name = f"python{version}"
    if found := shutil.which(name):
        yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/{name}"), reverse=True))
    if found := _said(sys.executable, "-m", "uv", "python", "find", "--no-project", version):
        yield found


def _cache_tag(python: str) -> str:
    return _said(python, "-ISc", "import sys; print(sys.implementation.cache_tag)")


def _said(*command: str) -> str:
    """What a command prints; nothing when it fails."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def _compile(python: str, folder: Path) -> None:
    """Compiles every file, for good: nothing writes to a function's folder, or changes it."""
    # A file that is no Python of this version is left alone, as it is when nothing imports it.
    subprocess.run(
        [python, "-m", "compileall", "-qq", "-j0", "--invalidation-mode=unchecked-hash"]
        + ["-s", str(folder), "-p", "/var/task", str(folder)],
        stdin=subprocess.DEVNULL,
        check=False,
    )


def _write_contents(folder: Path, project: Project, target: Target, *, compiled: bool) -> int:
    """Writes down what is inside, and returns its size in bytes."""
    contents = {
        "intermezzo": __version__,
        "python": target.python,
        "architecture": target.architecture,
        "compiled": compiled,
        "agents": [source.name for source in project.sources],
        "packages": _packages(folder),
        "bytes": {each.name: _size(each) for each in sorted(folder.iterdir())},
    }
    (folder / CONTENTS).write_text(json.dumps(contents, indent=1) + "\n", "utf-8")
    return _size(folder)


def _packages(folder: Path) -> dict[str, str]:
    found: Iterable[Distribution] = distributions(path=[str(folder)])
    return dict(sorted((each.name, each.version) for each in found))


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
