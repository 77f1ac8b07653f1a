"""Plugins and the async back end; fixtures live in the files named here."""

import pytest

pytest_plugins = [
    "tests.postgres",
    "tests.processes",
    "tests.projects",
    "tests.served",
    "tests.artifacts",
    "tests.vault",
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
