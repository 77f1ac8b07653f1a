"""`env` of langgraph.json: what agents get of it, and what it can't do to the endpoint."""

import os

import pytest

from core.catalog import CatalogError
from core.project import Project
from core.request_state import make_key
from handler import env
from handler.resources import Resources
from handler.settings import Settings
from tests.projects import GRAPH, Write
from tests.served import KEY, post, result, run, serving
from tests.vault import Vault


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that lasts for one test."""
    monkeypatch.setattr(os, "environ", os.environ.copy())


def test_an_object_and_a_file_hold_variables(project: Write) -> None:
    files = {"agent.py": GRAPH, "agents.env": "A=1\nB\n"}
    assert env.read(Project.read(project(files, env="agents.env"))) == {"A": "1"}
    given = {"A": "2", "PGVECTOR_URL": "3"}
    assert env.read(Project.read(project(files, env=given))) == given
    assert env.read(Project.read(project(files))) == {}


@pytest.mark.parametrize("kept", [{"env": {"PGHOST": "h", "A": "1"}}, {"env": "agents.env"}])
def test_a_variable_that_libpq_reads_is_refused_before_anything_is_set(
    project: Write, kept: dict[str, object]
) -> None:
    config = project({"agent.py": GRAPH, "agents.env": "A=1\nPGHOST=h"}, **kept)
    before = dict(os.environ)
    with pytest.raises(CatalogError, match="env: PGHOST would lead the endpoint's own connections"):
        _ = Resources(Settings(config=config)).catalog
    assert os.environ == before
    done = run("build", "--config", str(config), "--folder", str(config.parent / "built"))
    assert done.returncode == 1
    assert "env: PGHOST" in done.stderr


def test_settings_of_the_endpoint_among_them_are_told_and_are_none(
    project: Write, database: str
) -> None:
    given = {"INTERMEZZO_SERVER_NAME": "other", "REQUEST_STATE_KEYS": make_key(), "A": "1"}
    with serving(database, config=project({"agent.py": GRAPH}, env=given)) as process:
        told = "langgraph.json: env: INTERMEZZO_SERVER_NAME, REQUEST_STATE_KEYS reaches the agents"
        assert told in process.greeting
        info = result(post(process.url, "server/discover"))["_meta"]
        assert info["io.modelcontextprotocol/serverInfo"]["name"] == "intermezzo"


@pytest.mark.anyio
async def test_secrets_are_read_as_the_environment_was_that_the_endpoint_started_in(
    project: Write, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in vault.environ.items():
        monkeypatch.setenv(name, value)
    address = f"{vault.url}/credentials"
    config = project({"agent.py": GRAPH}, env={"AWS_CONTAINER_CREDENTIALS_FULL_URI": address})
    keys = (vault.keep("keys", KEY),)
    resources = Resources(Settings(config=config, request_state_keys=keys))
    _ = resources.catalog
    assert os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"] == address
    await resources.rounds()
    assert vault.requests
    assert not vault.credentials
    await resources.close()
