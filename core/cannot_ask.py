"""Why a pause can't be put to a person over MCP.

Pure module. The text is the tool call's error result. It says what is in the way and how to change
the graph: it is the first thing that whoever moves an agent here will read.
"""

from typing import Final

PREFIX: Final = "This tool needs input that can't be asked over MCP"

BREAKPOINT: Final = (
    "It stopped at a static breakpoint (interrupt_before or interrupt_after), which asks nothing."
    " Call interrupt() in a node instead."
)
"""The reason where a graph stopped and nothing is pending."""


class CannotAsk(Exception):
    """No question can be made of a pause; the call ends."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{PREFIX}. {reason}")
