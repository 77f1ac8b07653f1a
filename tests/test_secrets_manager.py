"""Settings that name a secret: what is asked of Secrets Manager, when, and what may go wrong."""

from collections.abc import Iterator
from datetime import UTC, datetime

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.request_state import make_key
from handler import secrets_manager
from handler.lambdas import Process
from handler.secrets_manager import FRESH, Credentials, SecretError, Secrets, read, sign
from handler.settings import Settings, SettingsError
from tests.artifacts import environ
from tests.gateways import http_api, request
from tests.lambdas import ADA, GREETER, Context, call, result, starting, two_rounds
from tests.runtime_api import Code, Function
from tests.vault import ARN, Vault

NOW = datetime(2026, 7, 28, 12, 0, tzinfo=UTC)
words = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1)


@given(key_id=words, key=words, token=st.one_of(st.just(""), words), body=st.binary())
def test_the_signature_is_the_one_that_the_sdk_makes(
    key_id: str, key: str, token: str, body: bytes
) -> None:
    headers = {
        "Content-Type": "application/x-amz-json-1.1",
        "Host": "secretsmanager.eu-west-1.amazonaws.com",
        "X-Amz-Target": "secretsmanager.GetSecretValue",
    }
    ours = sign(headers, body, Credentials(key_id=key_id, key=key, token=token), "eu-west-1", NOW)
    request = botocore.awsrequest.AWSRequest(
        method="POST", url=f"https://{headers['Host']}/", data=body, headers=headers
    )
    request.context["timestamp"] = "20260728T120000Z"
    theirs = _Signer(
        botocore.credentials.Credentials(key_id, key, token or None), "secretsmanager", "eu-west-1"
    )
    theirs.sign(request)
    assert ours["Authorization"].split() == request.headers["Authorization"].split()


class _Signer(botocore.auth.SigV4Auth):
    """With the clock of the test: `add_auth` takes the machine's."""

    def sign(self, request: botocore.awsrequest.AWSRequest) -> None:
        request.headers["X-Amz-Date"] = request.context["timestamp"]
        if self.credentials.token:
            request.headers["X-Amz-Security-Token"] = self.credentials.token
        signature = self.signature(
            self.string_to_sign(request, self.canonical_request(request)), request
        )
        self._inject_signature_to_request(request, signature)


@pytest.fixture
def process(database: str, aws: Vault) -> Iterator[Process]:
    """An execution environment whose settings are all secrets."""
    keys = aws.keep("keys", make_key())
    with starting(aws.keep("database", database), REQUEST_STATE_KEYS=keys) as started:
        yield started


def test_discover_and_lists_and_refusals_read_no_secret(process: Process, vault: Vault) -> None:
    for method in ("server/discover", "tools/list"):
        result(process.endpoint(http_api(request(method)), Context()))
    process.endpoint(http_api(request("unknown")), Context())
    assert vault.requests == []


def test_a_call_reads_each_secret_once_for_all_that_follow(process: Process, vault: Vault) -> None:
    for _ in range(3):
        assert two_rounds(process) == '{"greeting":"Hello, Ada!"}'
    assert len(vault.requests) == 2
    assert {each["X-Amz-Target"] for each in vault.requests} == {"secretsmanager.GetSecretValue"}
    assert all("X-Amz-Security-Token" in each for each in vault.requests)


def test_the_other_functions_need_the_database_alone(process: Process, vault: Vault) -> None:
    assert process.sweep({}, Context()) == {"deleted": 0}
    assert len(vault.requests) == 1


