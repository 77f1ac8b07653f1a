"""Settings that say who is calling: none, one, or too little of one."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.catalog import Catalog
from core.request_state import make_key
from handler.api_keys import ApiKeys
from handler.bearer import BearerTokens
from handler.gateway import SHAPES, Gateway
from handler.identity import choose, published
from handler.settings import Settings, SettingsError
from handler.sources import GATEWAYS
from tests.issuer import key_set, public, rsa_key
from tests.served import EXAMPLES

JWT = {
    "INTERMEZZO_JWT_ISSUER": "https://login.example.com/",
    "INTERMEZZO_JWT_JWKS": "https://login.example.com/jwks",
    "INTERMEZZO_PUBLIC_URL": "https://mcp.example.com/mcp",
}
KEY = make_key()


def problems(environ: dict[str, str]) -> list[str]:
    with pytest.raises(SettingsError) as raised:
        Settings.from_environ(environ)
    return str(raised.value).splitlines()


def chosen(environ: dict[str, str], catalog: Catalog | None = None) -> Any:
    return choose(Settings.from_environ(environ), catalog or Catalog.read(EXAMPLES))


def test_without_a_source_everybody_may_call() -> None:
    assert chosen({}) is None
    assert published(Settings(), Catalog.read(EXAMPLES)) is None
    assert published(Settings(public_url="https://h.example"), Catalog.read(EXAMPLES)) is None


def test_each_source_is_chosen_by_its_setting(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_bytes(key_set(public(rsa_key(), kid="a")))
    assert isinstance(chosen(JWT), BearerTokens)
    assert isinstance(chosen({**JWT, "INTERMEZZO_JWT_JWKS": str(file)}), BearerTokens)
    assert isinstance(chosen({"INTERMEZZO_GATEWAY": "iam"}), Gateway)
    assert isinstance(chosen({"INTERMEZZO_API_KEYS": f"ada:{KEY}"}), ApiKeys)


def test_every_kind_of_gateway_is_read() -> None:
    assert set(SHAPES) == set(GATEWAYS)


@pytest.mark.parametrize("missing", list(JWT))
def test_tokens_that_are_set_up_by_half_are_refused_with_what_is_missing(missing: str) -> None:
    environ = {name: value for name, value in JWT.items() if name != missing}
    (problem,) = problems(environ)
    assert problem.startswith(f"{missing} is not set, but INTERMEZZO_JWT_")
    assert "; set it to " in problem


@pytest.mark.parametrize("name", ["INTERMEZZO_JWT_SCOPES", "INTERMEZZO_JWT_ALGORITHMS"])
def test_a_detail_of_tokens_without_the_rest_is_refused_with_all_of_it(name: str) -> None:
    told = problems({name: "ES256"})
    assert [line.split()[0] for line in told] == list(JWT)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("INTERMEZZO_JWT_ISSUER", "login.example.com"),
        ("INTERMEZZO_JWT_ISSUER", "http://login.example.com"),
        ("INTERMEZZO_JWT_JWKS", "http://login.example.com/jwks"),
        ("INTERMEZZO_JWT_JWKS", "file:///etc/passwd"),
        ("INTERMEZZO_JWT_ALGORITHMS", "none"),
        ("INTERMEZZO_JWT_ALGORITHMS", "HS256"),
        ("INTERMEZZO_JWT_ALGORITHMS", "RS256,HS256"),
        ("INTERMEZZO_JWT_SCOPES", "call offline_access"),
        ("INTERMEZZO_JWT_SCOPES", 'a"b'),
        ("INTERMEZZO_GATEWAY", "jwt"),
        ("INTERMEZZO_AUTHORIZATION_SERVERS", "https://ok.example, http://login.example.com"),
    ],
)
def test_a_value_that_would_not_be_safe_is_refused(name: str, value: str) -> None:
    (problem,) = [line for line in problems({**JWT, name: value}) if "is not set" not in line]
    assert problem.startswith(f"{name} is {value!r}; set it to ")


def test_a_public_url_in_the_clear_carries_no_tokens() -> None:
    (problem,) = problems({**JWT, "INTERMEZZO_PUBLIC_URL": "http://mcp.example.com/mcp"})
    assert problem.startswith("INTERMEZZO_PUBLIC_URL is not https")
    assert chosen({**JWT, "INTERMEZZO_PUBLIC_URL": "http://localhost:8000/mcp"})


def test_a_file_of_keys_must_be_one(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.json")
    (problem,) = problems({**JWT, "INTERMEZZO_JWT_JWKS": missing})
    assert problem == f"INTERMEZZO_JWT_JWKS is {missing!r}, and there is no such file; correct it."
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    with pytest.raises(SettingsError, match="no key set"):
        chosen({**JWT, "INTERMEZZO_JWT_JWKS": str(broken)})


def test_two_sources_are_one_too_many() -> None:
    told = problems({**JWT, "INTERMEZZO_API_KEYS": f"ada:{KEY}", "INTERMEZZO_GATEWAY": "iam"})
    assert told == [
        "INTERMEZZO_JWT_ISSUER and INTERMEZZO_GATEWAY and INTERMEZZO_API_KEYS are two answers to"
        " who is calling; keep one."
    ]


def test_custom_auth_beside_another_source_is_one_too_many(tmp_path: Path) -> None:
    config = json.loads(EXAMPLES.read_text())
    config["graphs"] = {
        name: {**graph, "path": f"{EXAMPLES.parent}/{graph['path'][2:]}"}
        for name, graph in config["graphs"].items()
    }
    config["auth"] = {"path": "./auth.py:auth"}
    (tmp_path / "langgraph.json").write_text(json.dumps(config))
    catalog = Catalog.read(tmp_path / "langgraph.json")
    with pytest.raises(SettingsError, match='INTERMEZZO_GATEWAY and "auth" in langgraph.json'):
        chosen({"INTERMEZZO_GATEWAY": "iam"}, catalog)


def test_keys_are_checked_and_never_shown() -> None:
    (problem,) = problems({"INTERMEZZO_API_KEYS": "ada:hunter2hunter2"})
    assert problem.startswith("INTERMEZZO_API_KEYS: the key of ada needs 32 random characters")
    assert "hunter2" not in problem
    assert KEY not in repr(Settings.from_environ({"INTERMEZZO_API_KEYS": f"ada:{KEY}"}))


def test_the_name_of_a_principal_needs_an_authorizer_that_gives_it() -> None:
    (problem,) = problems({"INTERMEZZO_GATEWAY_PRINCIPAL_KEY": "user"})
    assert problem.startswith("INTERMEZZO_GATEWAY_PRINCIPAL_KEY is set, but INTERMEZZO_GATEWAY")
    assert chosen(
        {"INTERMEZZO_GATEWAY": "rest-api-lambda", "INTERMEZZO_GATEWAY_PRINCIPAL_KEY": "user"}
    )


def test_servers_to_log_in_at_need_a_resource_and_a_source() -> None:
    servers = {"INTERMEZZO_AUTHORIZATION_SERVERS": "https://login.example.com"}
    (problem,) = problems(servers)
    assert problem.startswith("INTERMEZZO_PUBLIC_URL is not set")
    with pytest.raises(SettingsError, match="nothing says who is calling"):
        chosen({**servers, "INTERMEZZO_PUBLIC_URL": "https://mcp.example.com/mcp"})


def test_every_problem_of_a_source_is_told_at_once_with_all_others() -> None:
    told = problems(
        {
            "INTERMEZZO_TYPO": "x",
            "INTERMEZZO_JWT_SCOPES": "call",
            "INTERMEZZO_API_KEYS": "ada",
            "INTERMEZZO_CALL_TIMEOUT": "soon",
        }
    )
    assert len(told) == 7


def test_clients_are_told_the_issuer_or_the_servers_that_are_named() -> None:
    catalog = Catalog.read(EXAMPLES)
    metadata = published(Settings.from_environ(JWT), catalog)
    assert metadata is not None
    assert metadata.servers == ("https://login.example.com/",)
    named = {**JWT, "INTERMEZZO_AUTHORIZATION_SERVERS": "https://a.example, https://b.example"}
    metadata = published(Settings.from_environ(named), catalog)
    assert metadata is not None
    assert metadata.servers == ("https://a.example", "https://b.example")
