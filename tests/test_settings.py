"""Settings: what is read, and how everything wrong with it is told at once."""

from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from core.request_state import make_key
from handler.settings import PREFIX, Settings, SettingsError, variables

KEY = make_key()


def problems(environ: dict[str, str], *required: str) -> list[str]:
    with pytest.raises(SettingsError) as raised:
        Settings.from_environ(environ, required=required)
    return str(raised.value).splitlines()


def test_an_empty_environment_gives_the_defaults() -> None:
    assert Settings.from_environ({}) == Settings()


def test_every_variable_is_read() -> None:
    settings = Settings.from_environ(
        {
            "DATABASE_URL": "postgresql://db/app",
            "REQUEST_STATE_KEYS": f" {KEY} , {KEY[::-1]} ",
            "INTERMEZZO_CONFIG": "/srv/langgraph.json",
            "INTERMEZZO_DATABASE_SCHEMA": "paused",
            "INTERMEZZO_DATABASE_POOL_SIZE": "2",
            "INTERMEZZO_PUBLIC_URL": "https://mcp.example.com/mcp/",
            "INTERMEZZO_ALLOWED_HOSTS": "MCP.example.com, [::1], other.example:8443",
            "INTERMEZZO_ALLOWED_ORIGINS": "https://App.example.com/, http://localhost:5173",
            "INTERMEZZO_MAX_BODY_BYTES": "1000",
            "INTERMEZZO_CALL_TIMEOUT": "2.5",
            "INTERMEZZO_MAX_CONCURRENT_RUNS": "3",
            "INTERMEZZO_LIST_TTL_MS": "0",
            "INTERMEZZO_SWEEP_INTERVAL": "5",
            "INTERMEZZO_SERVER_NAME": "agents",
        }
    )
    assert settings == Settings(
        database_url="postgresql://db/app",
        request_state_keys=(KEY, KEY[::-1]),
        config=Path("/srv/langgraph.json"),
        database_schema="paused",
        database_pool_size=2,
        public_url="https://mcp.example.com/mcp",
        allowed_hosts=frozenset({"mcp.example.com", "::1", "other.example"}),
        allowed_origins=frozenset({"https://app.example.com", "http://localhost:5173"}),
        max_body_bytes=1000,
        call_timeout=2.5,
        max_concurrent_runs=3,
        list_ttl_ms=0,
        sweep_interval=5.0,
        server_name="agents",
    )


def test_every_variable_is_ours_by_prefix_or_known_by_name() -> None:
    others = {name for name in variables() if not name.startswith(PREFIX)}
    assert others == {"DATABASE_URL", "REQUEST_STATE_KEYS"}
    assert all(each.metadata["about"] for each in fields(Settings))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("INTERMEZZO_DATABASE_SCHEMA", "a b"),
        ("INTERMEZZO_DATABASE_SCHEMA", '"a"'),
        ("INTERMEZZO_DATABASE_SCHEMA", "1a"),
        ("INTERMEZZO_DATABASE_POOL_SIZE", "0"),
        ("INTERMEZZO_DATABASE_POOL_SIZE", "many"),
        ("INTERMEZZO_PUBLIC_URL", "mcp.example.com"),
        ("INTERMEZZO_PUBLIC_URL", "ftp://mcp.example.com"),
        ("INTERMEZZO_PUBLIC_URL", "https://mcp.example.com/#a"),
        ("INTERMEZZO_PUBLIC_URL", "https:///mcp"),
        ("INTERMEZZO_PUBLIC_URL", "https://mcp.example.com/a mcp"),
        ("INTERMEZZO_PUBLIC_URL", 'https://mcp.example.com/"'),
        ("INTERMEZZO_PUBLIC_URL", "https://ada:secret@mcp.example.com/mcp"),
        ("INTERMEZZO_PUBLIC_URL", "https://mcp.example.com/mcp?a=1"),
        ("INTERMEZZO_PUBLIC_URL", "https://mcp.example.com/mcp?"),
        ("INTERMEZZO_PUBLIC_URL", "https://mcp.example.com:port/mcp"),
        ("INTERMEZZO_PUBLIC_URL", "https://mcp.example.com\\@evil.example.com/mcp"),
        ("INTERMEZZO_JWT_ISSUER", "https://ada:secret@login.example.com/"),
        ("INTERMEZZO_AUTHORIZATION_SERVERS", "https://login.example.com/#a"),
        ("INTERMEZZO_ALLOWED_HOSTS", ":80"),
        ("INTERMEZZO_ALLOWED_HOSTS", "[::1"),
        ("INTERMEZZO_ALLOWED_HOSTS", "https://agents.example.com"),
        ("INTERMEZZO_ALLOWED_HOSTS", "*.example.com"),
        ("INTERMEZZO_ALLOWED_HOSTS", "agents.example.com/mcp"),
        ("INTERMEZZO_ALLOWED_HOSTS", "agents.example.com:port"),
        ("INTERMEZZO_ALLOWED_HOSTS", "agents.example.com:"),
        ("INTERMEZZO_ALLOWED_HOSTS", "ada@agents.example.com"),
        ("INTERMEZZO_ALLOWED_HOSTS", "agents example.com"),
        ("INTERMEZZO_ALLOWED_ORIGINS", "app.example.com"),
        ("INTERMEZZO_ALLOWED_ORIGINS", "https://app.example.com/page"),
        ("INTERMEZZO_ALLOWED_ORIGINS", "https://*.example.com"),
        ("INTERMEZZO_ALLOWED_ORIGINS", "https://ada:secret@app.example.com"),
        ("INTERMEZZO_ALLOWED_ORIGINS", "https://app.example.com?a=1"),
        ("INTERMEZZO_ALLOWED_ORIGINS", "https://app.example.com:443"),
        ("INTERMEZZO_MAX_BODY_BYTES", "4MiB"),
        ("INTERMEZZO_MAX_BODY_BYTES", "-1"),
        ("INTERMEZZO_CALL_TIMEOUT", "0"),
        ("INTERMEZZO_CALL_TIMEOUT", "nan"),
        ("INTERMEZZO_CALL_TIMEOUT", "inf"),
        ("INTERMEZZO_LIST_TTL_MS", "-1"),
        ("INTERMEZZO_LIST_TTL_MS", "1.5"),
    ],
)
def test_a_wrong_value_is_named_with_what_it_must_be(variable: str, value: str) -> None:
    (problem,) = problems({variable: value})
    assert problem.startswith(f"{variable} is {value!r}; set it to ")


