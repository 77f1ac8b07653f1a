"""The graphs that are measured, the same for every contestant that runs LangGraph.

The agent that asks for a name is the example `agents/greeter.py`. No model is called: with one, all
contestants would wait for the same network.
"""

from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict


class Message(TypedDict):
    message: str


class Echo(TypedDict):
    echo: str


class Echoing(Message, Echo):
    """A message and what is said back."""


def say(state: Message) -> Echo:
    return {"echo": state["message"]}


echo = (
    StateGraph(Echoing, input_schema=Message, output_schema=Echo)
    .add_node(say)
    .add_edge(START, "say")
    .compile()
)


class Answers(TypedDict, total=False):
    first: str
    second: str
    third: str
    fourth: str


ORDINALS = ("first", "second", "third", "fourth")


def _asks(name: str) -> Any:
    def ask(state: Answers) -> dict[str, str]:
        return {name: interrupt(f"What is the {name}?")}

    return ask


def _four() -> Any:
    builder = StateGraph(Answers)
    builder.add_sequence([(name, _asks(name)) for name in ORDINALS])
    return builder.add_edge(START, ORDINALS[0]).compile()


four = _four()
"""Four questions, one after another: five rounds on the wire."""


def _pair() -> Any:
    builder = StateGraph(Answers)
    for name in ORDINALS[:2]:
        builder.add_node(name, _asks(name)).add_edge(START, name)
    return builder.compile()


pair = _pair()
"""Two questions at once, from two nodes that run side by side."""


class Size(TypedDict):
    size: int


class Conversation(Size):
    messages: Annotated[list[AnyMessage], add_messages]
    verdict: str


class Verdict(TypedDict):
    verdict: str


def read(state: Size) -> dict[str, Any]:
    """A conversation of so many messages of 200 characters."""
    return {
        "messages": [
            (HumanMessage if number % 2 else AIMessage)("word " * 40, id=f"message-{number}")
            for number in range(state["size"])
        ]
    }


def judge(state: Conversation) -> Verdict:
    return {"verdict": interrupt("What is the verdict?")}


history = (
    StateGraph(Conversation, input_schema=Size, output_schema=Verdict)
    .add_sequence([read, judge])
    .add_edge(START, "read")
    .compile()
)
"""A question at the end of a long conversation."""


class Walk(Size):
    taken: int


class Taken(TypedDict):
    taken: int


def depart(state: Walk) -> dict[str, Any]:
    interrupt("Shall we go?")
    return {"taken": 0}


def step(state: Walk) -> Command[str]:
    taken = state["taken"] + 1
    return Command(update={"taken": taken}, goto="step" if taken < state["size"] else "__end__")


walk = (
    StateGraph(Walk, input_schema=Size, output_schema=Taken)
    .add_node(depart)
    .add_node(step, destinations=("step", "__end__"))
    .add_edge(START, "depart")
    .add_edge("depart", "step")
    .compile()
)
"""A question, and a number of supersteps after it."""
