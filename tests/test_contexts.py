"""The runtime context that a request carries, as the agent declared it."""

import pytest

from core.catalog import Catalog
from core.errors import InvalidParams
from tests.projects import Write

pytestmark = pytest.mark.anyio


class TestContext:
    CODE = """
        from dataclasses import dataclass
        from langgraph.graph import START, StateGraph
        from pydantic import BaseModel
        from typing_extensions import TypedDict

        @dataclass
        class Data:
            user: str
            age: int = 0

        class Model(BaseModel):
            user: str

        class Dict(TypedDict):
            user: str

        class State(TypedDict):
            word: str

        def make(context=None):
            return StateGraph(State, context).add_node("n", lambda s: {}).add_edge(START, "n")

        data, model, typed, none = make(Data), make(Model), make(Dict), make()
    """

    async def test_it_becomes_what_the_agent_declared(self, project: Write) -> None:
        names = ["data", "model", "typed", "none"]
        path = project({"agent.py": self.CODE}, {name: f"./agent.py:{name}" for name in names})
        catalog = Catalog.read(path)
        data, model, typed, none = [await catalog.agent(name) for name in names]
        assert data.context({"user": "a"}).user == "a"
        assert model.context({"user": "a"}).user == "a"
        assert typed.context({"user": "a"}) == {"user": "a"}
        assert none.context({"anything": 1}) == {"anything": 1}
        assert data.context(None) is None

    async def test_what_the_schema_refuses_is_invalid_and_not_repeated(
        self, project: Write
    ) -> None:
        path = project({"agent.py": self.CODE}, {"data": "./agent.py:data"})
        agent = await Catalog.read(path).agent("data")
        with pytest.raises(InvalidParams) as caught:
            agent.context({"user": 7_777, "age": "secret"})
        assert caught.value.message.startswith("Invalid context: user: ")
        assert "secret" not in caught.value.message
        assert "7777" not in caught.value.message
