"""The rows of calls and rounds: literal SQL, one method each, compare-and-set.

Every change of a round is one statement under an expected state, and its answer tells who won.
Whatever a runner writes goes through a fence: the statement takes the round's row first and does
nothing when another claim stands there. What changes several tables is one statement too, a
function or CTEs, so that it is atomic without BEGIN and COMMIT, in one round trip, through a
transaction pooler as well. Locks are taken in one order: a round's row, then its call's.

    asked ──claim──► claimed ──settle──► settled (+ the next round, asked or withheld)
      ▲                 │ ▲
      └──── reopen ─────┘ └── claim again, once the claim has lapsed
"""

import asyncio
import math
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, LiteralString, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from psycopg import AsyncConnection, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

from core.records import (
    Asking,
    Claim,
    ClaimLost,
    Collided,
    Interrupted,
    Rows,
    Seen,
    StoreError,
    Unavailable,
    Unholdable,
)

T = TypeVar("T")

_MISSING = (
    errors.InvalidSchemaName,
    errors.UndefinedColumn,
    errors.UndefinedFunction,
    errors.UndefinedTable,
)
"""What the database says of a schema that is not there, or older than this code."""

_COLLISION = (errors.DeadlockDetected, errors.SerializationFailure)

# What every call needs is a function of the database, for the reason that its migration gives.

_ROWS: LiteralString = """
    %(checkpoints)b::text[], %(blobs)b::text[], %(blob_bytes)b::bytea[],
    %(writes)b::text[], %(write_bytes)b::bytea[]
"""

_PAUSE: LiteralString = (
    """
SELECT {schema}.intermezzo_pause(
    %(call)s, %(agent)s, %(ttl)s, %(metadata)b,
    %(keys)b::text[], %(modes)b::text[], %(questions)b,
"""
    + _ROWS
    + ")"
)

_CLAIM: LiteralString = """
SELECT * FROM {schema}.intermezzo_claim(
    %(call)s, %(number)s, %(claim)s, %(agent)s, %(given)b::text[], %(modes)b::text[], %(lease)s)
"""

_FLUSH: LiteralString = (
    """
SELECT 1 WHERE {schema}.intermezzo_flush(
    %(call)s, %(number)s, %(claim)s, %(answers)s,
"""
    + _ROWS
    + ")"
)

_FINISH: LiteralString = """
SELECT 1 WHERE {schema}.intermezzo_settle(
    %(call)s, %(number)s, %(claim)s, %(answers)s, %(outcome)b, %(ttl)s)
"""

_NEXT: LiteralString = (
    """
SELECT 1 WHERE {schema}.intermezzo_next(
    %(call)s, %(number)s, %(claim)s, %(answers)s, %(ttl)s,
    %(state)s, %(keys)b::text[], %(modes)b::text[], %(questions)b,
"""
    + _ROWS
    + ")"
)

_REOPEN: LiteralString = (
    """
WITH fence AS (
    UPDATE {schema}.intermezzo_rounds
    SET state = 'asked', claim = NULL, claimed_until = NULL, answers = NULL
    WHERE call_id = %(call)s AND number = %(number)s AND claim = %(claim)s
    RETURNING call_id
)
SELECT {schema}.intermezzo_keep(call_id,
"""
    + _ROWS
    + ") FROM fence"
)

_LAPSE: LiteralString = (
    """
WITH fence AS (
    UPDATE {schema}.intermezzo_rounds
    SET claimed_until = '-infinity', answers = %(answers)s
    WHERE call_id = %(call)s AND number = %(number)s AND claim = %(claim)s
    RETURNING call_id
)
SELECT {schema}.intermezzo_keep(call_id,
"""
    + _ROWS
    + ") FROM fence"
)

