"""Our checkpointer takes the place of an agent's own."""

import textwrap

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from core.catalog import Catalog
from tests.projects import GRAPH, Write, load_problems, run

pytestmark = pytest.mark.anyio


async def test_a_compiled_in_checkpointer_is_replaced(project: Write) -> None:
    code = textwrap.dedent(GRAPH) + (
        "from langgraph.checkpoint.memory import InMemorySaver\n"
        "graph = builder.compile(checkpointer=InMemorySaver())\n"
    )
    agent = await Catalog.read(project({"agent.py": code})).agent("shout")
    saver = InMemorySaver()
    async with agent.open({}, saver=saver) as graph:
        assert graph.checkpointer is saver
        assert graph.name == "shout"
    assert agent.made.checkpointer is not saver
    assert agent.made.name == "LangGraph"


@pytest.mark.parametrize("how", ['.add_node("n", inner)', '.add_node("n", call)'])
async def test_a_subgraph_with_a_checkpointer_of_its_own_is_refused(
    project: Write, how: str
) -> None:
    code = textwrap.dedent(GRAPH) + textwrap.dedent(
        f"""
        from langgraph.checkpoint.memory import InMemorySaver
        inner = builder.compile(checkpointer=InMemorySaver())

        def call(state: State) -> State:
            return inner.invoke(state)

        graph = StateGraph(State){how}.add_edge(START, "n").compile()
        """
    )
    text = str(await load_problems(project({"agent.py": code})))
    assert "its subgraph 'n' was compiled with a checkpointer of its own" in text


async def test_a_subgraph_that_inherits_the_checkpointer_is_served(project: Write) -> None:
    code = textwrap.dedent(GRAPH) + (
        'graph = StateGraph(State).add_node("n", builder.compile()).add_edge(START, "n")\n'
    )
    path = project({"agent.py": code})
    assert await run(path, "shout", {"word": "hey"}) == {"word": "HEY"}
