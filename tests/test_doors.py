"""Host and Origin."""

import pytest

from handler.doors import LOCAL, Doors
from handler.headers import Headers
from handler.refusals import ForeignOrigin, SeveralHosts, UnknownHost


def headers(host: str = "localhost", origin: str | None = None) -> Headers:
    fields = [(b"host", host.encode())]
    return Headers(fields if origin is None else [*fields, (b"origin", origin.encode())])


@pytest.mark.parametrize("host", ["abc.execute-api.eu-west-1.amazonaws.com", "localhost:1", ""])
@pytest.mark.parametrize("origin", [None, "https://evil.example.com", "null"])
def test_without_lists_everyone_may_call(host: str, origin: str | None) -> None:
    Doors().check(headers(host, origin))


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST", "[::1]"]
)
def test_local_names_are_local_with_any_port(host: str) -> None:
    Doors(hosts=LOCAL).check(headers(host))


@pytest.mark.parametrize(
    "host",
    [
        "evil.example.com",
        "localhost.evil.example.com",
        "127.0.0.1.evil.example.com",
        "",
        "[::1",
        "@",
    ],
)
def test_other_names_are_refused(host: str) -> None:
    with pytest.raises(UnknownHost):
        Doors(hosts=LOCAL).check(headers(host))


def test_a_request_without_a_host_is_refused_where_hosts_are_listed() -> None:
    with pytest.raises(UnknownHost):
        Doors(hosts=LOCAL).check(Headers([]))


@pytest.mark.parametrize("second", ["localhost", "evil.example.com", ""])
@pytest.mark.parametrize("doors", [Doors(), Doors(hosts=LOCAL)])
def test_a_request_with_two_hosts_is_refused_even_where_everyone_may_call(
    doors: Doors, second: str
) -> None:
    with pytest.raises(SeveralHosts):
        doors.check(Headers([(b"host", b"localhost"), (b"host", second.encode())]))


@pytest.mark.parametrize("origin", ["http://localhost:5173", "http://127.0.0.1", "http://[::1]:1"])
def test_a_page_of_an_allowed_host_may_call(origin: str) -> None:
    Doors(hosts=LOCAL).check(headers(origin=origin))


@pytest.mark.parametrize("origin", ["https://evil.example.com", "null", "http://[", ""])
def test_a_page_of_another_host_may_not(origin: str) -> None:
    with pytest.raises(ForeignOrigin):
        Doors(hosts=LOCAL).check(headers(origin=origin))


def test_a_list_of_origins_is_the_only_judge_of_origins() -> None:
    doors = Doors(hosts=LOCAL, origins={"https://app.example.com"})
    doors.check(headers(origin="https://app.example.com"))
    doors.check(headers(origin="HTTPS://APP.example.com"))
    for origin in (
        "http://localhost",
        "https://app.example.com.evil.example",
        "http://app.example.com",
    ):
        with pytest.raises(ForeignOrigin):
            doors.check(headers(origin=origin))


def test_an_asterisk_lets_every_one_in_and_each_list_speaks_for_itself() -> None:
    Doors(hosts={"*"}).check(headers("evil.example.com", "https://evil.example.com"))
    doors = Doors(hosts=LOCAL, origins={"*"})
    for origin in ("https://evil.example.com", "null", "http://["):
        doors.check(headers(origin=origin))
    with pytest.raises(UnknownHost):
        doors.check(headers("evil.example.com"))
    with pytest.raises(ForeignOrigin):
        Doors(hosts={"*"}, origins={"https://a.example"}).check(headers(origin="https://b.example"))


def test_each_of_several_origins_is_judged() -> None:
    both = [(b"origin", b"https://a.example"), (b"origin", b"https://b.example")]
    with pytest.raises(ForeignOrigin):
        Doors(origins={"https://a.example"}).check(Headers(both))
