"""Migrating as a part of a deployment: CloudFormation gets an answer, whatever happens."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from handler.custom_resource import deploy
from handler.lambdas import Process
from tests.artifacts import environ
from tests.gateways import shape
from tests.lambdas import Context
from tests.listening import Handler, listening
from tests.runtime_api import Code, Function, FunctionError
from tests.tables import execute, tables


class Deployment:
    """CloudFormation, as far as one resource goes."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: list[dict[str, Any]] = []
        self.content_types: list[str | None] = []

    def event(self, **changes: Any) -> dict[str, Any]:
        return {**shape("deployment"), "ResponseURL": self.url, **changes}


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    class Serve(Handler):
        def do_PUT(self) -> None:
            here.content_types.append(self.headers["Content-Type"])
            here.answers.append(json.loads(self.sent()))
            self.answer(200)

    with listening(Serve) as url:
        here = Deployment(f"{url}/answer")
        yield here


def test_a_deployment_migrates_in_a_sandbox_and_says_so(
    code: Code, empty_database: str, deployment: Deployment
) -> None:
    with Function(
        code, environ(empty_database), handler="handler.lambdas.migrate", seconds=60
    ) as deployed:
        deployed.invoke(deployment.event())
        deployed.invoke(deployment.event(RequestType="Update", PhysicalResourceId="Migration"))
    assert [answer["Status"] for answer in deployment.answers] == ["SUCCESS", "SUCCESS"]
    answer = deployment.answers[0]
    assert answer["PhysicalResourceId"] == "Migration"
    assert {name: answer[name] for name in ("StackId", "RequestId", "LogicalResourceId")} == {
        name: deployment.event()[name] for name in ("StackId", "RequestId", "LogicalResourceId")
    }
    assert deployment.content_types == ["", ""], "S3 compares it with what was signed"
    assert {"intermezzo_calls", "intermezzo_rounds", "intermezzo_migrations"} <= tables(
        empty_database
    )


def test_a_migration_that_fails_fails_the_deployment_with_its_reason(
    deployment: Deployment,
) -> None:
    process = Process({"DATABASE_URL": "postgresql://127.0.0.1:1/nowhere"})
    process.migrate(deployment.event(), Context())
    process.close()
    (answer,) = deployment.answers
    assert answer["Status"] == "FAILED"
    assert "OperationalError" in answer["Reason"]
    assert len(json.dumps(answer)) < 4096


def test_a_deployment_that_is_rolled_back_finds_its_database_ahead_and_succeeds(
    database: str, deployment: Deployment
) -> None:
    execute(database, "INSERT INTO intermezzo_migrations (name) VALUES ('9999_later.sql')")
    process = Process({"DATABASE_URL": database})
    event = deployment.event(RequestType="Update", PhysicalResourceId="Migration")
    process.migrate(event, Context())
    process.close()
    assert deployment.answers[0]["Status"] == "SUCCESS"


def test_other_properties_have_another_fingerprint_and_the_same_have_the_same(
    deployment: Deployment,
) -> None:
    def properties(issuer: str) -> dict[str, Any]:
        return {"ServiceToken": "arn", "Endpoint": {"Callers": ["https://here", issuer]}}

    one, other = properties("https://one"), properties("https://other")
    for given in (one, other, dict(reversed(one.items()))):
        deploy(deployment.event(ResourceProperties=given), lambda: None)
    first, second, again = [answer["Data"]["Fingerprint"] for answer in deployment.answers]
    assert first == again != second
    assert re.fullmatch("[0-9a-f]{16}", first), "a version's description has room for it"


@pytest.mark.parametrize("text", ["x", "é", "接続", "😀", '"', "\n"])
def test_an_answer_fits_whatever_its_reason_is_written_in(
    deployment: Deployment, text: str
) -> None:
    def work() -> None:
        raise RuntimeError(text * 3000)

    deploy(deployment.event(), work)
    assert len(json.dumps(deployment.answers[0]).encode()) < 4096
    assert deployment.answers[0]["Reason"].startswith(f"RuntimeError: {text}")


def test_wrong_settings_fail_the_deployment_too(deployment: Deployment) -> None:
    Process({}).migrate(deployment.event(), Context())
    assert "DATABASE_URL is not set" in deployment.answers[0]["Reason"]


def test_a_stack_that_is_deleted_leaves_the_database_alone(
    database: str, deployment: Deployment
) -> None:
    before = tables(database)
    process = Process({"DATABASE_URL": database})
    process.migrate(deployment.event(RequestType="Delete"), Context())
    process.close()
    assert deployment.answers[0]["Status"] == "SUCCESS"
    assert tables(database) == before


def test_whoever_else_invokes_it_gets_the_result_or_the_error(
    code: Code, empty_database: str
) -> None:
    migrate = "handler.lambdas.migrate"
    with Function(code, environ(empty_database), handler=migrate, seconds=60) as deployed:
        assert deployed.invoke({})["applied"]
        assert deployed.invoke({}) == {"applied": []}
    nowhere = environ("postgresql://127.0.0.1:1/nowhere")
    with (
        Function(code, nowhere, handler=migrate, seconds=60) as deployed,
        pytest.raises(FunctionError, match="OperationalError"),
    ):
        deployed.invoke({})


def test_the_sweep_runs_on_its_schedule_in_a_sandbox(code: Code, database: str) -> None:
    with Function(code, environ(database), handler="handler.lambdas.sweep") as deployed:
        assert deployed.invoke(shape("schedule")) == {"deleted": 0}
