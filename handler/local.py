"""What a machine without settings uses instead: a PostgreSQL and a signing key below `.local/`.

Only with the database that it runs itself may a command make its own key: behind any other
database there can be a second process, and the two would refuse each other's request states.
"""

import asyncio
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from core.request_state import make_key
from handler.settings import Settings

FOLDER: Final = Path(".local")
"""Of the folder that a command is started in."""


@contextmanager
def settings(environ: Mapping[str, str], *, signs: bool = False) -> Generator[Settings]:
    """The settings of one command; the local database runs as long as they are in use.

    Args:
        environ: the variables. With `DATABASE_URL` in them, nothing local is touched.
        signs: whether the command needs signing keys.

    Raises:
        SettingsError: with every problem of every variable.
        PostgresError: the local database can't be run here.
        MigrationError: the local database can't be brought to this code's schema.
    """
    if environ.get("DATABASE_URL", "").strip():
        yield Settings.from_environ(environ, required=("request_state_keys",) if signs else ())
        return
    chosen = Settings.from_environ(environ)
    if signs and not chosen.request_state_keys:
        chosen = replace(chosen, request_state_keys=(kept_key(FOLDER),))

    from core.migrate import migrate  # with a database of its own, a command needs neither of these
    from handler.postgres import local_server

    with local_server(FOLDER) as database_url:
        asyncio.run(migrate(database_url, schema=chosen.database_schema))
        yield replace(chosen, database_url=database_url)


def kept_key(folder: Path) -> str:
    """The key kept in a folder, made when there is none. Only its owner can read the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "request-state-key"
    if not path.exists():
        fresh = folder / f"{path.name}.{os.getpid()}"
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(make_key())
        # Two processes may get here at once: the first link stands, and both read that one.
        with suppress(FileExistsError):
            path.hardlink_to(fresh)
        fresh.unlink()
    path.chmod(0o600)
    return path.read_text("ascii").strip()
