"""What a process imports for its first answer: the user's first impression is a cold start."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from core.catalog import BUILT, Catalog, build
from tests.gateways import HttpRequest, http_api, request
from tests.lambdas import ADA, GREETER, Context, starting
from tests.served import CHECKOUT, EXAMPLES, KEY, clean_environ

HEAVY = ("jsonschema_rs", "langchain_core", "langgraph", "mcp_types", "psycopg")

LATE = ("handler.database", "mangum", "psycopg_pool")
"""What a call needs besides."""

ANSWER = """
import json, sys
from handler import lambdas
class Context:
    def get_remaining_time_in_millis(self): return 29000
answer = lambdas.endpoint(json.load(sys.stdin), Context())
heavy = [name for name in sys.argv[1:] if name in sys.modules]
print(json.dumps([answer["statusCode"], json.loads(answer["body"]), heavy]))
"""

SNAPSHOT = f"""
import sys
from handler import lambdas
before = set(sys.modules)
{ANSWER.replace("in sys.modules]", "in set(sys.modules) - before]")}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example project as an artifact holds it: with its built catalogue."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(CHECKOUT / "agents", folder / "agents")
    config = Path(shutil.copy(EXAMPLES, folder))
    (folder / BUILT).write_bytes(asyncio.run(build(Catalog.read(config))))
    return config


def cold(
    event: dict[str, Any],
    config: Path,
    database: str,
    script: str = ANSWER,
    names: Sequence[str] = HEAVY,
    **variables: str,
) -> tuple[int, Any, list[str]]:
    """A new process's first answer, and what of the heavy modules that took."""
    settings = {"DATABASE_URL": database, "REQUEST_STATE_KEYS": KEY}
    done = subprocess.run(
        [sys.executable, "-c", script, *names],
        input=json.dumps(event),
        env=clean_environ(INTERMEZZO_CONFIG=str(config), **settings, **variables),
        capture_output=True,
        text=True,
        check=True,
    )
    status, body, heavy = json.loads(done.stdout)
    return status, body, heavy


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (request("server/discover"), 200),
        (request("tools/list"), 200),
        (request("unknown"), 404),
        (request("tools/call", name="nobody"), 400),
        (request("tools/call", name="greeter", arguments=5), 400),
        (request("tools/call", **GREETER, requestState="forged"), 400),
    ],
    ids=["discover", "list", "unknown method", "unknown tool", "bad arguments", "forged state"],
)
def test_lists_and_refusals_import_nothing_heavy(
    project: Path, sent: HttpRequest, status: int
) -> None:
    answered, _, heavy = cold(http_api(sent), project, "postgresql://127.0.0.1:1/unused")
    assert (answered, heavy) == (status, [])


def test_a_replay_imports_no_langgraph(project: Path, database: str) -> None:
    with starting(database, config=project) as warm:

        def call(**params: Any) -> dict[str, Any]:
            event = http_api(request("tools/call", **GREETER, **params))
            return json.loads(warm.endpoint(event, Context())["body"])["result"]

        state = call()["requestState"]
        ended = call(requestState=state, inputResponses=ADA)
    again = request("tools/call", **GREETER, requestState=state, inputResponses=ADA)
    status, body, heavy = cold(http_api(again), project, database)
    assert (status, body["result"]) == (200, ended)
    assert not {"langgraph", "langchain_core", "mcp_types"} & set(heavy)


def test_a_snapshot_has_everything_heavy_that_a_call_needs(project: Path, database: str) -> None:
    event = http_api(request("tools/call", **GREETER))
    snap_start = {"AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start"}
    status, body, later = cold(event, project, database, SNAPSHOT, (*HEAVY, *LATE), **snap_start)
    assert (status, body["result"]["resultType"]) == (200, "input_required")
    assert later == []