def test_a_misspelt_variable_of_ours_is_an_error_that_names_the_nearest() -> None:
    (problem,) = problems({"INTERMEZZO_CONFG": "x"})
    assert problem.startswith("INTERMEZZO_CONFG is not a setting; did you mean INTERMEZZO_CONFIG?")


def test_other_peoples_variables_are_nobodys_business() -> None:
    assert Settings.from_environ({"PATH": "/bin", "DATABASE_PORT": "x"}) == Settings()


def test_every_problem_is_told_at_once_each_with_its_fix() -> None:
    told = problems(
        {
            "INTERMEZZO_TYPO": "x",
            "INTERMEZZO_CALL_TIMEOUT": "soon",
            "REQUEST_STATE_KEYS": "short",
        },
        "database_url",
    )
    assert [line.split()[0].rstrip(":") for line in told] == [
        "INTERMEZZO_TYPO",
        "DATABASE_URL",
        "INTERMEZZO_CALL_TIMEOUT",
        "REQUEST_STATE_KEYS",
    ]


def test_an_empty_variable_is_a_missing_one() -> None:
    told = problems(
        {"DATABASE_URL": "", "REQUEST_STATE_KEYS": ""}, "database_url", "request_state_keys"
    )
    assert told == [
        "DATABASE_URL is not set; set it to a PostgreSQL connection string.",
        "REQUEST_STATE_KEYS is not set; `python -m handler key` makes a key for it.",
    ]


@pytest.mark.parametrize("variable", variables())
def test_a_blank_variable_is_a_mistake_that_opens_nothing(variable: str) -> None:
    (problem,) = problems({variable: "  "})
    assert problem.startswith(f"{variable} is '  '; ")


@pytest.mark.parametrize(
    "variable",
    [
        "REQUEST_STATE_KEYS",
        "INTERMEZZO_ALLOWED_HOSTS",
        "INTERMEZZO_ALLOWED_ORIGINS",
        "INTERMEZZO_API_KEYS",
        "INTERMEZZO_AUTHORIZATION_SERVERS",
        "INTERMEZZO_JWT_ALGORITHMS",
        "INTERMEZZO_JWT_SCOPES",
    ],
)
def test_a_list_of_nothing_is_a_mistake_that_opens_nothing(variable: str) -> None:
    name = "request_state_keys" if variable == "REQUEST_STATE_KEYS" else ""
    (problem,) = problems({variable: " , ,"}, name)
    assert problem.startswith(f"{variable} is ' , ,'; ")


def test_a_weak_key_is_refused_with_the_command_that_makes_one_and_is_not_shown() -> None:
    (problem,) = problems({"REQUEST_STATE_KEYS": "hunter2"})
    assert "python -m handler key" in problem
    assert "hunter2" not in problem


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().call_timeout = 1  # pyright: ignore[reportAttributeAccessIssue] # the point