def test_a_rotated_key_is_taken_up_and_open_calls_go_on(
    process: Process, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = call(process)
    old = vault.secrets[f"{ARN}keys-AbCdEf"]
    vault.keep("keys", f"{make_key()},{old}")
    monkeypatch.setattr(secrets_manager, "FRESH", 0.0)
    rotated = call(process)
    ended = call(process, inputResponses=ADA, requestState=asked["requestState"])
    assert ended["content"][0]["text"] == '{"greeting":"Hello, Ada!"}'
    vault.keep("keys", old)
    state = rotated["requestState"]
    refused = request("tools/call", **GREETER, inputResponses=ADA, requestState=state)
    answer = process.endpoint(http_api(refused), Context())
    assert "Invalid or expired requestState" in answer["body"], "another key had made it"


def test_a_secret_that_can_not_be_read_again_stays_as_it_was(vault: Vault) -> None:
    now = [0.0]
    secrets = Secrets(vault.environ, clock=lambda: now[0])
    arn = vault.keep("keys", "first")
    assert secrets.value(arn, fresh=FRESH) == "first"
    vault.keep("keys", "second")
    assert secrets.value(arn, fresh=FRESH) == "first", "it is fresh"
    now[0] = FRESH + 1
    vault.refuses = "InternalServiceError"
    assert secrets.value(arn, fresh=FRESH) == "first"
    vault.refuses = ""
    assert secrets.value(arn, fresh=FRESH) == "first", "it is not asked for all the time"
    now[0] = 2 * FRESH + 2
    assert secrets.value(arn, fresh=FRESH) == "second"


def test_with_snapstart_the_credentials_come_from_their_address(vault: Vault) -> None:
    given = {
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": vault.url,
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{vault.url}/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "a token",
    }
    assert read(vault.keep("keys", "value"), given) == "value"
    assert vault.credentials == "a token"
    assert "Credential=ASIA/" in vault.requests[0]["Authorization"]


def test_what_went_wrong_is_said_with_the_secret_and_a_way_out(vault: Vault) -> None:
    arn = vault.keep("keys", "value")
    with pytest.raises(SecretError, match="ResourceNotFoundException"):
        read(f"{ARN}other", vault.environ)
    with pytest.raises(SecretError, match="no AWS credentials"):
        read(arn, {})
    nowhere = {**vault.environ, "AWS_ENDPOINT_URL_SECRETS_MANAGER": "http://127.0.0.1:1"}
    with pytest.raises(SecretError, match="From a VPC"):
        read(arn, nowhere)
    vault.refuses = "com.amazonaws#AccessDeniedException"
    with pytest.raises(SecretError, match=r"keys-AbCdEf can't be read: AccessDeniedException"):
        read(arn, vault.environ)


@pytest.mark.parametrize("refuses", ["", "InternalServiceError"])
@pytest.mark.parametrize("answers", [[], 5, "SecretString", {}, {"SecretString": None}])
def test_an_answer_of_another_shape_leaves_a_secret_as_it_was(
    vault: Vault, refuses: str, answers: object
) -> None:
    now = [0.0]
    secrets = Secrets(vault.environ, clock=lambda: now[0])
    arn = vault.keep("keys", "first")
    assert secrets.value(arn, fresh=FRESH) == "first"
    now[0], vault.refuses, vault.answers = FRESH + 1, refuses, answers
    assert secrets.value(arn, fresh=FRESH) == "first"
    with pytest.raises(SecretError, match=r"HTTP 400" if refuses else "holds no text"):
        read(arn, vault.environ)


@pytest.mark.parametrize("raw", [b"\r\n", b"nonsense", b"HTTP/1.1 200 OK\r\nX\r\n\r\n"])
def test_what_is_no_http_leaves_a_secret_as_it_was(vault: Vault, raw: bytes) -> None:
    now = [0.0]
    secrets = Secrets(vault.environ, clock=lambda: now[0])
    arn = vault.keep("keys", "first")
    assert secrets.value(arn, fresh=FRESH) == "first"
    now[0], vault.raw = FRESH + 1, raw
    assert secrets.value(arn, fresh=FRESH) == "first"
    address = {**vault.environ, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{vault.url}/credentials"}
    with pytest.raises(SecretError, match="no AWS credentials"):
        read(arn, address)


def test_an_arn_is_not_taken_for_a_key() -> None:
    settings = Settings.from_environ({"REQUEST_STATE_KEYS": f"{ARN}keys-AbCdEf"})
    assert settings.request_state_keys == (f"{ARN}keys-AbCdEf",)
    with pytest.raises(SettingsError, match="REQUEST_STATE_KEYS"):
        Settings.from_environ({"REQUEST_STATE_KEYS": "arn:aws:ssm"})


def test_the_artifact_reads_its_secrets_in_a_sandbox(
    code: Code, database: str, vault: Vault
) -> None:
    secrets = {
        "DATABASE_URL": vault.keep("database", database),
        "REQUEST_STATE_KEYS": vault.keep("keys", make_key()),
    }
    with Function(code, {**environ(database), **secrets, **vault.environ}) as deployed:
        result(deployed.invoke(http_api(request("tools/list"))))
        assert vault.requests == []
        asked = result(deployed.invoke(http_api(request("tools/call", **GREETER))))
        log = deployed.log()
    assert asked["resultType"] == "input_required"
    assert not any(secret in log for secret in vault.secrets.values())
