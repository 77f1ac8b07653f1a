"""The command line: `python -m handler serve | migrate | sweep | key | build`."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import psycopg

from core.catalog import CatalogError
from core.collection import loading
from core.migrate import MigrationError, check, migrate
from core.records import StoreError
from core.request_state import make_key
from handler import local, logs
from handler.artifact import FOLDER, PLATFORMS, PYTHON, ArtifactError, Target, build
from handler.postgres import PostgresError
from handler.resources import Resources, with_store
from handler.settings import Settings, SettingsError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit code is 0 when it did what was asked."""
    logs.write_lines()
    # Like a key press: what was started on the way gets stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chosen = _parser().parse_args(arguments)
    environ = dict(os.environ)
    if getattr(chosen, "config", None):
        environ["INTERMEZZO_CONFIG"] = chosen.config
    try:
        _COMMANDS[chosen.command](chosen, environ)
    except KeyboardInterrupt:
        return 130
    except _TOLD as error:
        print(error, file=sys.stderr)
        return 1
    return 0


_TOLD: Final = (
    SettingsError,
    CatalogError,
    PostgresError,
    MigrationError,
    StoreError,
    ArtifactError,
    psycopg.Error,
    OSError,
)
"""What is told by its own text; anything else is a fault of ours and shows where."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m handler", description="Serve LangGraph agents."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve the agents over HTTP")
    serve.add_argument("--config", help="the langgraph.json (INTERMEZZO_CONFIG)")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    serve.add_argument("--port", default=8000, type=_port, help="port, 0 for any (%(default)s)")
    commands.add_parser("migrate", help="bring the database to this code's schema")
    commands.add_parser("sweep", help="delete what has expired")
    commands.add_parser("key", help="print a new key for REQUEST_STATE_KEYS")
    building = commands.add_parser("build", help="build the folder that AWS Lambda runs")
    building.add_argument("--config", help="the langgraph.json (INTERMEZZO_CONFIG)")
    building.add_argument("--folder", default=FOLDER, type=Path, help="where to (%(default)s)")
    building.add_argument(
        "--architecture", default="arm64", choices=PLATFORMS, help="of the functions (%(default)s)"
    )
    building.add_argument("--python", default=PYTHON, help="their Python (%(default)s)")
    return parser


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{number} is not a number from 0 to 65535")
    return number


def _serve(chosen: argparse.Namespace, environ: Mapping[str, str]) -> None:
    with loading():
        from handler.serving import LOOP, serve  # the other commands need no HTTP

    with local.settings(environ, signs=True) as settings:
        asyncio.run(_checked(settings))
        with asyncio.Runner(loop_factory=LOOP) as runner:
            runner.run(serve(settings, host=chosen.host, port=chosen.port))


async def _checked(settings: Settings) -> None:
    await check(_database(settings), schema=settings.database_schema)


def _migrate(chosen: argparse.Namespace, environ: Mapping[str, str]) -> None:
    with local.settings(environ) as settings:
        applied = asyncio.run(migrate(_database(settings), schema=settings.database_schema))
    print("\n".join(f"applied {name}" for name in applied) or "nothing to apply")


def _sweep(chosen: argparse.Namespace, environ: Mapping[str, str]) -> None:
    from core.sweeper import sweep

    with local.settings(environ) as settings:
        print(f"deleted {asyncio.run(with_store(settings, sweep))} calls")


def _key(chosen: argparse.Namespace, environ: Mapping[str, str]) -> None:
    print(make_key())


def _build(chosen: argparse.Namespace, environ: Mapping[str, str]) -> None:
    target = Target(architecture=chosen.architecture, python=chosen.python)
    print(build(Settings.from_environ(environ).config, chosen.folder, target))


def _database(settings: Settings) -> str:
    return Resources(settings).store.conninfo()


_Command: TypeAlias = Callable[[argparse.Namespace, Mapping[str, str]], None]

_COMMANDS: Final[Mapping[str, _Command]] = {
    "serve": _serve,
    "migrate": _migrate,
    "sweep": _sweep,
    "key": _key,
    "build": _build,
}


if __name__ == "__main__":
    sys.exit(main())
