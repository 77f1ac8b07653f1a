"""The catalogue: its order, its loads, and what it does without importing LangGraph."""

import asyncio
import sys
import textwrap

import pytest

from core.catalog import BUILT, Catalog, build
from tests.projects import (
    GRAPH,
    Write,
    in_another_process,
    only_tool,
)

pytestmark = pytest.mark.anyio


async def test_agents_are_listed_in_the_order_of_the_file(project: Write) -> None:
    names = ["zebra", "apple", "Mango", "b-1", "_"]
    path = project({"agent.py": GRAPH}, dict.fromkeys(names, "./agent.py:graph"))
    assert [tool.name for tool in await Catalog.read(path).tools()] == names


async def test_a_tool_that_nobody_named_is_none(project: Write) -> None:
    catalog = Catalog.read(project({"agent.py": "raise RuntimeError"}))
    assert await catalog.tool("other") is None
    with pytest.raises(LookupError, match="'other'"):
        await catalog.agent("other")


async def test_twenty_first_loads_at_once_import_once(project: Write) -> None:
    code = textwrap.dedent(GRAPH) + (
        "import builtins\n"
        "builtins.times = getattr(builtins, 'times', 0) + 1\n"
        "async def make():\n"
        "    import asyncio\n"
        "    await asyncio.sleep(0)\n"
        "    builtins.made = getattr(builtins, 'made', 0) + 1\n"
        "    return graph\n"
    )
    catalog = Catalog.read(project({"agent.py": code}, {"shout": "./agent.py:make"}))
    agents = await asyncio.gather(*(catalog.agent("shout") for _ in range(20)))
    assert len({id(agent) for agent in agents}) == 1
    counts = vars(sys.modules["builtins"])
    assert (counts.pop("times"), counts.pop("made")) == (1, 1)


def test_a_catalogue_serves_one_event_loop_after_another(project: Write) -> None:
    path = project({"agent.py": GRAPH}, {"a": "./agent.py:graph", "b": "./agent.py:graph"})
    catalog = Catalog.read(path)
    for name in ("a", "b", "a"):

        async def both(name: str = name) -> None:
            await asyncio.gather(catalog.agent(name), catalog.agent(name))

        asyncio.run(both())


def test_importing_the_catalogue_imports_nothing_heavy() -> None:
    code = """
        import sys
        import core.catalog
        heavy = ("langgraph", "langchain_core", "psycopg", "mcp_types", "pydantic",
                 "jsonschema_rs")
        print([name for name in sys.modules if name.startswith(heavy)])
    """
    assert in_another_process(code) == "[]"


class TestBuiltCatalogue:
    async def test_it_lists_the_same_tools(self, project: Write) -> None:
        path = project({"agent.py": GRAPH})
        catalog = Catalog.read(path)
        (path.parent / BUILT).write_bytes(await build(catalog))
        built = Catalog.read(path)
        assert await built.tools() == await catalog.tools()
        assert await built.tool("shout") == await catalog.tool("shout")
        assert await build(built) == await build(catalog)

    @pytest.mark.parametrize("changed", ["agent.py", "langgraph.json"])
    async def test_one_of_other_files_is_not_used(self, project: Write, changed: str) -> None:
        path = project({"agent.py": GRAPH})
        (path.parent / BUILT).write_bytes(await build(Catalog.read(path)))
        file = path.parent / changed
        file.write_text(f"\n{file.read_text()}")
        assert Catalog.read(path)._tools is None  # pyright: ignore[reportPrivateUsage] — its absence shows nowhere else

    @pytest.mark.parametrize("content", ["", "[]", '{"format": 0}', '{"format": 1}'])
    async def test_one_that_is_none_is_not_used(self, project: Write, content: str) -> None:
        path = project({"agent.py": GRAPH, BUILT: content})
        assert (await only_tool(path)).name == "shout"

    def test_listing_from_it_imports_no_graph_and_no_langgraph(self, project: Write) -> None:
        path = project({"agent.py": GRAPH})
        (path.parent / BUILT).write_bytes(asyncio.run(build(Catalog.read(path))))
        code = f"""
            import asyncio, sys
            from pathlib import Path
            from core.catalog import Catalog
            catalog = Catalog.read(Path({str(path)!r}))
            (tool,) = asyncio.run(catalog.tools())
            assert tool == asyncio.run(catalog.tool("shout"))
            heavy = ("langgraph", "langchain_core", "psycopg", "mcp_types", "pydantic",
                     "jsonschema_rs", "agent")
            print([name for name in sys.modules if name.startswith(heavy)])
        """
        assert in_another_process(code) == "[]"
