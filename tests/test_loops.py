"""Event loops that end: what belonged to one goes with it, and the next opens its own."""

import asyncio
import gc
from pathlib import Path

import pytest

from core.request_state import KeyRing
from core.rounds import Rounds
from core.store import Store
from tests.conversation import KEY, Instance, accept, catalog, instance, said
from tests.sessions import connections


async def remember(here: Instance, what: str) -> str:
    """A call of an agent that uses LangGraph's store as well."""
    asked = await here.asks("remembering")
    return said(await here.ends("remembering", accept(asked, Remember=what), asked.request_state))


def test_a_loop_that_was_closed_keeps_no_connection_once_another_has_one(
    database: str, tmp_path: Path
) -> None:
    store = Store(database)
    rounds = Rounds(catalog=catalog, store=lambda: store, keys=KeyRing([KEY]))
    here = Instance(store=store, rounds=rounds, journal=tmp_path)
    for known, told in (("nothing", "tea"), ("tea", "milk"), ("milk", "rum")):
        assert f'["{known}"]' in asyncio.run(remember(here, told))
        gc.collect()
        assert connections(database) <= 2


@pytest.mark.anyio
async def test_what_was_closed_is_opened_again_when_it_is_needed(
    database: str, tmp_path: Path
) -> None:
    async with instance(database, tmp_path) as here:
        await remember(here, "tea")
        await here.store.close()
        assert '["tea"]' in await remember(here, "milk")
