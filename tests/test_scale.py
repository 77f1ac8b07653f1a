"""With a hundred thousand calls stored (`make soak`: a million) a request costs what it costs with
a thousand: every statement goes by an index, and a sweep's batches are all alike.

The plans are those that PostgreSQL used while the product ran, also inside of functions.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from core.errors import InvalidParams, MissingCapability
from core.store import RENEW, Store
from core.sweeper import BATCH, sweep
from tests.conversation import Instance, accept, instance
from tests.crowd import Plans, copy_calls, explained, hear
from tests.tables import LANGGRAPHS, OURS, execute, rows

pytestmark = [pytest.mark.anyio, pytest.mark.direct]

CALLS = int(os.environ.get("SCALE_CALLS", "100000"))
FEW = 1000


@asynccontextmanager
async def listening(database: str, folder: Path) -> AsyncGenerator[tuple[Instance, Plans]]:
    """An instance, and the plans of all that it runs."""
    store = Store(database, max_size=1)
    async with instance(database, folder, store=store) as here:
        yield here, await hear(store)


async def everything(here: Instance) -> None:
    """Requests that need every statement of the store."""
    for agent in ("one", "then"):
        asked = await here.asks(agent)
        assert await here.asks(agent, {}, asked.request_state) == asked
        answers = accept(asked, Go="yes")
        result = await here.ends(agent, answers, asked.request_state)
        assert await here.ends(agent, answers, asked.request_state) == result
    asked = await here.asks("choosy_alone")
    with pytest.raises(InvalidParams):
        await here.call("choosy_alone", accept(asked, How={"number": 3}), asked.request_state)
    asked = await here.asks("url_later")
    answers = accept(asked, Form="yes")
    with pytest.raises(MissingCapability):
        await here.call("url_later", answers, asked.request_state, modes=frozenset({"form"}))
    await here.asks("url_later", answers, asked.request_state)
    async with here.store.connection(10.0) as connection:
        # In the product a thread does this, on a connection of its own.
        ids = [uuid4() for _ in range(3)]
        lists = {"calls": ids, "numbers": [1] * 3, "claims": ids, "answers": ["{}"] * 3}
        await connection.execute(
            here.store.statement(RENEW), {"lease": timedelta(seconds=1), **lists}
        )


def pause_one(database: str, folder: Path) -> None:
    async def pause() -> None:
        async with instance(database, folder) as here:
            await here.asks("one")

    asyncio.run(pause())


@pytest.fixture(scope="module")
def crowd(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database in which that many calls wait, and of which nobody has made statistics."""
    pause_one(module_database, tmp_path_factory.mktemp("crowd"))
    for table in (*OURS, *LANGGRAPHS):
        execute(module_database, f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    copy_calls(module_database, CALLS)
    with explained(module_database):
        yield module_database


@pytest.mark.parametrize("analyzed", [False, True])
async def test_the_sweep_takes_batches_that_are_all_alike(
    crowd: str, tmp_path: Path, analyzed: bool
) -> None:
    """Also before PostgreSQL knows anything of the tables, as after a restore."""
    if analyzed:
        await asyncio.to_thread(execute, crowd, "ANALYZE")
    expired = CALLS // 20
    with psycopg.connect(crowd, autocommit=True) as connection:
        connection.execute(
            "UPDATE intermezzo_calls SET expires_at = now() - random() * interval '1 hour'"
            " WHERE id IN (SELECT id FROM intermezzo_calls ORDER BY id LIMIT %s)",
            [expired],
        )
    kept = rows(crowd)
    async with listening(crowd, tmp_path) as (here, plans):
        assert await sweep(here.store) == expired
        heard = plans.taken()
    assert heard.scanned == []
    looks = [Plans([text]).pages for text in heard.texts if "WITH expired AS" in text]
    deletions = [
        Plans([text]).pages for text in heard.texts if "DELETE FROM" in text.split("\n")[1]
    ]
    assert len(looks) == expired // BATCH + 1
    assert max(looks[1:-1]) < 3 * min(looks[1:-1])
    assert max(deletions) < BATCH * 100
    assert rows(crowd)["intermezzo_calls"] == kept["intermezzo_calls"] - expired
    with psycopg.connect(crowd) as connection:
        for table in LANGGRAPHS:
            orphans = connection.execute(
                f"SELECT count(*) FROM {table} AS t LEFT JOIN intermezzo_calls AS c"
                " ON c.id = t.thread_id::uuid WHERE c.id IS NULL".encode()
            ).fetchone()
            assert orphans == (0,)


async def test_every_statement_goes_by_an_index(crowd: str, tmp_path: Path) -> None:
    async with listening(crowd, tmp_path) as (here, plans):
        await everything(here)
        heard = plans.taken()
        assert len(heard.texts) > 15, "the plans are told"
        assert heard.scanned == []
    await asyncio.to_thread(execute, crowd, "ANALYZE")
    async with listening(crowd, tmp_path) as (here, plans):
        await everything(here)
        assert plans.taken().scanned == []


async def test_requests_touch_as_many_pages_as_with_few_calls(
    crowd: str, database: str, tmp_path: Path
) -> None:
    await asyncio.to_thread(pause_one, database, tmp_path)
    await asyncio.to_thread(copy_calls, database, FEW)
    pages: list[int] = []
    with explained(database):
        for place in (database, crowd):
            await asyncio.to_thread(execute, place, "ANALYZE")
            async with listening(place, tmp_path) as (here, plans):
                await everything(here)
                plans.taken()  # the first time reads the catalogue too
                await everything(here)
                pages.append(plans.taken().pages)
    with_few, with_many = pages
    assert with_few > 100
    assert with_many < with_few * 1.5


async def test_a_session_that_planned_with_an_empty_database_stays_quick(
    database: str, tmp_path: Path
) -> None:
    with explained(database):
        async with listening(database, tmp_path) as (here, plans):
            for _ in range(8):  # PostgreSQL keeps a plan from the sixth time on
                await everything(here)
            plans.taken()
            await asyncio.to_thread(copy_calls, database, FEW)
            await everything(here)
            assert plans.taken().scanned == []