_ASK_WITHHELD: LiteralString = """
WITH asked AS (
    UPDATE {schema}.intermezzo_rounds SET state = 'asked'
    WHERE call_id = %(call)s AND number = %(number)s AND state = 'withheld'
    RETURNING call_id
)
UPDATE {schema}.intermezzo_calls SET expires_at = {schema}.intermezzo_now() + %(ttl)s
FROM asked WHERE id = asked.call_id
"""

_RELEASE: LiteralString = """
UPDATE {schema}.intermezzo_rounds
SET state = CASE WHEN answers IS NULL THEN 'asked' ELSE state END,
    claim = CASE WHEN answers IS NOT NULL THEN claim END,
    claimed_until = CASE WHEN answers IS NOT NULL THEN '-infinity'::timestamptz END
WHERE call_id = %(call)s AND number = %(number)s AND claim = %(claim)s
"""

_RENEW_ONE: LiteralString = """
UPDATE {schema}.intermezzo_rounds SET claimed_until = {schema}.intermezzo_now() + %(lease)s
WHERE call_id = %(call)s AND number = %(number)s AND claim = %(claim)s
"""

# A row that somebody else has locked is passed by, so that it keeps no other claim waiting. A claim
# that was given back stays so, when a renewal arrives that was under way.
RENEW: LiteralString = """
WITH held AS (
    SELECT * FROM unnest(%(calls)b::uuid[], %(numbers)b::int4[], %(claims)b::uuid[],
                         %(answers)b::text[]) AS u(call_id, number, claim, answers)
), free AS (
    SELECT r.call_id, r.number, held.answers
    FROM held JOIN {schema}.intermezzo_rounds AS r USING (call_id, number, claim)
    WHERE r.claimed_until > '-infinity'
    FOR UPDATE OF r SKIP LOCKED
), renewed AS (
    UPDATE {schema}.intermezzo_rounds AS r
    SET claimed_until = {schema}.intermezzo_now() + %(lease)s, answers = free.answers::jsonb
    FROM free WHERE r.call_id = free.call_id AND r.number = free.number
    RETURNING r.claim
)
SELECT r.claim, r.claim IN (SELECT claim FROM renewed) AS renewed
FROM held JOIN {schema}.intermezzo_rounds AS r USING (call_id, number, claim)
"""


