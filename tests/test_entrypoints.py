"""Agents of the functional API."""

import pytest

from tests.projects import Write, only_tool, run

pytestmark = pytest.mark.anyio


async def test_an_entrypoint_is_an_agent(project: Write) -> None:
    code = '''
        from langgraph.func import entrypoint

        @entrypoint()
        async def double(count: int) -> int:
            """Doubles a number.

            And more.
            """
            return count * 2
    '''
    path = project({"agent.py": code}, {"double": "./agent.py:double"})
    tool = await only_tool(path)
    assert tool.description == "Doubles a number."
    assert tool.input_schema == {
        "type": "object",
        "properties": {"count": {"type": "integer"}},
        "required": ["count"],
    }
    assert tool.output_schema is None
    assert await run(path, "double", {"count": 4}) == 8


async def test_an_entrypoint_gets_an_instance_of_the_class_it_asks_for(project: Write) -> None:
    code = """
        from __future__ import annotations
        from langgraph.func import entrypoint
        from pydantic import BaseModel

        class Order(BaseModel):
            count: int
            next: Order | None = None

        @entrypoint()
        def total(order: Order) -> int:
            return order.count + (order.next.count if order.next else 0)
    """
    path = project({"agent.py": code}, {"total": "./agent.py:total"})
    tool = await only_tool(path)
    assert tool.input_schema["type"] == "object"
    assert list(tool.input_schema["properties"]) == ["count", "next"]
    assert await run(path, "total", {"count": 1, "next": {"count": 2}}) == 3
