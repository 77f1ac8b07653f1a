"""What the agent's own code ended a run with: the refusal of an answer, or an error result.

Imports LangGraph, like whatever has run an agent.
"""

import logging
import traceback
from typing import Final
from uuid import uuid4

from langgraph.errors import GraphRecursionError, is_invalid_resume
from pydantic import ValidationError

from core.errors import InvalidParams
from core.protocol import ToolResult, error_result
from core.questions import Round
from core.records import Unholdable
from core.runs import Escaped
from core.saver import Unstorable
from core.validation import Misfit
from core.work import LoopBlocked

log: Final = logging.getLogger(__name__)


def refused_answer(round: Round | None, error: Exception) -> InvalidParams | None:
    """The refusal of an answer that only the node's own validation could judge (a Pydantic
    validator). LangGraph raises it before anything of the node is stored."""
    if round is None or not (is_invalid_resume(error) and isinstance(error, ValidationError)):
        return None
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return round.refusal([Misfit(".".join(map(str, p["loc"])), p["msg"]) for p in problems])


def failed(tool: str, error: Exception) -> ToolResult:
    """The error result of an agent's own exception, which tells nothing of its inside.

    An exception's text may hold what a user typed: the log gets its type and place, by the id that
    the result gives.
    """
    if isinstance(error, Unstorable | Unholdable):
        return error_result(f"{tool} can't pause: {error}.")
    if isinstance(error, LoopBlocked):
        return error_result(f"{tool} failed: {error}.")
    if isinstance(error, GraphRecursionError):
        return error_result(f"{tool} stopped: it took more steps than it may.")
    id = uuid4().hex[:12]
    cause = error.__cause__ if isinstance(error, Escaped) and error.__cause__ else error
    place = traceback.extract_tb(cause.__traceback__)[-1]
    log.error(
        "agent failed: %s at %s:%s",
        type(cause).__qualname__,
        place.filename,
        place.lineno,
        extra={"error_id": id},
    )
    return error_result(f"{tool} failed (error {id}).")