class Store:
    """A small pool of connections to one database, opened at the first use, one per event loop.

    Args:
        conninfo: a libpq connection string or URI, or what tells the newest one, which may take a
            while: each new connection asks it, and those that there are live on.
        schema: where the tables are.
        max_size: connections at most, per process and event loop.
        timeout: seconds to wait for a free connection, or for a new one.
        patience: seconds to wait for what a statement leads to.
    """

    def __init__(
        self,
        conninfo: str | Callable[[], str],
        *,
        schema: str = "public",
        max_size: int = 4,
        timeout: float = 5.0,
        patience: float = 10.0,
    ) -> None:
        self.schema = schema
        self._conninfo = conninfo
        # Of its own: nodes that wait for the database must not keep it from being found.
        self._finding = ThreadPoolExecutor(1, thread_name_prefix="conninfo")
        self._max_size = max_size
        self._timeout = timeout
        self._patience = patience
        self._pools: WeakKeyDictionary[
            asyncio.AbstractEventLoop, AsyncConnectionPool[AsyncConnection[DictRow]]
        ] = WeakKeyDictionary()
        self._statements: dict[LiteralString, bytes] = {}

    def statement(self, sql: LiteralString) -> bytes:
        """The statement with its schema filled in."""
        if (filled := self._statements.get(sql)) is None:
            filled = SQL(sql).format(schema=Identifier(self.schema)).as_bytes()
            self._statements[sql] = filled
        return filled

    def conninfo(self) -> str:
        """The connection string as it is now, which says how long connecting may take."""
        given = self._conninfo if isinstance(self._conninfo, str) else self._conninfo()
        if conninfo_to_dict(given).get("connect_timeout") is not None:
            return given
        return make_conninfo(given, connect_timeout=math.ceil(self._timeout))

    async def _found(self) -> str:
        if isinstance(self._conninfo, str):
            return self.conninfo()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._finding, self.conninfo)

    async def close(self) -> None:
        """Close this event loop's connections."""
        if pool := self._pools.pop(asyncio.get_running_loop(), None):
            await pool.close()

    async def pause(
        self,
        call: UUID,
        agent: str,
        asking: Asking,
        rows: Rows,
        *,
        ttl: timedelta,
        metadata: bytes | None = None,
    ) -> None:
        """Store a call that waits at its first round."""
        parameters = {
            "agent": agent,
            "metadata": metadata,
            "ttl": ttl,
            "call": call,
            **_asking(asking),
            **_stored(rows),
        }

        async def write(connection: AsyncConnection[DictRow]) -> None:
            # It is there when a connection broke on the way back from the first try.
            with suppress(errors.UniqueViolation):
                await connection.execute(self.statement(_PAUSE), parameters)

        await self._retried(write)

    async def claim(
        self,
        claim: Claim,
        agent: str,
        *,
        given: Sequence[str],
        modes: Sequence[str],
        lease: timedelta,
    ) -> Seen | None:
        """Claim a round if it is free and all its keys are given, and see it either way.

        None: no such round, or its call has expired.
        """
        parameters = {
            "call": claim.call,
            "number": claim.number,
            "claim": claim.id,
            "agent": agent,
            # No stored key holds NUL, which PostgreSQL can't either.
            "given": [key for key in given if "\0" not in key],
            "modes": list(modes),
            "lease": lease,
        }

        sent = False

        async def attempt(connection: AsyncConnection[DictRow]) -> Seen | None:
            nonlocal sent
            sent = True
            cursor = await connection.execute(self.statement(_CLAIM), parameters, binary=True)
            row = await cursor.fetchone()
            return None if row is None else _seen(row)

        try:
            # A second try with the same claim finds the round as the first left it.
            return await self._retried(attempt)
        except StoreError:
            if sent:  # it may have been made all the same
                await self.release(claim)
            raise

    async def flush(self, claim: Claim, answers: dict[str, str], rows: Rows) -> None:
        """Make the rows durable, and the answers known as those that the run goes on with.

        Raises:
            ClaimLost: nothing was written.
        """
        parameters = {"answers": Jsonb(answers), **_stored(rows)}
        try:
            await self._fenced(_FLUSH, claim, parameters)
        except Interrupted:  # what was done is done again
            await self._fenced(_FLUSH, claim, parameters)

    async def finish(
        self, claim: Claim, answers: dict[str, str], outcome: bytes, *, ttl: timedelta
    ) -> None:
        """Settle a round that ended the call.

        Raises:
            ClaimLost: nothing was written.
        """
        await self._fenced(
            _FINISH, claim, {"answers": Jsonb(answers), "outcome": outcome, "ttl": ttl}
        )

    async def next(
        self,
        claim: Claim,
        answers: dict[str, str],
        asking: Asking,
        rows: Rows,
        *,
        withheld: bool,
        ttl: timedelta,
    ) -> None:
        """Settle a round that led to the next one, which nobody may see yet when it is withheld.

        Raises:
            ClaimLost: nothing was written.
        """
        parameters = {
            "answers": Jsonb(answers),
            "ttl": ttl,
            "state": "withheld" if withheld else "asked",
            **_asking(asking),
            **_stored(rows),
        }
        await self._fenced(_NEXT, claim, parameters)

    async def reopen(self, claim: Claim, rows: Rows) -> None:
        """Give the claim back, as if nobody had answered; the rows of finished nodes stay.

        Raises:
            ClaimLost: nothing was written.
        """
        await self._given_back(_REOPEN, claim, _stored(rows))

    async def lapse(self, claim: Claim, answers: dict[str, str], rows: Rows) -> None:
        """Give the claim back; from now on only these answers go on.

        Raises:
            ClaimLost: nothing was written.
        """
        parameters = {"answers": Jsonb(answers), **_stored(rows)}
        await self._given_back(_LAPSE, claim, parameters)

    async def release(self, claim: Claim) -> None:
        """Give a claim back under which nothing happened, if it was made at all."""
        with suppress(StoreError):  # then it lapses by itself
            await self._given_back(_RELEASE, claim, {})

    async def renew(self, claim: Claim, *, lease: timedelta) -> None:
        """Let a claim last for another lease, though nothing has happened under it yet.

        Raises:
            ClaimLost: another claim stands on the round.
        """
        await self._fenced(_RENEW_ONE, claim, {"lease": lease})

    async def ask_withheld(self, call: UUID, number: int, *, ttl: timedelta) -> None:
        """A withheld round is asked after all, and lives as long as any other."""

        async def write(connection: AsyncConnection[DictRow]) -> None:
            await connection.execute(
                self.statement(_ASK_WITHHELD), {"call": call, "number": number, "ttl": ttl}
            )

        await self._retried(write)

    async def _given_back(
        self, sql: LiteralString, claim: Claim, parameters: dict[str, Any]
    ) -> None:
        try:
            await self._fenced(sql, claim, parameters)
        except Interrupted:
            # A claim that is not there any more was given back by the first try.
            with suppress(ClaimLost):
                await self._fenced(sql, claim, parameters)

    async def _fenced(self, sql: LiteralString, claim: Claim, parameters: dict[str, Any]) -> None:
        """Write under a claim. What may have been done is not tried again here: whoever runs
        under the claim has to know."""

        async def write(connection: AsyncConnection[DictRow]) -> None:
            cursor = await connection.execute(
                self.statement(sql),
                {"call": claim.call, "number": claim.number, "claim": claim.id, **parameters},
            )
            if cursor.rowcount != 1:
                raise ClaimLost("another claim stands on this round")

        try:
            await self._in_time(write)
        except Collided:
            await self._in_time(write)

    async def _retried(self, work: Callable[[AsyncConnection[DictRow]], Awaitable[T]]) -> T:
        """Do the work, once more on another connection when the first one broke."""
        try:
            return await self._in_time(work)
        except (Interrupted, Collided):
            return await self._in_time(work)

    async def _in_time(self, work: Callable[[AsyncConnection[DictRow]], Awaitable[T]]) -> T:
        """Do the work of one statement on a connection."""
        async with self.connection(self._patience) as connection:
            return await work(connection)

    @asynccontextmanager
    async def connection(self, patience: float) -> AsyncGenerator[AsyncConnection[DictRow]]:
        """One connection of the pool, in autocommit mode; the driver's errors become the store's.

        Args:
            patience: seconds after which it is given up, whatever is still to come.

        Raises:
            Unavailable: there was no connection to be had.
            Unholdable: a value is too large for the database, or none that it knows.
            Interrupted: the connection broke.
            StoreError: anything else; where tables are missing, it names the command that makes
                them.
        """
        pool = await self.pool()
        try:
            connection = await pool.getconn()
        except psycopg.OperationalError as error:  # a PoolTimeout is one
            raise Unavailable("the database can't be reached") from error
        giving_up = asyncio.get_running_loop().call_later(patience, hang_up, connection)
        try:
            yield connection
        except _MISSING as error:
            raise StoreError(
                "the database lacks Intermezzo's tables: run `python -m handler migrate`"
            ) from error
        except _COLLISION as error:
            raise Collided("another change was in the way") from error
        except errors.ReadOnlySqlTransaction as error:
            # A server that became a standby: a new connection may find the one that took over.
            await pool.drain()
            raise Unavailable("the database only reads now") from error
        except (errors.ProgramLimitExceeded, errors.DataError) as error:
            raise Unholdable("the database can't hold it") from error
        except psycopg.OperationalError as error:
            if connection.broken or connection.closed:
                raise Interrupted("the connection to the database broke") from error
            raise Unavailable("the database refused") from error
        except psycopg.Error as error:
            raise StoreError("the database failed") from error
        finally:
            giving_up.cancel()
            await pool.putconn(connection)

    async def pool(self) -> AsyncConnectionPool[AsyncConnection[DictRow]]:
        """This event loop's connections, in autocommit mode and without prepared statements."""
        loop = asyncio.get_running_loop()
        if (pool := self._pools.get(loop)) is None:
            # A pool keeps its loop alive, so neither would ever go.
            for over in [each for each in self._pools if each.is_closed()]:
                del self._pools[over]
            pool = _Pool(
                self._found,
                connection_class=AsyncConnection[DictRow],
                kwargs={
                    "autocommit": True,
                    "prepare_threshold": None,
                    "row_factory": dict_row,
                },
                min_size=0,
                max_size=self._max_size,
                timeout=self._timeout,
                # A pool waits for longer after each failure. Begun anew with each request, the
                # wait is never longer than that for a connection.
                reconnect_timeout=self._timeout,
                open=False,
            )
            self._pools[loop] = pool
            await pool.open()
        return pool


