"""Logs: JSON objects, one a line, each with what is known of the request that it is about.

    {"level": "INFO", "message": "tools/call greeter: asked", "agent": "greeter", "call": "…",
     "round": 1, "outcome": "asked", "ms": 12, "correlation": "…", "trace": "…", …}

An exception's text may hold what a user typed, or a key. It is logged only of exceptions that are
known not to, by their class: ours, and the database driver's about a connection. Of any other the
log has class and places, even where somebody's message quotes it. The messages of some libraries
quote values besides; of these the log has the first words.
"""

import errno
import json
import logging
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Mapping
from typing import Any, Final, TextIO, cast

from core import account

_log: Final = logging.getLogger("intermezzo")

_OURS: Final = ("core.", "handler.")

_HARMLESS: Final = frozenset(("OperationalError", "PoolTimeout"))
"""Of the database's driver: these are about the connection, not about what was sent over it."""

_QUOTING: Final = ("asyncio", "langchain", "langgraph", "langsmith", "urllib3")
"""How the names of loggers begin whose messages quote what an agent raised, holds or asks for."""

_FIRST_WORDS: Final = re.compile(r"[^\n:(<]*")

_WORDY: Final = ("httpcore", "httpx", "mangum")
"""Loggers with a line for each request, one that has its URL."""

_DEEPEST: Final = 12
"""Places of one exception, the innermost."""

_PLAIN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "taskName"}
"""What every record has."""


def write_lines(level: int = logging.INFO) -> None:
    """Makes this process write its logs as lines, to the error stream."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines())
    _set_up(handler)
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(level)


def complete_records() -> None:
    """Gives what the platform writes as JSON the facts of the request."""
    for handler in logging.getLogger().handlers:
        _set_up(handler)


def _set_up(handler: logging.Handler) -> None:
    handler.addFilter(_complete)
    # Of itself Python writes the texts of these to the error stream.
    threading.excepthook = _tell_thread
    sys.unraisablehook = _tell_ignored
    warnings.showwarning = _tell_warning
    for name in _WORDY:
        logging.getLogger(name).setLevel(logging.WARNING)


def _tell_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_type is not SystemExit:
        _log.error("a thread failed", exc_info=ended.exc_value)


def _tell_ignored(ignored: "sys.UnraisableHookArgs") -> None:
    _log.error("an exception was ignored", exc_info=ignored.exc_value)


def _tell_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    told = {"type": category.__qualname__, "place": f"{filename}:{lineno}"}
    _log.warning("a warning", extra=told)


def _complete(record: logging.LogRecord) -> bool:
    """Puts the facts into a record, and a safe account in the place of what may be a user's."""
    for name, value in account.current().facts().items():
        record.__dict__.setdefault(name, value)
    if record.exc_info and record.exc_info[1] is not None:
        record.__dict__.setdefault("errors", chain(record.exc_info[1]))
    record.exc_info = record.exc_text = None
    record.msg, record.args = _safe(record.msg), _safe_each(record.args)
    if record.name.startswith(_QUOTING) and (words := _FIRST_WORDS.match(str(record.msg))):
        record.msg, record.args = words[0].strip(), ()
    record.__dict__.pop("taskName", None)
    return True


def _safe_each(values: Any) -> Any:
    """The values of a record's message, by position or by name."""
    if isinstance(values, Mapping):
        named = cast("Mapping[str, object]", values)
        return {name: _safe(value) for name, value in named.items()}
    return tuple(map(_safe, values or ()))


def _safe(value: object) -> Any:
    """What stands in a message for a value of it: for an exception, what the log may have."""
    if isinstance(value, BaseException) and not _is_harmless(value):
        return type(value).__qualname__
    return value


class _Lines(logging.Formatter):
    """One record as one line, with the names that Lambda gives its members."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "timestamp": self.formatTime(record),
            "level": record.levelname,
            "message": record.getMessage(),
            "logger": record.name,
            **facts_of(record),
        }
        return json.dumps(line, ensure_ascii=False, default=str)


def facts_of(record: logging.LogRecord) -> Mapping[str, Any]:
    """What was added to a record."""
    return {name: value for name, value in record.__dict__.items() if name not in _PLAIN}


def chain(error: BaseException) -> list[dict[str, Any]]:
    """An exception and those that it came of, without what they may have of a user's."""
    found: list[dict[str, Any]] = []
    here: BaseException | None = error
    while here is not None and len(found) < 5:
        found.append(_told(here))
        here = here.__cause__ or (None if here.__suppress_context__ else here.__context__)
    return found


def _told(error: BaseException) -> dict[str, Any]:
    kind = type(error)
    places = traceback.extract_tb(error.__traceback__)[-_DEEPEST:]
    told: dict[str, Any] = {
        "type": f"{kind.__module__}.{kind.__qualname__}",
        "places": [f"{place.filename}:{place.lineno} {place.name}" for place in places],
    }
    if _is_harmless(error):
        told["message"] = str(error)
    if _is_of_the_driver(error) and (state := getattr(error, "sqlstate", None)):
        told["sqlstate"] = state
    if isinstance(error, OSError) and isinstance(error.errno, int):
        told["errno"] = errno.errorcode.get(error.errno, error.errno)
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        told["errors"] = [_told(each) for each in group.exceptions[:3]]
    return told


def _is_harmless(error: BaseException) -> bool:
    if _is_of_the_driver(error):
        return type(error).__name__ in _HARMLESS
    return type(error).__module__.startswith(_OURS)


def _is_of_the_driver(error: BaseException) -> bool:
    return type(error).__module__.startswith("psycopg")
