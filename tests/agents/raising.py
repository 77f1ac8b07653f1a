"""Agents that raise what a test tells them to, and give back what they got for it.

A test says in the arguments what to ask: any JSON value with any JSON Schema, or one of `KINDS`,
the types and values that JSON can't carry. The output says what arrived, and as which type.
"""

import datetime
import decimal
import enum
import operator
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from langgraph.graph import START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Send, interrupt
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tests.agents.journal import ran
from tests.agents.stories import Even


class Region(enum.StrEnum):
    US = "us-east-1"
    EU = "eu-west-1"


class Size(enum.IntEnum):
    S = 1
    L = 2


class Person(BaseModel):
    name: str


class Node(BaseModel):
    name: str
    next: "Node | None" = None


class Model(BaseModel):
    """What a person may fill in."""

    name: str
    count: int = 3
    loud: bool = True
    note: str | None = None


class Choices(BaseModel):
    region: Region
    tier: Literal["free", "paid"]
    tags: Annotated[list[Literal["a", "b", "c"]], Field(min_length=1, max_length=2)]
    fallback: Literal["x", "y"] | None = None


class Moments(BaseModel):
    day: datetime.date
    at: datetime.datetime


@dataclass
class Address:
    street: str
    number: int = 1


class Pair(TypedDict):
    left: str
    right: NotRequired[bool]


class Unserializable:
    """Nothing that has a JSON form."""


KINDS: dict[str, Any] = {
    "address": Address,
    "bool": bool,
    "bytes": bytes,
    "choices": Choices,
    "date": datetime.date,
    "decimal": decimal.Decimal,
    "dict": dict[str, int],
    "even": Even,
    "gt": Annotated[int, Field(gt=0)],
    "int": int,
    "int choice": Literal[1, 2],
    "int enum": Size,
    "ints": list[int],
    "many": list[Literal["a", "b"]],
    "model": Model,
    "moments": Moments,
    "multiple": Annotated[int, Field(multiple_of=5)],
    "nested": TypedDict("Nested", {"person": Person}),
    "optional": int | None,
    "pair": Pair,
    "pattern": Annotated[str, Field(pattern="^a+$")],
    "recursive": Node,
    "region": Region,
    "str": str,
    "uuid": uuid.UUID,
}
"""Types, by a name that a test can send."""

endless: list[Any] = []
endless.append(endless)

VALUES: dict[str, Any] = {
    "model": Person(name="Ada"),
    "object": Unserializable(),
    "cycle": endless,
}
"""Interrupt values that no JSON can carry."""


class Raise(TypedDict, total=False):
    """What to raise: `value`, or the one of `VALUES` that `python` names; with `schema`, or the
    type of `KINDS` that `kind` names."""

    value: Any
    python: str
    schema: dict[str, Any]
    kind: str
    journal: str


class Got(TypedDict, total=False):
    """What came back, and its type."""

    got: Any
    type: str


class Asked(Raise, Got):
    pass


def raised(wanted: Raise) -> Any:
    value = VALUES[wanted["python"]] if "python" in wanted else wanted.get("value")
    schema = KINDS[wanted["kind"]] if "kind" in wanted else wanted.get("schema")
    return interrupt(value, response_schema=schema)


def ask(state: Raise) -> Got:
    if "journal" in state:
        ran(state["journal"], "ask")
    answer = raised(state)
    return {"got": answer, "type": type(answer).__name__}


one = StateGraph(Asked, input_schema=Raise, output_schema=Got).add_node(ask).add_edge(START, "ask")
"""Asks one question."""


class Several(TypedDict, total=False):
    """What to ask side by side; each answer comes back under its place."""

    asks: list[Raise]


class Answers(TypedDict, total=False):
    answers: Annotated[dict[str, Any], operator.or_]


class Asking(Several, Answers):
    pass


class Place(TypedDict):
    wanted: Raise
    place: int


def spread(state: Several) -> list[Send]:
    return [
        Send("ask_one", Place(wanted=each, place=n)) for n, each in enumerate(state.get("asks", []))
    ]


def ask_one(state: Place) -> Answers:
    if "journal" in state["wanted"]:
        ran(state["wanted"]["journal"], str(state["place"]))
    return {"answers": {str(state["place"]): raised(state["wanted"])}}


several = (
    StateGraph(Asking, input_schema=Several, output_schema=Answers)
    .add_node(ask_one)
    .add_conditional_edges(START, spread, ["ask_one"])
)
"""Asks several questions at once, each in a task of its own."""


def inner() -> Any:
    return several.compile()


as_node = (
    StateGraph(Asking, input_schema=Several, output_schema=Answers)
    .add_node("inner", inner())
    .add_edge(START, "inner")
)
"""The same in a subgraph."""

_called = inner()


async def call_inner(state: Several) -> Answers:
    return {"answers": (await _called.ainvoke({"asks": state.get("asks", [])}))["answers"]}


called = (
    StateGraph(Asking, input_schema=Several, output_schema=Answers)
    .add_node(call_inner)
    .add_edge(START, "call_inner")
)
"""The same in a graph that a node calls."""


class Consent(TypedDict, total=False):
    journal: str
    status: str


def connect(state: Consent) -> Consent:
    """Sends the user to a page until the sign-in has happened there."""
    journal = state.get("journal", "")
    while not (Path(journal) / "connected").exists():
        interrupt(
            {
                "type": "mcp_elicitation",
                "requests": {
                    "sign_in": {
                        "message": "Sign in.",
                        "mode": "url",
                        "url": "https://example.com/start",
                    }
                },
            }
        )
    return {"status": "connected"}


consent = StateGraph(Consent).add_node(connect).add_edge(START, "connect")
"""A page, asked for again until its purpose is served."""


@dataclass
class Desk:
    """Runtime context."""

    name: str


class Seen(TypedDict, total=False):
    seen: Annotated[list[str], operator.add]


def look(state: Seen) -> Seen:
    """Notes whose run this is, before a question and after it."""
    return {"seen": [_name()]}


def ask_and_look(state: Seen) -> Seen:
    return {"seen": [f"{interrupt('Who asks?')} {_name()}"]}


def _name() -> str:
    context: Desk | None = get_runtime(Desk).context
    return context.name if context else "nobody"


contextual = (
    StateGraph(Seen, context_schema=Desk).add_sequence([look, ask_and_look]).add_edge(START, "look")
)
"""Says with which runtime context each of its nodes ran."""


def go(state: Consent) -> Consent:
    return {"status": interrupt("Go?")}


stops_later = (
    StateGraph(Consent)
    .add_node("ask", go)
    .add_node("work", go)
    .add_edge(START, "ask")
    .add_edge("ask", "work")
    .compile(interrupt_before=["work"])
)
"""A question, and then a static breakpoint."""


def fail(state: Consent) -> Consent:
    raise RuntimeError("secret")


fails = StateGraph(Consent).add_node(fail).add_edge(START, "fail")
"""Asks nothing and breaks."""
