"""A short soak: `make soak` holds it for minutes."""

import pytest

from tests.soak.run import connections_at_most, soak

pytestmark = pytest.mark.anyio


async def test_under_load_and_faults_nothing_is_lost_or_doubled_and_nothing_is_left(
    database: str,
) -> None:
    outcome = await soak(database, seconds=8, clients=10, kill_every=4)
    assert outcome.calls > 20, outcome
    assert outcome.faults["processes killed"] >= 1
    assert outcome.faults["connections cut"] >= 5
    assert outcome.lost == []
    assert outcome.doubled == []
    assert outcome.errors == 0
    assert outcome.left == 0
    assert outcome.connections <= connections_at_most(2)
