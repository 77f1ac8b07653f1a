"""Where the database is: from a connection string, or from what RDS keeps in a secret.

    {"username": "…", "password": "…", "host": "…", "port": 5432, "dbname": "…"}

A secret that RDS manages has no more than the first two; libpq takes the rest from `PGHOST`,
`PGPORT` and `PGDATABASE`. Where these are set they win, so that a proxy can stand before the host.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from handler.settings import SettingsError

_MEMBERS: Final[Mapping[str, tuple[str, str]]] = {
    "username": ("user", "PGUSER"),
    "password": ("password", "PGPASSWORD"),
    "host": ("host", "PGHOST"),
    "port": ("port", "PGPORT"),
    "dbname": ("dbname", "PGDATABASE"),
}
"""Members of such a secret, libpq's names of them, and the variables that win over them."""

_PATIENCE: Final[Mapping[str, str]] = {
    "connect_timeout": "5",
    "keepalives_idle": "30",
    "tcp_user_timeout": "10000",
}
"""A network that has forgotten a connection, while its process was frozen, says nothing: without
these a statement on it waits for minutes."""


def conninfo(given: str, environ: Mapping[str, str]) -> str:
    """The connection string, with patience for a network where it does not say otherwise.

    Raises:
        SettingsError: it is neither.
    """
    try:
        members: dict[str, Any] = (
            _of_secret(given, environ) if given.startswith("{") else conninfo_to_dict(given)
        )
    except (psycopg.Error, ValueError):  # whose texts have parts of the secret
        raise SettingsError(["DATABASE_URL is no connection string; correct it."]) from None
    if "@" in str(members.get("host", ""))[1:]:  # an error about that host would show the rest
        raise SettingsError(["DATABASE_URL has an @ in its host: write one in a password as %40."])
    return make_conninfo("", **{**_PATIENCE, **members})


def _of_secret(given: str, environ: Mapping[str, str]) -> dict[str, Any]:
    secret: dict[str, Any] = json.loads(given)  # begins as an object does
    return {
        name: str(secret[member])
        for member, (name, variable) in _MEMBERS.items()
        if secret.get(member) and not environ.get(variable)
    }
