"""The connections of a store: which of them is handed out."""

from contextlib import AsyncExitStack

import pytest

from core.store import Store

pytestmark = pytest.mark.anyio


async def test_after_a_burst_one_at_a_time_stay_with_the_connection_used_last(store: Store) -> None:
    async with AsyncExitStack() as burst:
        first = await burst.enter_async_context(store.connection(patience=1))
        others = [await burst.enter_async_context(store.connection(patience=1)) for _ in range(3)]
    assert first not in others
    for _ in range(3):
        async with store.connection(patience=1) as connection:
            assert connection is first, "the last of a burst to be put back was the first taken"
