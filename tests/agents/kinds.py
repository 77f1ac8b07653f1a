"""An agent whose state holds a value of every declared kind, and tells what became of them."""

from collections import deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, NamedTuple, NotRequired
from uuid import UUID

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel, SecretStr
from typing_extensions import TypedDict


class Colour(Enum):
    RED = "red"


class Tone(StrEnum):
    HIGH = "high"


class Level(IntEnum):
    ONE = 1


class Inner(BaseModel):
    at: datetime
    price: Decimal


class Model(BaseModel):
    inner: Inner
    many: list[Inner]
    tone: Tone
    secret: SecretStr


@dataclass
class Point:
    x: float
    colour: Colour


@dataclass(frozen=True)
class Line:
    ends: list[Point]


class Pair(NamedTuple):
    left: int
    right: str


@dataclass
class Undeclared:
    x: int


class Kinds(TypedDict, total=False):
    model: Model
    point: Point
    line: Line
    colour: Colour
    tone: Tone
    level: Level
    nested: dict[str, list[Tone | Level]]
    pair: Pair
    id: UUID
    price: Decimal
    when: datetime
    day: date
    hour: time
    lasts: timedelta
    tags: set[str]
    fixed: frozenset[int]
    queue: deque[int]
    raw: bytes
    address: IPv4Address
    path: Path
    messages: list[AnyMessage]
    tiny: float
    big: float
    negative: float
    most: int
    nul: str
    keys: dict[int, str]
    anything: Any


class State(Kinds):
    answer: NotRequired[str]
    told: NotRequired[dict[str, str]]


class Told(TypedDict):
    told: dict[str, str]


NOON = datetime(2026, 7, 28, 12, tzinfo=UTC)


def make(state: State) -> dict[str, Any]:
    inner = Inner(at=NOON, price=Decimal("1.10"))
    point = Point(0.1, Colour.RED)
    return {
        "model": Model(inner=inner, many=[inner], tone=Tone.HIGH, secret=SecretStr("hush")),
        "point": point,
        "line": Line([point, point]),
        "colour": Colour.RED,
        "tone": Tone.HIGH,
        "level": Level.ONE,
        "nested": {"a": [Tone.HIGH, Level.ONE]},
        "pair": Pair(1, "a"),
        "id": UUID(int=1),
        "price": Decimal("1.10"),
        "when": NOON,
        "day": NOON.date(),
        "hour": time(1, 2, 3),
        "lasts": timedelta(days=1, microseconds=1),
        "tags": {"a"},
        "fixed": frozenset({1}),
        "queue": deque([1, 2]),
        "raw": b"\0\xff",
        "address": IPv4Address("127.0.0.1"),
        "path": Path("/a/b"),
        "messages": [HumanMessage("hi", id="1"), AIMessage("ho", id="2")],
        "tiny": 5e-324,
        "big": 1e300,
        "negative": -0.0,
        "most": 2**64 - 1,
        "nul": "a\0b\N{SNOWMAN}",
        "keys": {1: "a"},
        "anything": Undeclared(1),
    }


def ask(state: State) -> dict[str, Any]:
    return {"answer": interrupt("Go on?")}


def tell(state: State) -> Told:
    kinds = {name: value for name, value in state.items() if name in Kinds.__annotations__}
    return {"told": {name: f"{type(value).__name__} {value!r}" for name, value in kinds.items()}}


kinds = (
    StateGraph(State, output_schema=Told).add_sequence([make, ask, tell]).add_edge(START, "make")
)
