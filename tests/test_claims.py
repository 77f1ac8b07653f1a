"""A claim by itself: renewed by a thread, given back, taken over."""

import threading
import time
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from core.claims import Renewals
from core.records import Asking, Claim, ClaimLost, Rows, StoreError, Unavailable
from core.store import RENEW, Store
from tests.conversation import until
from tests.faults import Line
from tests.tables import execute, value

pytestmark = pytest.mark.anyio

LEASE = timedelta(seconds=0.5)
DIGESTS = {"key": "digest"}


@pytest.fixture
async def claim(store: Store) -> Claim:
    """A claim on the first round of a call."""
    call = uuid4()
    asking = Asking(keys=["key"], modes=["form"], questions=b"{}")
    await store.pause(call, "agent", asking, Rows(), ttl=timedelta(hours=1))
    return await made(store, Claim(call=call, number=1, id=uuid4()))


async def made(store: Store, claim: Claim) -> Claim:
    seen = await store.claim(claim, "agent", given=["key"], modes=["form"], lease=LEASE)
    assert seen is not None
    assert seen.won
    return claim


def ends(database: str) -> str | None:
    """When the only claim ends; None when there is none."""
    return value(database, "SELECT claimed_until::text FROM intermezzo_rounds")


async def test_a_claim_is_renewed_until_the_last_of_its_blocks_ends(
    store: Store, database: str, claim: Claim
) -> None:
    """As when a run is stopped while one of its threads is still at work."""
    renewals = Renewals(store, lease=LEASE)
    first, second = (renewals.hold(claim, DIGESTS, _pass_over) for _ in range(2))
    with first:
        second.__enter__()
    try:
        for _ in range(3):
            before = ends(database)
            await until(lambda before=before: ends(database) != before)
    finally:
        second.__exit__(None, None, None)


async def test_a_claim_is_told_to_be_lost_once_it_is_older_than_its_lease(
    store: Store, database: str, claim: Claim
) -> None:
    renewals = Renewals(store, lease=LEASE)
    other = await _taken_over(store, database, claim)
    told: list[StoreError] = []
    old = replace(claim, since=claim.since - LEASE.total_seconds())
    with renewals.hold(old, DIGESTS, told.append):
        await until(lambda: bool(told))
    assert isinstance(told[0], Unavailable)
    with pytest.raises(ClaimLost):
        await store.renew(claim, lease=LEASE)
    await store.renew(other, lease=LEASE)


async def _taken_over(store: Store, database: str, claim: Claim) -> Claim:
    execute(database, "UPDATE intermezzo_rounds SET claimed_until = now()")
    return await made(store, replace(claim, id=uuid4()))


@pytest.mark.parametrize("ending", ["lapse", "release"])
async def test_a_renewal_that_comes_late_does_not_take_back_what_was_given_back(
    store: Store, database: str, claim: Claim, ending: str
) -> None:
    if ending == "lapse":
        await store.lapse(claim, DIGESTS, Rows())
    else:
        await store.release(claim)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            store.statement(RENEW),
            {
                "lease": LEASE,
                "calls": [claim.call],
                "numbers": [claim.number],
                "claims": [claim.id],
                "answers": ["{}"],
            },
        )
    assert ends(database) == (None if ending == "release" else "-infinity")


async def test_a_claim_that_was_released_leaves_the_round_as_it_was(
    store: Store, database: str, claim: Claim
) -> None:
    await store.release(claim)
    await store.release(replace(claim, id=uuid4()))  # one that was never made
    with psycopg.connect(database) as connection:
        row = connection.execute("SELECT state, answers FROM intermezzo_rounds").fetchone()
    assert row == ("asked", None)
    await made(store, replace(claim, id=uuid4()))


async def test_a_claim_that_was_released_leaves_the_answers_of_the_one_before(
    store: Store, claim: Claim
) -> None:
    await store.lapse(claim, DIGESTS, Rows())
    again = await made(store, replace(claim, id=uuid4()))
    await store.release(again)
    seen = await store.claim(
        replace(claim, id=uuid4()), "agent", given=["key"], modes=["form"], lease=LEASE
    )
    assert seen is not None
    assert (seen.won, seen.lapsed, seen.answers) == (True, False, DIGESTS)


async def test_one_thread_that_could_not_start_ends_no_later_renewal(
    store: Store, database: str, claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewals = Renewals(store, lease=LEASE)
    with monkeypatch.context() as exhausted:
        exhausted.setattr(threading.Thread, "start", _no_more_threads)
        told: list[StoreError] = []
        with renewals.hold(claim, DIGESTS, told.append):
            await until(lambda: bool(told))
    assert isinstance(told[0], Unavailable)
    before = ends(database)
    with renewals.hold(claim, DIGESTS, _pass_over):
        await until(lambda: ends(database) != before)


def _pass_over(error: StoreError) -> None:
    """The claim is not lost."""


def _no_more_threads(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_a_claim_that_is_old_already_is_lost_no_later_when_its_renewal_hangs(
    line: Line, claim: Claim
) -> None:
    hung = Store(line.conninfo)
    line.at_named("renew", 1, "before", line.swallow)
    old = replace(claim, since=claim.since - LEASE.total_seconds() * 0.6)
    told: list[float] = []

    def tell(error: StoreError) -> None:
        told.append(time.monotonic())

    with Renewals(hung, lease=LEASE).hold(old, DIGESTS, tell):
        await until(lambda: bool(told))
    assert told[0] - old.since < LEASE.total_seconds() * 1.3
