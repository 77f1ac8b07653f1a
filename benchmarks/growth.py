"""How cost grows: with the calls that are stored, with the state's size, with the supersteps.

Stored calls are copies of a real one, in databases that exist side by side; each has a server of
its own, and what is measured is the resume of calls that lie anywhere in it.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from benchmarks.conversations import answered, asked_of, called
from benchmarks.load import Task
from benchmarks.servers import KEY, STORED, Name, serving
from benchmarks.wire import Connection
from benchmarks.workers import Worker, working
from core.migrate import migrate
from core.request_state import Binding, KeyRing

Curves = dict[str, list[tuple[int, float]]]
"""By contestant: size and seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Seconds a call, by what grows."""

    stored: list[tuple[int, list[float]]] = field(default_factory=list[tuple[int, list[float]]])
    messages: Curves = field(default_factory=Curves)
    supersteps: Curves = field(default_factory=Curves)


def measure(
    database: str,
    *,
    stored: Sequence[int],
    messages: Sequence[int],
    supersteps: Sequence[int],
    turns: int,
    seconds: float,
) -> Growth:
    """All three."""
    with working("benchmarks.load") as load:
        return Growth(
            stored=_with_stored_calls(database, stored, turns=turns),
            messages=_with_size(database, load, "history", messages, turns, seconds),
            supersteps=_with_size(database, load, "walk", supersteps, turns, seconds),
        )


def _with_size(
    database: str, load: Worker, case: str, sizes: Sequence[int], turns: int, seconds: float
) -> Curves:
    print(f"growth of {case}", file=sys.stderr)
    samples: dict[tuple[Name, int], list[float]] = {}
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(name, database)) for name in STORED]
        for _ in range(turns):
            for size in sizes:
                for server in servers:
                    task = Task(
                        url=server.url, case=case, size=size, concurrency=1, seconds=seconds
                    )
                    taken = samples.setdefault((server.name, size), [])
                    taken.append(load.perform(task).p50)
    return {name: [(size, median(samples[name, size])) for size in sizes] for name in STORED}


RESUMES = 60
"""Calls resumed in one turn of one database."""


def _with_stored_calls(
    database: str, counts: Sequence[int], *, turns: int
) -> list[tuple[int, list[float]]]:
    with ExitStack() as stack:
        urls: list[str] = []
        waiting: list[list[UUID]] = []
        for count in counts:
            print(f"storing {count} calls", file=sys.stderr)
            conninfo = _database(database, f"stored_{count}")
            server = stack.enter_context(serving(Name.OURS, conninfo))
            call = asyncio.run(_paused(server.url, conninfo))
            _copy(conninfo, call, count)
            urls.append(server.url)
            waiting.append(_some(conninfo, RESUMES * (turns + 1)))
        times: list[list[float]] = [[] for _ in counts]
        for turn in range(turns + 1):
            for index, url in enumerate(urls):
                chosen = waiting[index][turn * RESUMES : (turn + 1) * RESUMES]
                took = asyncio.run(_resume(url, chosen))
                if turn:  # the first one warms up
                    times[index].append(median(took))
        return list(zip(counts, times, strict=True))


def _database(server: str, name: str) -> str:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    conninfo = make_conninfo(server, dbname=name)
    asyncio.run(migrate(conninfo))
    return conninfo


async def _paused(url: str, database: str) -> UUID:
    """A call that waits for its answer."""
    connection = await Connection.open(url)
    asked_of(await connection.ask(called("greeter", {}).encoded(urlsplit(url).netloc)))
    connection.close()
    with psycopg.connect(database) as reading:
        row = reading.execute("SELECT id FROM intermezzo_calls").fetchone()
    assert row is not None
    return row[0]


def _copy(database: str, call: UUID, count: int) -> None:
    """Store the call so many times, in an order that has nothing to do with its ids."""
    given = {"call": call, "thread": str(call), "count": count}
    with psycopg.connect(database) as connection:
        connection.execute(
            "CREATE TEMP TABLE copies AS"
            " SELECT gen_random_uuid() AS id FROM generate_series(1, %(count)s)",
            given,
        )
        connection.execute(
            "INSERT INTO intermezzo_calls (id, agent, expires_at)"
            " SELECT copies.id, agent, expires_at"
            " FROM copies, intermezzo_calls AS c WHERE c.id = %(call)s",
            given,
        )
        connection.execute(
            "INSERT INTO intermezzo_rounds (call_id, number, state, keys, modes, questions)"
            " SELECT copies.id, number, state, keys, modes, questions"
            " FROM copies, intermezzo_rounds WHERE call_id = %(call)s",
            given,
        )
        connection.execute(
            "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id,"
            "  parent_checkpoint_id, checkpoint, metadata)"
            " SELECT copies.id::text, checkpoint_ns, checkpoint_id, parent_checkpoint_id,"
            "  checkpoint, metadata FROM copies, checkpoints WHERE thread_id = %(thread)s",
            given,
        )
        connection.execute(
            "INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)"
            " SELECT copies.id::text, checkpoint_ns, channel, version, type, blob"
            " FROM copies, checkpoint_blobs WHERE thread_id = %(thread)s",
            given,
        )
        connection.execute(
            "INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx,"
            "  task_path, channel, type, blob)"
            " SELECT copies.id::text, checkpoint_ns, checkpoint_id, task_id, idx, task_path,"
            "  channel, type, blob FROM copies, checkpoint_writes WHERE thread_id = %(thread)s",
            given,
        )
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _some(database: str, count: int) -> list[UUID]:
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "SELECT id FROM intermezzo_calls ORDER BY random() LIMIT %s", [count]
        ).fetchall()
    return [row[0] for row in rows]


async def _resume(url: str, calls: Sequence[UUID]) -> list[float]:
    """Seconds that each of these took."""
    keys, authority = KeyRing([KEY]), urlsplit(url).netloc
    binding = Binding(audience="", agent="greeter", tool="greeter", arguments={}, principal="")
    connection = await Connection.open(url)
    asked = asked_of(await connection.ask(called("greeter", {}).encoded(authority)))
    took: list[float] = []
    for call in calls:
        asked["requestState"] = keys.seal(call, 1, binding)
        request = answered("greeter", {}, asked, "Ada").encoded(authority)
        begun = time.perf_counter()
        answer = await connection.ask(request)
        took.append(time.perf_counter() - begun)
        assert "Hello, Ada!" in answer.message["result"]["content"][0]["text"], answer
    connection.close()
    return took
