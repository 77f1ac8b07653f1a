"""PgBouncer in transaction mode, with two connections to each database, in front of a server.

It refuses to run as root; then it runs as the user that the local server runs as.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

SETTINGS: Final = """
[databases]
* = {target}

[pgbouncer]
listen_addr =
listen_port = 5432
unix_socket_dir = {folder}
logfile = {folder}/log
pidfile = {folder}/pid
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 1000
"""


@contextmanager
def pgbouncer(server: str) -> Generator[str]:
    """A pooler before a server, as a connection string that wants a `dbname`."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("there is no pgbouncer here: apt-get install pgbouncer")
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as made:
        folder = Path(made)
        given = conninfo_to_dict(server)
        names = ("host", "port", "user", "password")
        target = make_conninfo("", **{name: given[name] for name in names if name in given})
        settings = folder / "pgbouncer.ini"
        settings.write_text(SETTINGS.format(folder=folder, target=target))
        user = "nobody" if os.geteuid() == 0 else None
        if user is not None:
            shutil.chown(folder, user)
        process = subprocess.Popen(
            [program, "-q", settings],
            user=user,
            group=None if user is None else "nogroup",
            extra_groups=None if user is None else [],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            pooled = make_conninfo(host=made, port=5432, user=given["user"])
            _answers(pooled, process)
            yield pooled
        finally:
            process.terminate()
            process.wait(10)


def _answers(pooled: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            psycopg.connect(pooled, dbname="postgres").close()
        except psycopg.OperationalError:
            assert process.poll() is None, "pgbouncer ended"
            assert time.monotonic() < deadline, "pgbouncer does not answer"
            time.sleep(0.02)
        else:
            return
