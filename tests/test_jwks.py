"""An issuer's keys: kept, read again when they must be, and no more often."""

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handler import jwks
from handler.jwks import (
    FRESH,
    KEPT,
    KEY_TYPES,
    MOST_BYTES,
    PAUSE,
    RETRY,
    Jwks,
    Unreachable,
    from_file,
    from_url,
    parse,
)
from handler.sources import ALGORITHMS
from tests.issuer import ec_key, key_set, public, published, rsa_key

pytestmark = pytest.mark.anyio

A = public(rsa_key(), kid="a")
B = public(rsa_key(1), kid="b")


class Source:
    """A key set, and a clock that stands until it is moved."""

    def __init__(self, *keys: dict[str, object]) -> None:
        self.body = key_set(*keys)
        self.broken: Exception | None = None
        self.reads = 0
        self.now = 1000.0
        self.jwks = Jwks(self.read, now=lambda: self.now)

    async def read(self) -> bytes:
        self.reads += 1
        await asyncio.sleep(0)
        if self.broken:
            raise self.broken
        return self.body

    async def knows(self, kid: str | None, algorithm: str = "RS256") -> bool:
        return await self.jwks.key(kid, algorithm) is not None


def test_every_algorithm_that_may_be_allowed_has_a_type_of_key() -> None:
    assert set(KEY_TYPES) == set(ALGORITHMS)


async def test_keys_are_read_once_however_many_ask_at_once() -> None:
    source = Source(A)
    assert all(await asyncio.gather(*(source.knows("a") for _ in range(50))))
    assert source.reads == 1


async def test_a_key_that_is_new_is_found_by_reading_again() -> None:
    source = Source(A)
    assert await source.knows("a")
    source.body = key_set(A, B)
    source.now += PAUSE
    assert await source.knows("b")
    assert source.reads == 2


async def test_a_flood_of_unknown_ids_is_one_reading_in_a_while() -> None:
    source = Source(A)
    for second in range(10):
        source.now += PAUSE / 10
        for number in range(100):
            assert not await source.knows(f"{second}-{number}")
    assert source.reads <= 2
    assert await source.knows("a")


async def test_a_flood_at_once_is_one_reading() -> None:
    source = Source(A)
    assert not any(await asyncio.gather(*(source.knows(str(number)) for number in range(500))))
    assert source.reads == 1


async def test_a_key_that_was_withdrawn_is_forgotten() -> None:
    source = Source(A, B)
    assert await source.knows("b")
    source.body = key_set(A)
    source.now += FRESH + 1
    assert not await source.knows("b")
    assert await source.knows("a")


async def test_keys_of_an_issuer_that_is_down_serve_for_a_while_and_no_longer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = Source(A)
    assert await source.knows("a")
    source.broken = OSError("connection refused by secret.internal")
    source.now += KEPT
    assert await source.knows("a")
    source.now += 1
    with pytest.raises(Unreachable):
        await source.knows("a")
    assert "secret.internal" not in caplog.text
    source.broken = None
    source.now += RETRY
    assert await source.knows("a")


async def test_an_issuer_that_is_down_is_asked_now_and_then_only() -> None:
    source = Source(A)
    source.broken = TimeoutError()
    for _ in range(100):
        source.now += RETRY / 50
        with pytest.raises(Unreachable):
            await source.knows("a")
    assert source.reads <= 3


async def test_an_issuer_that_hangs_costs_one_request_its_patience_and_no_other_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert jwks.PATIENCE == RETRY, "as they are here, a tenth of each"
    for name in ("PATIENCE", "RETRY"):
        monkeypatch.setattr(jwks, name, 0.5)
    ahead = 0.0
    with published(key_set(A)) as here:
        keys = Jwks(from_url(here.url), now=lambda: time.monotonic() + ahead)
        assert await keys.key("a", "RS256")
        here.answers.clear()
        ahead = FRESH + 1

        async def seconds() -> float:
            began = time.monotonic()
            assert await keys.key("a", "RS256")
            return time.monotonic() - began

        at_once = await asyncio.gather(*(seconds() for _ in range(20)))
        after = [await seconds() for _ in range(20)]
        assert sum(each > 0.1 for each in at_once) == 1
        assert max(after) < 0.1
        assert len(here.fetches) == 2


async def test_nodes_that_take_every_thread_keep_no_key_from_being_read(tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_bytes(key_set(A))
    loop, free = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    node = loop.run_in_executor(None, free.wait)
    try:
        with published(key_set(A)) as here:
            for read in (from_url(here.url), from_file(tmp_path / "jwks.json")):
                assert await asyncio.wait_for(read(), 5)
    finally:
        free.set()
        await node


async def test_without_an_id_the_only_key_that_fits_is_taken() -> None:
    source = Source(A, public(ec_key(), kid="e"))
    assert await source.knows(None, "RS256")
    assert await source.knows(None, "ES256")
    assert not await source.knows(None, "ES384")
    assert not await Source(A, B).knows(None)


async def test_two_keys_of_one_id_and_kind_are_none() -> None:
    assert not await Source(A, {**B, "kid": "a"}).knows("a")


async def test_a_key_for_encryption_verifies_nothing() -> None:
    source = Source(A, {**B, "use": "enc"}, {**B, "kid": "c", "key_ops": ["sign"]})
    assert not await source.knows("b")
    assert not await source.knows("c")


async def test_a_key_that_is_broken_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    source = Source(A, {"kty": "RSA", "kid": "b", "n": "!", "e": "AQAB"}, {"kty": "EC", "kid": "c"})
    assert not await source.knows("b")
    assert await source.knows("a")
    assert "is of no use" in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": {}}',
        b'{"keys": []}',
        b'{"keys": [5]}',
        b"[" * 100_000,
        b"\xff",
        b'{"keys": [{"kty": []}]}',
    ],
)
def test_what_is_no_key_set_is_told_as_such(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any ValueError, as the reader catches it
        parse(body)


async def test_a_file_is_read_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_bytes(key_set(A))
    now = 0.0
    jwks = Jwks(from_file(file), now=lambda: now)
    assert await jwks.key("a", "RS256")
    file.write_bytes(key_set(B))
    now += PAUSE
    assert await jwks.key("b", "RS256")


async def test_a_url_is_read_and_a_redirect_is_not_followed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    with published(key_set(A)) as here:
        assert await Jwks(from_url(here.url)).key("a", "RS256")
        here.status = 302
        with pytest.raises(Unreachable):
            await Jwks(from_url(here.url)).key("a", "RS256")
        here.status, here.body = 200, b" " * (MOST_BYTES + 1)
        with pytest.raises(Unreachable):
            await Jwks(from_url(here.url)).key("a", "RS256")
        assert here.fetches == ["/jwks"] * 3


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n[",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n[",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    ],
)
async def test_an_answer_that_is_no_http_leaves_no_keys_to_go_by(raw: bytes) -> None:
    with published(b"") as here:
        here.raw = raw
        with pytest.raises(Unreachable):
            await Jwks(from_url(here.url)).key("a", "RS256")
