"""Where the database is: connection strings, and what RDS keeps in a secret."""

import json

import pytest
from psycopg.conninfo import conninfo_to_dict

from handler.database import conninfo
from handler.settings import SettingsError

RDS = {
    "engine": "postgres",
    "username": "app",
    "password": "a b'\\c",
    "host": "db.example.com",
    "port": 5432,
    "dbname": "intermezzo",
}


def read(given: object, **environ: str) -> dict[str, object]:
    text = given if isinstance(given, str) else json.dumps(given)
    found: dict[str, object] = dict(conninfo_to_dict(conninfo(text, environ)))
    for patience in ("connect_timeout", "keepalives_idle", "tcp_user_timeout"):
        assert found.pop(patience)
    return found


def test_a_connection_string_stays_what_it_is_and_gets_patience() -> None:
    uri = "postgresql://app:secret@db.example.com:6432/intermezzo?sslmode=require"
    assert read(uri) == {
        "user": "app",
        "password": "secret",
        "host": "db.example.com",
        "port": "6432",
        "dbname": "intermezzo",
        "sslmode": "require",
    }


def test_a_patience_of_its_own_wins() -> None:
    found = conninfo_to_dict(conninfo("host=h connect_timeout=60", {}))
    assert str(found["connect_timeout"]) == "60"


def test_a_secret_of_rds_is_a_connection_string_too() -> None:
    found = read(RDS)
    assert (found["user"], found["password"]) == ("app", "a b'\\c")
    assert (found["host"], found["port"]) == ("db.example.com", "5432")
    assert found["dbname"] == "intermezzo"


def test_a_variable_of_libpq_stands_before_the_secret_so_that_a_proxy_can() -> None:
    found = read(RDS, PGHOST="proxy.example.com", PGDATABASE="other")
    assert "host" not in found
    assert "dbname" not in found


def test_a_secret_that_rds_manages_has_no_more_than_a_name_and_a_password() -> None:
    assert read({"username": "app", "password": "secret"}) == {"user": "app", "password": "secret"}


@pytest.mark.parametrize("given", ["{", "{]", "postgresql://[", "secret without equals sign"])
def test_anything_else_is_refused_without_showing_it(given: str) -> None:
    with pytest.raises(SettingsError, match="DATABASE_URL is no connection string") as refusal:
        conninfo(given, {})
    assert given not in str(refusal.value).split()
    assert refusal.value.__cause__ is None


def test_a_password_that_would_be_taken_for_a_host_is_refused_without_showing_it() -> None:
    with pytest.raises(SettingsError, match="write one in a password as %40") as refusal:
        conninfo("postgresql://app:pass@word@db.example.com/intermezzo", {})
    assert "word@" not in str(refusal.value)