class _Pool(AsyncConnectionPool[AsyncConnection[DictRow]]):
    """A pool that hands out no connection that is over.

    The check that pools know waits a second after the second dead connection that it meets; after a
    process was frozen all of them may be dead.
    """

    async def getconn(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the pool's own signature
    ) -> AsyncConnection[DictRow]:
        self._pool.rotate()  # to the front comes what was put back last: its server is warm as well
        while _is_over(connection := await super().getconn(timeout)):
            await connection.close()
            await self.putconn(connection)
        return connection


def hang_up(connection: psycopg.Connection[Any] | AsyncConnection[Any]) -> None:
    """End a connection over which nothing comes: whoever waits on it is told that it broke."""
    with suppress(psycopg.Error, OSError):
        line = socket.socket(fileno=connection.pgconn.socket)
        try:
            line.shutdown(socket.SHUT_RDWR)
        finally:
            line.detach()  # libpq closes it


def _is_over(connection: AsyncConnection[Any]) -> bool:
    """Whether the server ended an idle connection, without a round trip."""
    try:
        # The server's last words come before the end of the line. To poll the socket instead would
        # let a node's thread take the interpreter, and wait for it, at each statement.
        connection.pgconn.consume_input()
        connection.pgconn.consume_input()
    except psycopg.OperationalError:
        return True
    return connection.closed


