"""From an attribute to a graph: graphs, functions that make them, and what is neither."""

import sys
import textwrap

import pytest
from langchain_core.runnables import RunnableConfig

from core.catalog import Catalog
from tests.projects import GRAPH, Write, load_problems, run

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("attribute", ["graph", "builder"])
async def test_a_graph_is_served_compiled_or_not(project: Write, attribute: str) -> None:
    path = project({"agent.py": GRAPH}, {"shout": f"./agent.py:{attribute}"})
    assert await run(path, "shout", {"word": "hey"}) == {"word": "HEY"}


@pytest.mark.parametrize(
    "factory",
    [
        "def make(): return builder",
        "def make(): return graph",
        "def make(config): return graph",
        "def make(config: RunnableConfig): return graph",
        "def make(settings: RunnableConfig): return graph",
        "def make(anything): return graph",
        "def make(config: RunnableConfig, runtime: ServerRuntime): return graph",
        "def make(runtime: ServerRuntime[int]): return graph",
        "def make(runtime, /): return graph",
        "def make(tenant='x', *rest, **more): return graph",
        "async def make(): return builder",
        "async def make(config): return graph",
        "@asynccontextmanager\nasync def make(): yield graph",
        "@asynccontextmanager\nasync def make(config): yield builder",
        "@contextmanager\ndef make(runtime: ServerRuntime): yield graph",
        "class Maker:\n    def __call__(config): return graph\nmake = Maker()",
    ],
)
async def test_a_function_that_makes_a_graph_is_given_what_its_parameters_ask_for(
    project: Write, factory: str
) -> None:
    code = textwrap.dedent(GRAPH) + (
        "from contextlib import asynccontextmanager, contextmanager\n"
        "from langchain_core.runnables import RunnableConfig\n"
        "from langgraph_sdk.runtime import ServerRuntime\n" + factory
    )
    path = project({"agent.py": code}, {"shout": "./agent.py:make"})
    assert await run(path, "shout", {"word": "hey"}) == {"word": "HEY"}


async def test_a_factory_sees_the_run_and_is_closed_after_it(project: Write) -> None:
    code = textwrap.dedent(GRAPH) + textwrap.dedent(
        """
        from contextlib import asynccontextmanager
        from langgraph_sdk.runtime import ServerRuntime
        seen = []

        @asynccontextmanager
        async def make(config, runtime: ServerRuntime):
            running = runtime.execution_runtime
            seen.append((config["configurable"], running and running.context))
            yield graph
            seen.append("closed")
        """
    )
    path = project({"agent.py": code}, {"shout": "./agent.py:make"})
    agent = await Catalog.read(path).agent("shout")
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    async with agent.open(config, saver=None, context="who") as graph:
        await graph.ainvoke({"word": "hey"}, config)
    seen = agent.made.__wrapped__.__globals__["seen"]
    assert seen == [({}, None), "closed", ({"thread_id": "1"}, "who"), "closed"]


async def test_an_import_that_fails_names_the_file_and_keeps_the_cause(project: Write) -> None:
    error = await load_problems(project({"agent.py": "import nothing_of_this_name"}))
    assert "graphs.'shout': ./agent.py:graph: importing it failed" in str(error)
    assert "No module named 'nothing_of_this_name' (install it where the server" in str(error)
    assert isinstance(error.__cause__, ModuleNotFoundError)
    assert not any("agent_" in name for name in sys.modules if name.startswith("agent_"))


async def test_a_missing_attribute_is_named_with_those_that_are_there(project: Write) -> None:
    for attribute, told in (("grpah", "(did you mean 'graph'?)"), ("x", "(it has builder, gr")):
        path = project({"agent.py": GRAPH}, {"shout": f"./agent.py:{attribute}"})
        text = str(await load_problems(path))
        assert f"it has no attribute {attribute!r} {told}" in text


async def test_what_is_no_graph_is_refused(project: Write) -> None:
    code = textwrap.dedent(GRAPH) + (
        "number = 3\n"
        "def nothing(): pass\n"
        "def greedy(a, b): return graph\n"
        "def broken(): raise OSError('no network')\n"
    )
    names = ["number", "nothing", "greedy", "broken"]
    path = project({"agent.py": code}, {name: f"./agent.py:{name}" for name in names})
    error = await load_problems(path)
    assert len(error.problems) == 4
    number, nothing, greedy, broken = error.problems
    assert "it is no LangGraph graph but a int" in number
    assert "it is no LangGraph graph but a NoneType" in nothing
    assert "nothing is known for its parameter 'a'" in greedy
    assert "making its graph failed: OSError: no network" in broken
    assert isinstance(error.__cause__, ExceptionGroup)
