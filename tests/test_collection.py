"""When garbage is looked for: not while modules load, and not in what they leave."""

import gc
import textwrap
from collections.abc import Iterator

import pytest

from core.catalog import Catalog
from core.collection import loading
from tests.projects import GRAPH, Write

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_nothing_is_looked_for_while_modules_load() -> None:
    with loading():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_loaded_is_not_looked_at_again() -> None:
    gc.unfreeze()
    with loading():
        kept = [[number] for number in range(1000)]
    assert gc.get_freeze_count() > len(kept)
    assert len(gc.get_objects()) < len(kept)


def test_loading_that_fails_leaves_collections_on() -> None:
    with pytest.raises(ValueError, match="broken"), loading():
        raise ValueError("broken")
    assert gc.isenabled()


async def test_an_agent_is_loaded_without_a_look(project: Write) -> None:
    agent = f"import gc\n\nassert not gc.isenabled()\n{textwrap.dedent(GRAPH)}"
    config = project({"agent.py": agent})
    assert [tool.name for tool in await Catalog.read(config).tools()] == ["shout"]
    assert gc.isenabled()
