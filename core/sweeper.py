"""The sweep: deleting what has expired. It only frees space; no lifetime depends on it.

Bounded batches, each a transaction. A call goes whole: its checkpoints first, its own row last, so
that a sweep that dies leaves nothing that the next one would not find.
"""

import asyncio
import logging
from typing import Any, LiteralString
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import DictRow

from core.store import Store

BATCH = 500
"""Calls in one transaction."""

PATIENCE = 60.0
"""Seconds that a transaction may take."""

log = logging.getLogger(__name__)

# Without statistics, as after a restore, PostgreSQL would read whole tables for each batch.
_ALONE: LiteralString = """
SELECT pg_try_advisory_xact_lock(115923220459118) AS alone,
       set_config('enable_seqscan', 'off', true)
"""

# An open round is locked before its call is judged: a claim that is being made is waited out by
# skipping it, and one that lives keeps its call however late it is.
_EXPIRED: LiteralString = """
WITH expired AS (
    SELECT id, agent, expires_at FROM {schema}.intermezzo_calls
    WHERE expires_at <= {schema}.intermezzo_now()
      AND (expires_at, id) > (%(moment)s::timestamptz, %(call)s::uuid)
    ORDER BY expires_at, id LIMIT %(batch)s
), free AS (
    SELECT r.call_id FROM {schema}.intermezzo_rounds AS r
    WHERE r.call_id IN (SELECT id FROM expired) AND r.state <> 'settled'
      AND NOT (r.state = 'claimed' AND r.claimed_until > {schema}.intermezzo_now())
    FOR UPDATE SKIP LOCKED
)
SELECT id, agent, expires_at, id IN (SELECT call_id FROM free) AS open,
       id IN (SELECT call_id FROM free)
       OR NOT EXISTS (
            SELECT 1 FROM {schema}.intermezzo_rounds AS r
            WHERE r.call_id = id AND r.state <> 'settled') AS free
FROM expired ORDER BY expires_at, id
"""

# Whatever lets a call live longer takes its open round first. That is locked by now, so a statement
# of its own sees the last word: the one before may have begun before it was spoken.
_STILL_EXPIRED: LiteralString = """
SELECT id FROM {schema}.intermezzo_calls
WHERE id = ANY(%(ids)s) AND expires_at <= {schema}.intermezzo_now()
"""

_DELETES: tuple[LiteralString, ...] = (
    "DELETE FROM {schema}.checkpoint_writes WHERE thread_id = ANY(%(threads)s)",
    "DELETE FROM {schema}.checkpoint_blobs WHERE thread_id = ANY(%(threads)s)",
    "DELETE FROM {schema}.checkpoints WHERE thread_id = ANY(%(threads)s)",
    "DELETE FROM {schema}.intermezzo_calls WHERE id = ANY(%(ids)s)",
)


async def sweep(store: Store, *, batch: int = BATCH, patience: float = PATIENCE) -> int:
    """Delete every expired call, and return how many there were.

    Any number may run at once: one works, the others return 0.

    Raises:
        StoreError: the database failed; what was deleted so far stays deleted.
    """
    total = 0
    after: dict[str, Any] = {"moment": "-infinity", "call": UUID(int=0)}
    while True:
        async with store.connection(patience) as connection, connection.transaction():
            found = await _found(store, connection, batch, after)
            expired = await _expired(store, connection, found)
            await _delete(store, connection, [each["id"] for each in expired])
        _tell(expired)
        total += len(expired)
        if len(found) < batch:
            return total
        # On from here: a call that can't go yet holds up no other.
        after = {"moment": found[-1]["expires_at"], "call": found[-1]["id"]}
        await asyncio.sleep(0)


async def _found(
    store: Store, connection: AsyncConnection[DictRow], batch: int, after: dict[str, Any]
) -> list[DictRow]:
    """The next calls that have expired, in order; none when another sweep is at work."""
    row = await (await connection.execute(_ALONE)).fetchone()
    if row is None or not row["alone"]:
        return []
    cursor = await connection.execute(store.statement(_EXPIRED), {"batch": batch, **after})
    return await cursor.fetchall()


async def _expired(
    store: Store, connection: AsyncConnection[DictRow], found: list[DictRow]
) -> list[DictRow]:
    """Those of them that nobody is at work on or has asked again."""
    free = [each for each in found if each["free"]]
    ids = {"ids": [each["id"] for each in free]}
    cursor = await connection.execute(store.statement(_STILL_EXPIRED), ids)
    still = {each["id"] for each in await cursor.fetchall()}
    return [each for each in free if each["id"] in still]


async def _delete(store: Store, connection: AsyncConnection[DictRow], ids: list[UUID]) -> None:
    parameters: dict[str, Any] = {"ids": ids, "threads": [str(id) for id in ids]}
    for statement in _DELETES if ids else ():
        await connection.execute(store.statement(statement), parameters)


def _tell(deleted: list[DictRow]) -> None:
    for each in deleted:
        message = "a call expired unanswered" if each["open"] else "a call expired"
        log.info(message, extra={"call": str(each["id"]), "agent": each["agent"]})
