"""Which classes a checkpoint brings back to life, in another process."""

import json
import sys
from pathlib import Path

import ormsgpack
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import SecretBytes, SecretStr

from core.catalog import Catalog
from tests.projects import Write, in_another_process

pytestmark = pytest.mark.anyio


class TestClassesInCheckpoints:
    """A pause is read by another process, which finds a class by the name of its module."""

    STATE = """
        from __future__ import annotations
        import enum
        from dataclasses import dataclass
        from typing import NamedTuple
        from langgraph.graph import START, StateGraph
        from langgraph.types import interrupt
        from pydantic import BaseModel
        from typing_extensions import TypedDict

        class Colour(enum.Enum):
            RED = "red"

        @dataclass
        class Place:
            street: str

        class Point(NamedTuple):
            x: int

        class Person(BaseModel):
            name: str
            places: list[Place] = []

        class Hidden(BaseModel):
            name: str

        class State(TypedDict, total=False):
            person: Person | None
            colours: dict[str, Colour]
            point: Point
            anything: object
            told: str

        def fill(state: State) -> State:
            return {
                "person": Person(name="Ada", places=[Place("x")]),
                "colours": {"a": Colour.RED},
                "point": Point(1),
                "anything": Hidden(name="h"),
            }

        def ask(state: State) -> State:
            interrupt("Go on?")
            kinds = [state["person"], state["person"].places[0], state["colours"]["a"],
                     state["point"], state["anything"]]
            return {"told": " ".join(type(kind).__name__ for kind in kinds)}

        graph = StateGraph(State).add_sequence([fill, ask]).add_edge(START, "fill").compile()
    """

    PAUSE = """
        import asyncio, base64, sys
        from pathlib import Path
        from langgraph.checkpoint.memory import InMemorySaver
        from core.catalog import Catalog

        async def main():
            agent = await Catalog.read(Path("{path}")).agent("shout")
            config = {{"configurable": {{"thread_id": "1"}}}}
            async with agent.open(config, saver=InMemorySaver(serde=agent.serializer())) as graph:
                await graph.ainvoke({{}}, config)
                values = (await graph.aget_state(config)).values
            kind, data = agent.serializer().dumps_typed(values)
            print(kind, base64.b64encode(data).decode())

        asyncio.run(main())
    """

    READ = """
        import asyncio, base64, sys
        from pathlib import Path
        from core.catalog import Catalog

        async def main():
            agent = await Catalog.read(Path("{path}")).agent("shout")
            kind, data = "{stored}".split()
            values = agent.serializer().loads_typed((kind, base64.b64decode(data)))
            names = values["person"], values["person"].places[0], values["colours"]["a"]
            names = *names, values["point"], values["anything"]
            print(" ".join(type(name).__name__ for name in names))
            person = type(values["person"])
            assert person is sys.modules[person.__module__].Person

        asyncio.run(main())
    """

    def test_declared_ones_come_back_in_another_process_and_others_stay_data(
        self, project: Write, tmp_path: Path
    ) -> None:
        path = project(
            {"agents/deep/agent.py": self.STATE}, {"shout": "agents/deep/agent.py:graph"}
        )
        stored = in_another_process(self.PAUSE.format(path=path))
        moved = tmp_path / "moved"
        for file in ("langgraph.json", "agents/deep/agent.py"):
            (moved / file).parent.mkdir(parents=True, exist_ok=True)
            (moved / file).write_bytes((tmp_path / file).read_bytes())
        read = in_another_process(self.READ.format(path=moved / "langgraph.json", stored=stored))
        assert read == "Person Place Colour Point dict"

    @pytest.mark.parametrize(
        ("allowed", "revived"),
        [
            ("null", "dict"),
            ("[]", "dict"),
            ("true", "Hidden"),
            ('[["MODULE", "Hidden"]]', "Hidden"),
        ],
    )
    async def test_langgraph_json_may_allow_more(
        self, project: Write, allowed: str, revived: str
    ) -> None:
        path = project({"agent.py": self.STATE})
        agent = await Catalog.read(path).agent("shout")
        module = sys.modules[agent.made.builder.state_schema.__module__]
        serde = {"allowed_msgpack_modules": json.loads(allowed.replace("MODULE", module.__name__))}
        path = project({"agent.py": self.STATE}, checkpointer={"serde": serde})
        serializer = (await Catalog.read(path).agent("shout")).serializer()
        stored = serializer.dumps_typed(module.__dict__["Hidden"](name="h"))
        assert type(serializer.loads_typed(stored)).__name__ == revived

    async def test_a_class_that_stays_data_is_told_once(
        self, project: Write, caplog: pytest.LogCaptureFixture
    ) -> None:
        code = self.STATE.replace("Hidden", "ToldOnce")
        agent = await Catalog.read(project({"agent.py": code})).agent("shout")
        module = sys.modules[agent.made.builder.state_schema.__module__]
        stored = agent.serializer().dumps_typed(module.__dict__["ToldOnce"](name="h"))
        for _ in range(2):
            agent.serializer().loads_typed(stored)
        [told] = [each for each in caplog.records if each.name == "core.declared"]
        assert f"{module.__name__}.ToldOnce" in told.getMessage()
        assert "checkpointer.serde.allowed_msgpack_modules" in told.getMessage()

    async def test_a_secret_stays_one_wherever_it_stands(self, project: Write) -> None:
        agent = await Catalog.read(project({"agent.py": self.STATE})).agent("shout")
        kept = {"key": SecretStr("sk"), "more": [SecretBytes(b"raw")]}
        serializer = agent.serializer()
        assert serializer.loads_typed(serializer.dumps_typed(kept)) == kept

    async def test_a_class_of_somebody_elses_choice_is_not_made(
        self, project: Write, tmp_path: Path
    ) -> None:
        agent = await Catalog.read(project({"agent.py": self.STATE})).agent("shout")
        touched = tmp_path / "touched"
        inner = ormsgpack.packb(("os", "system", f"touch {touched}"))
        forged = ormsgpack.packb(ormsgpack.Ext(0, inner))
        revived = agent.serializer().loads_typed(("msgpack", forged))
        assert revived == f"touch {touched}"
        assert not touched.exists()

    async def test_what_tasks_of_an_entrypoint_return_is_declared(self, project: Write) -> None:
        code = """
            from dataclasses import dataclass
            from langgraph.func import entrypoint, task
            from langgraph.types import interrupt

            @dataclass
            class Draft:
                text: str

            @task
            async def write(topic: str) -> Draft:
                return Draft(topic.upper())

            @entrypoint()
            async def flow(topic: str) -> str:
                draft = await write(topic)
                return f"{draft.text} {interrupt('Good?')}"
        """
        path = project({"agent.py": code}, {"flow": "./agent.py:flow"})
        agent = await Catalog.read(path).agent("flow")
        config: RunnableConfig = {"configurable": {"thread_id": "1"}}
        saver = InMemorySaver(serde=agent.serializer())
        async with agent.open(config, saver=saver) as graph:
            await graph.ainvoke(agent.input({"topic": "ants"}), config)
            assert await graph.ainvoke(Command(resume="yes"), config) == "ANTS yes"
        assert {name for _, name in agent.classes} == {"Draft"}

    async def test_a_class_that_no_name_leads_to_is_a_warning(
        self, project: Write, caplog: pytest.LogCaptureFixture
    ) -> None:
        code = """
            from langgraph.graph import START, StateGraph
            from pydantic import BaseModel
            from typing_extensions import TypedDict

            class Outer(BaseModel):
                class Inner(BaseModel):
                    a: int = 1
                inner: Inner = Inner()

            class State(TypedDict, total=False):
                outer: Outer

            graph = StateGraph(State).add_node("n", lambda s: {}).add_edge(START, "n")
        """
        await Catalog.read(project({"agent.py": code})).tools()
        (record,) = caplog.records
        assert "after a pause a Outer.Inner is plain data" in record.getMessage()
