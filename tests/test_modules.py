"""A project's own Python: how it is imported, and under which names."""

import sys
import textwrap

import pytest

from core.catalog import Catalog
from tests.projects import GRAPH, Write, run

pytestmark = pytest.mark.anyio


async def test_an_importable_module_is_named_with_dots(project: Write) -> None:
    path = project(
        {"shouting/__init__.py": "", "shouting/loud.py": GRAPH},
        {"shout": "shouting.loud:graph"},
        dependencies=["."],
    )
    assert await run(path, "shout", {"word": "hey"}) == {"word": "HEY"}


async def test_a_file_needs_no_folder_before_it(project: Write) -> None:
    path = project({"agent.py": GRAPH}, {"shout": "agent.py:graph"})
    assert await run(path, "shout", {"word": "hey"}) == {"word": "HEY"}


async def test_local_dependencies_can_be_imported(project: Write) -> None:
    path = project(
        {
            "words/loudness.py": "LOUD = '!'",
            "lib/src/manners.py": "POLITE = 'please'",
            "agents/agent.py": textwrap.dedent(GRAPH)
            + "from loudness import LOUD\nfrom manners import POLITE\n",
        },
        {"shout": "./agents/agent.py:graph"},
        dependencies=["langchain_openai", "./words", "./lib"],
    )
    assert await run(path, "shout", {"word": "hey"}) == {"word": "HEY"}


async def test_a_project_never_shadows_an_installed_package(project: Write) -> None:
    path = project({"agent.py": GRAPH, "json.py": "raise RuntimeError"}, dependencies=["."])
    await Catalog.read(path).tools()
    assert sys.path[-1] == str(path.parent)


async def test_two_files_of_one_name_do_not_clash(project: Write) -> None:
    other = GRAPH.replace("upper", "lower")
    path = project(
        {"a/agent.py": GRAPH, "b/agent.py": other, "a_agent.py": GRAPH},
        {"a": "./a/agent.py:graph", "b": "./b/agent.py:graph", "c": "./a_agent.py:graph"},
    )
    agents = [await Catalog.read(path).agent(name) for name in ("a", "b", "c")]
    assert len({agent.made.builder.state_schema.__module__ for agent in agents}) == 3
    assert await run(path, "b", {"word": "Hey"}) == {"word": "hey"}
