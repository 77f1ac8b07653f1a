"""Plugins and the async back end; fixtures live in the files named here."""

import os

import pytest

pytest_plugins = [
    "tests.postgres",
    "tests.conversation",
    "tests.sessions",
    "tests.processes",
    "tests.faults",
    "tests.projects",
    "tests.served",
    "tests.artifacts",
    "tests.vault",
]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Behind a pooler, only what needs a database has to be seen again."""
    if os.environ.get("TEST_POOLER"):
        others = [item for item in items if not _may_be_pooled(item)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if _may_be_pooled(item)]


def _may_be_pooled(item: pytest.Item) -> bool:
    needs_database = isinstance(item, pytest.Function) and "way" in item.fixturenames
    return needs_database and item.get_closest_marker("direct") is None


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
