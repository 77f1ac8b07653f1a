"""`env` of langgraph.json: the variables that a project gives its agents.

They are the agents' alone. The endpoint has its settings from the environment that it is started
in; and since libpq reads the variables of the process whenever it connects, none of those that
libpq knows may come from a project: one would lead the endpoint's own connections elsewhere.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from core.catalog import CatalogError
from core.project import Project
from handler.settings import PREFIX, variables

_LIBPQ: Final = re.compile(r"PG[A-Z0-9]+|PGCONNECT_TIMEOUT")
"""The names that libpq gives its variables."""


def read(project: Project) -> Mapping[str, str]:
    """The variables: those of an object, or of the file that holds them.

    Raises:
        CatalogError: one of them is libpq's.
    """
    found = _found(project.env)
    if taken := ", ".join(name for name in found if _LIBPQ.fullmatch(name)):
        problem = (
            f"env: {taken} would lead the endpoint's own connections elsewhere, since libpq reads"
            " it whenever it connects: tell agents of their database under another name"
        )
        raise CatalogError(project.path, [problem])
    return found


def warnings(names: Collection[str]) -> tuple[str, ...]:
    """What a developer should know who gives agents these variables."""
    ours = [name for name in names if name.startswith(PREFIX) or name in variables()]
    if not ours:
        return ()
    return (
        f"env: {', '.join(ours)} reaches the agents alone: the endpoint's own settings are read"
        " from the environment that it is started in",
    )


def _found(env: Mapping[str, str] | Path | None) -> Mapping[str, str]:
    if not isinstance(env, Path):
        return env or {}
    from dotenv import dotenv_values  # the reader that LangGraph uses; most projects need none

    return {name: value for name, value in dotenv_values(env).items() if value is not None}