def _asking(asking: Asking) -> dict[str, Any]:
    return {
        "keys": list(asking.keys),
        "modes": list(asking.modes),
        "questions": asking.questions,
    }


def _stored(rows: Rows) -> dict[str, Any]:
    """Rows as they travel: an array of texts each, and the bytes of all beside them."""
    return {
        "checkpoints": [list(row) for row in rows.checkpoints],
        "blobs": [list(row[:-1]) for row in rows.blobs],
        "blob_bytes": [row[-1] for row in rows.blobs],
        "writes": [[*row[:3], str(row[3]), *row[4:-1]] for row in rows.writes],
        "write_bytes": [row[-1] for row in rows.writes],
    }


_CHECKPOINTS = ("c_ns", "c_id", "c_parent", "c_checkpoint", "c_metadata")
_BLOBS = ("b_ns", "b_channel", "b_version", "b_type", "b_blob")
_WRITES = ("w_ns", "w_id", "w_task", "w_idx", "w_path", "w_channel", "w_type", "w_blob")
"""What a claim loads comes as one array a column."""


def _seen(row: DictRow) -> Seen:
    rows = Rows(
        checkpoints=_taken_out(row, _CHECKPOINTS),
        blobs=_taken_out(row, _BLOBS),
        writes=_taken_out(row, _WRITES),
    )
    return Seen(**row, rows=rows)


def _taken_out(row: DictRow, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows that these columns hold, which are taken out."""
    return list(zip(*(row.pop(name) or () for name in names), strict=True))
