"""The built artifact, as the tests run it: for this machine, sealed, with the runtime client."""

import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.artifact import CHECKOUT, CONFIG, PYTHON, Built, Target, build, find_python
from tests.runtime_api import Code, seal
from tests.served import KEY


@pytest.fixture(scope="session")
def built() -> Iterator[Built]:
    """The artifact of the example agents for x86-64; of the deployed version of Python, where there
    is one, else of ours."""
    version = PYTHON if find_python(PYTHON) else sysconfig.get_python_version()
    with tempfile.TemporaryDirectory(prefix="intermezzo-") as folder:
        target = Target(architecture="x86_64", python=version)
        artifact = build(CHECKOUT / "langgraph.json", Path(folder, "artifact"), target)
        seal(artifact.folder)
        yield artifact


@pytest.fixture(scope="session")
def code(built: Built) -> Iterator[Code]:
    """What a sandbox runs."""
    version = built.target.python
    python = find_python(version)
    assert python is not None, "found, or ours"
    with tempfile.TemporaryDirectory(prefix="intermezzo-") as folder:
        subprocess.run(
            [sys.executable, "-m", "uv", "--quiet", "pip", "install", "--target", folder]
            + ["--python", sys.executable, "--python-version", version, "--only-binary", ":all:"]
            + ["--constraint", str(CHECKOUT / "requirements-dev.txt"), "awslambdaric"],
            check=True,
        )
        yield Code(artifact=built.folder, python=python, client=Path(folder), version=version)


def environ(database: str, *, config: Path | None = None, **changes: str) -> dict[str, str]:
    """The variables of a deployed function."""
    return {
        "DATABASE_URL": database,
        "REQUEST_STATE_KEYS": KEY,
        "INTERMEZZO_CONFIG": str(config or CONFIG),
        **changes,
    }
