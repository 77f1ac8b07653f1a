"""Projects written for one test, and what a test asks of them."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from core.catalog import Catalog, CatalogError
from core.tools import Tool

Write = Callable[..., Path]

CHECKOUT = Path(__file__).parent.parent

GRAPH = """
    from langgraph.graph import START, StateGraph
    from typing_extensions import TypedDict

    class State(TypedDict, total=False):
        word: str

    def shout(state: State) -> State:
        return {"word": state["word"].upper()}

    builder = StateGraph(State).add_node(shout).add_edge(START, "shout")
    graph = builder.compile()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a project: langgraph.json's members, or its graphs alone, and files by path."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(files: Mapping[str, str], graphs: Any = None, /, **members: Any) -> Path:
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text))
        config = tmp_path / "langgraph.json"
        named = graphs if graphs is not None else {"shout": "./agent.py:graph"}
        config.write_text(json.dumps({"graphs": named, **members}))
        return config

    yield write
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and file.startswith(str(tmp_path)):
            del sys.modules[name]


def problems(path: Path) -> str:
    with pytest.raises(CatalogError) as caught:
        Catalog.read(path)
    return str(caught.value)


async def load_problems(path: Path) -> CatalogError:
    with pytest.raises(CatalogError) as caught:
        await Catalog.read(path).tools()
    return caught.value


async def run(path: Path, name: str, arguments: dict[str, Any], **opening: Any) -> Any:
    agent = await Catalog.read(path).agent(name)
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    async with agent.open(config, saver=InMemorySaver(), **opening) as graph:
        return await graph.ainvoke(agent.input(arguments), config)


async def only_tool(path: Path) -> Tool:
    (tool,) = await Catalog.read(path).tools()
    return tool


def in_another_process(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
