"""A tool: an agent as MCP shows it.

A tool is data: it lists, checks arguments and is stored in a built catalogue without its graph.
"""

import difflib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from core.validation import Check

LONGEST_NAME: Final = 64
"""What model providers take; several hosts count their own prefix into it."""

COMFORTABLE_NAME: Final = 40

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One agent as a tool.

    Attributes:
        name: as clients call it.
        agent: the agent's name in langgraph.json.
        input_schema: always an object at the root.
        output_schema: only when every success carries structured content that fits it.
    """

    name: str
    agent: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    _checks: dict[str, Check] = field(
        default_factory=dict[str, Check], init=False, repr=False, compare=False
    )

    def problem(self, arguments: Any) -> str | None:
        """Why the arguments do not fit the input schema, naming each field; None when they do."""
        misfits = self._misfits("input", self.input_schema, arguments)
        return f"Invalid arguments for {self.name}: {misfits}" if misfits else None

    def output_problem(self, output: Any) -> str | None:
        """Why an output does not fit the output schema; None when it does or there is none."""
        if self.output_schema is None:
            return None
        return self._misfits("output", self.output_schema, output) or None

    def listed(self, *, any_output: bool = True) -> dict[str, Any]:
        """The tool's entry in `tools/list`.

        Args:
            any_output: false for revisions before 2026-07-28, whose clients refuse the whole list
                when one output schema is not an object.
        """
        entry: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
        }
        output = self.output_schema
        if output is not None and (any_output or output.get("type") == "object"):
            entry["outputSchema"] = output
        return entry

    def as_json(self) -> dict[str, Any]:
        """What a built catalogue holds; `from_json` reads it back."""
        return {
            "name": self.name,
            "agent": self.agent,
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """The tool that `as_json` told.

        Raises:
            TypeError: a member is missing, or there is one that no tool has.
        """
        return cls(**entry)

    def _misfits(self, side: str, schema: dict[str, Any], value: Any) -> str:
        check = self._checks.get(side) or self._checks.setdefault(side, Check(schema))
        return "; ".join(
            each.reason
            if not each.field or f'"{each.field}"' in each.reason
            else f"{each.field}: {each.reason}"
            for each in check.misfits(value)
        )


def name_problem(name: str) -> str | None:
    """Why no tool may have this name, with a name that would do; None when it may.

    Names are never changed silently: a paused call is bound to the name of its tool.
    """
    if not _NAME.fullmatch(name):
        return f"a tool name may hold letters, digits, _ and - only; {_suggested(name)!r} would do"
    if len(name) > LONGEST_NAME:
        return (
            f"a tool name may have {LONGEST_NAME} characters and this one has {len(name)};"
            f" {_suggested(name)!r} would do"
        )
    return None


def closest(name: str, names: list[str]) -> str:
    """` (did you mean "x"?)`, or nothing when no name is near."""
    near = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _suggested(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.sub(r"[^A-Za-z0-9-]+", "_", plain).strip("_")
    return words[:COMFORTABLE_NAME].strip("_") or "agent"
