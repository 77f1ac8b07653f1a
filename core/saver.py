"""The state of one call's graph: checkpoints and writes in memory, rows when they must last.

A call that never pauses touches no database and serializes nothing: `CallState` keeps snapshots of
what LangGraph hands over, and turns them into rows of LangGraph's own tables at the first pause.
Once a call is stored, the same buffer is flushed before each node begins (`core.gate`), so that
every finished node is durable before the next one starts, in one round trip.

One saver per call: nothing is shared between calls, so nothing is locked across them. Within a call
a sync node may run a graph in its own thread, so the state is guarded.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from types import CoroutineType
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    writes_sort_key,
)
from langgraph.checkpoint.postgres.base import BasePostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import (
    ERROR,
    _DeltaSnapshot,  # pyright: ignore[reportPrivateUsage] - the saver's own marker for a value
)
from langgraph.errors import is_invalid_resume

from core.plain import dumps
from core.records import Rows
from core.snapshots import snapshot
from core.waiting import Checkpoints, Saved, Typed, Waiting, Write, Writes, newest
from core.work import LoopBlocked, run_in

FLUSH_AFTER = 0.02
"""Seconds that a finished node's writes may wait while a sibling still runs."""

BLOCKED_AFTER = 5.0
"""Seconds after which an event loop that does nothing is taken to wait for the thread that wants to
flush: what finished there is stored later."""

_HANDLED = "__error_source_node__"
"""A write of a task that failed and whose error handler runs in its place."""


class Unstorable(Exception):
    """Something in an agent's state has no stored form; the text names the key and the type."""

    def __init__(self, channel: str, value: Any) -> None:
        super().__init__(
            f'its state can\'t be stored: "{channel}" holds a {type(value).__name__} with a value'
            " that LangGraph can't serialize"
        )


class OtherThread(Exception):
    """A graph in a call asks for the state of another thread, which a call does not keep."""


class RunOver(RuntimeError):
    """A node can't begin, because its run is over.

    A RuntimeError, because LangGraph's default retry policy lets those pass.
    """


class CallState:
    """Everything that LangGraph knows of one call, by namespace.

    Of each namespace only the newest checkpoint is kept, but for a DeltaChannel, whose value is
    spread over a chain; of graphs that nodes called, only those of the newest superstep.

    Args:
        rows: what was loaded of a stored call.
        sink: where finished work goes, once the call is stored; none while it is only in memory.
    """

    def __init__(
        self,
        thread: str,
        serde: SerializerProtocol,
        *,
        rows: Rows | None = None,
        sink: Callable[[Rows], Awaitable[None]] | None = None,
    ) -> None:
        self.thread = thread
        self.serde = serde
        self._sink = sink
        self._lost: Callable[[Exception], None] = lambda error: None
        self._checkpoints: Checkpoints = {}
        self._writes: Writes = {}
        self.waiting = Waiting(self._checkpoints, self._writes, serde)
        self._blobs: dict[tuple[str, str, str], Typed] = {}
        self._stored_blobs: set[tuple[str, str, str]] = set()
        self._dirty = False
        self._guard = threading.RLock()
        self.loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._blocked = False
        self._over: Exception | None = None
        self._flushing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._flushes: set[asyncio.Task[None]] = set()
        if rows is not None:
            self._load(rows)

    def _load(self, rows: Rows) -> None:
        for ns, id, parent, checkpoint, metadata in rows.checkpoints:
            self._checkpoints.setdefault(ns, {})[id] = Saved(
                parent, json.loads(checkpoint), json.loads(metadata), loaded=True, durable=True
            )
        for ns, chain in self._checkpoints.items():
            in_order = sorted(chain, key=lambda id, chain=chain: chain[id].metadata.get("step", -2))
            self._checkpoints[ns] = {id: chain[id] for id in in_order}
        for ns, channel, version, type_, blob in rows.blobs:
            self._blobs[ns, channel, version] = (type_, bytes(blob))
        self._stored_blobs.update(self._blobs)
        for ns, id, task, idx, path, channel, type_, blob in rows.writes:
            self._writes.setdefault((ns, id), {})[task, idx] = Write(
                channel, path, (type_, bytes(blob)), loaded=True, durable=True
            )

    # What LangGraph puts in and reads.

    def put(
        self,
        ns: str,
        parent: str | None,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
    ) -> None:
        """Keep a checkpoint, and forget those that it makes useless."""
        # The next node gets these very objects, and may change them before it asks.
        kept: Checkpoint = {**checkpoint, "channel_values": snapshot(checkpoint["channel_values"])}
        saved = Saved(parent, kept, metadata, loaded=False, durable=False)
        with self._guard:
            chain = self._checkpoints.setdefault(ns, {})
            if "counters_since_delta_snapshot" not in metadata:
                for id in chain:
                    if id != checkpoint["id"]:
                        self._writes.pop((ns, id), None)
                chain.clear()
            chain[checkpoint["id"]] = saved
            self._dirty = True
            if not ns:
                self._forget_calls(root=checkpoint["id"])

    def _forget_calls(self, *, root: str) -> None:
        """Drop what graphs kept that nodes of earlier supersteps called: no task will read it."""
        for ns, chain in list(self._checkpoints.items()):
            parents = chain[newest(chain)].metadata.get("parents", {})
            if ":" in ns and parents.get("") != root:
                for id in self._checkpoints.pop(ns):
                    self._writes.pop((ns, id), None)

    def put_writes(
        self, ns: str, id: str, writes: Sequence[tuple[str, Any]], task: str, path: str
    ) -> None:
        """Keep a task's writes: an ordinary one stays as first put, a control one is replaced."""
        if any(channel == ERROR for channel, _ in writes):
            writes = self._of_failure(writes)
        replace = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        with self._guard:
            kept = self._writes.setdefault((ns, id), {})
            for position, (channel, value) in enumerate(writes):
                key = (task, WRITES_IDX_MAP.get(channel, position))
                if key in kept and not replace:
                    continue
                kept[key] = Write(channel, path, value, loaded=False, durable=False)
                self._dirty = True
        if self._sink is not None:
            self.loop.call_soon_threadsafe(self._arm)

    def _of_failure(self, writes: Sequence[tuple[str, Any]]) -> Sequence[tuple[str, Any]]:
        """What a task that did not finish leaves."""
        if self._over is not None:
            return ()  # it could not go on because its run is over: it did not fail
        if any(channel == _HANDLED for channel, _ in writes):
            return writes
        # An output would pass for that of a task that finished, and LangGraph would go on as if it
        # had; an answer that was refused is no failure at all.
        return [
            (channel, value)
            for channel, value in writes
            if channel in WRITES_IDX_MAP and not (channel == ERROR and is_invalid_resume(value))
        ]

    def _arm(self) -> None:
        if self._sink is not None and self._timer is None and self._dirty:
            self._timer = self.loop.call_later(FLUSH_AFTER, self._flush_soon)

    def get(self, ns: str, id: str | None, serde: SerializerProtocol) -> CheckpointTuple | None:
        """A copy of the newest checkpoint of a namespace, or of the one asked for."""
        with self._guard:
            chain = self._checkpoints.get(ns, {})
            if not chain or (id is not None and id not in chain):
                return None
            id = id if id is not None else newest(chain)
            return self._tuple(ns, id, chain[id], serde)

    def _tuple(self, ns: str, id: str, saved: Saved, serde: SerializerProtocol) -> CheckpointTuple:
        checkpoint = self._copy(ns, saved, serde)
        return CheckpointTuple(
            config=self._config(ns, id),
            checkpoint=checkpoint,
            metadata={**saved.metadata},
            parent_config=None if saved.parent is None else self._config(ns, saved.parent),
            pending_writes=[
                (
                    task,
                    write.channel,
                    serde.loads_typed(write.value) if write.loaded else write.value,
                )
                for (task, _), write in self._ordered(ns, id)
            ],
        )

    def _copy(self, ns: str, saved: Saved, serde: SerializerProtocol) -> Checkpoint:
        checkpoint = saved.checkpoint
        versions = checkpoint["channel_versions"]
        values = snapshot(checkpoint["channel_values"])
        if saved.loaded:
            for channel, version in versions.items():
                if (blob := self._blobs.get((ns, channel, str(version)))) and blob[0] != "empty":
                    values[channel] = serde.loads_typed(blob)
        return {
            **checkpoint,
            "channel_values": values,
            "channel_versions": dict(versions),
            "versions_seen": {
                node: dict(seen) for node, seen in checkpoint["versions_seen"].items()
            },
        }

    def _ordered(self, ns: str, id: str) -> list[tuple[tuple[str, int], Write]]:
        writes = self._writes.get((ns, id), {})
        return sorted(
            writes.items(), key=lambda item: writes_sort_key(item[1].path, item[0][0], item[0][1])
        )

    def _config(self, ns: str, id: str) -> RunnableConfig:
        return {
            "configurable": {
                "thread_id": self.thread,
                "checkpoint_ns": ns,
                "checkpoint_id": id,
            }
        }

    def used_by_sync_call(self) -> None:
        """Note a graph that is run by a sync call, which may be one that blocks the event loop."""
        if threading.get_ident() == self._loop_thread and not self._blocked:
            self._block()

    def _block(self) -> None:
        """Wait for nothing that the event loop would have to do, until it does something again."""
        self._blocked = True
        self.loop.call_soon_threadsafe(self._unblocked)

    def _unblocked(self) -> None:
        self._blocked = False

    # Rows.

    def rows(self) -> Rows:
        """What is not durable yet, serialized.

        Raises:
            Unstorable: something has no stored form.
        """
        with self._guard:
            return self._collect()[0]

    def _collect(self) -> tuple[Rows, list[Saved | Write]]:
        checkpoints: list[tuple[Any, ...]] = []
        blobs: dict[tuple[str, str, str], tuple[Any, ...]] = {}
        writes: list[tuple[Any, ...]] = []
        taken: list[Saved | Write] = []
        for ns, chain in self._checkpoints.items():
            for id, saved in chain.items():
                if not saved.durable:
                    taken.append(saved)
                    values, kept = self._split(ns, saved.checkpoint)
                    blobs.update(kept)
                    body = {**saved.checkpoint, "channel_values": values}
                    checkpoints.append((ns, id, saved.parent, dumps(body), dumps(saved.metadata)))
        for (ns, id), tasks in self._writes.items():
            for (task, idx), write in tasks.items():
                if not write.durable:
                    taken.append(write)
                    typed = self._typed(write.channel, write.value)
                    writes.append((ns, id, task, idx, write.path, write.channel, *typed))
        rows = Rows(checkpoints=checkpoints, blobs=list(blobs.values()), writes=writes)
        return rows, taken

    def _split(
        self, ns: str, checkpoint: Checkpoint
    ) -> tuple[dict[str, Any], dict[tuple[str, str, str], tuple[Any, ...]]]:
        """The values that go inline as JSON, and those that go to blobs, as LangGraph does it."""
        inline: dict[str, Any] = {}
        blobs: dict[tuple[str, str, str], tuple[Any, ...]] = {}
        for channel, value in checkpoint["channel_values"].items():
            if _fits_jsonb(value):
                inline[channel] = value
                continue
            if isinstance(value, _DeltaSnapshot):
                inline[channel] = True
            version = str(checkpoint["channel_versions"][channel])
            key = (ns, channel, version)
            if key not in self._stored_blobs:
                blobs[key] = (ns, channel, version, *self._typed(channel, value))
        return inline, blobs

    def flush_from_thread(self) -> None:
        """Flush, on behalf of a node that a sync node runs in its thread, and wait for it.

        A graph that an async node runs with `invoke` holds up the event loop, so nothing can be
        flushed until it ends.

        Raises:
            Exception: as `flush`.
        """
        if threading.get_ident() == self._loop_thread:
            return
        if self._over is not None:
            raise self._over
        if self._sink is not None and not self._blocked:
            try:
                run_in(self.loop, self.flush, patience=BLOCKED_AFTER)
            except LoopBlocked:
                self._block()

    def on_loss(self, tell: Callable[[Exception], None]) -> None:
        """Whom to tell when a flush fails, whether or not somebody waits for it."""
        self._lost = tell

    def _typed(self, channel: str, value: Any) -> Typed:
        try:
            return self.serde.dumps_typed(value)
        except Exception as error:
            raise Unstorable(channel, value) from error

    async def flush(self, *, needed: bool = True) -> None:
        """Make everything that was put durable, before this returns.

        Args:
            needed: whether the run can't go on without. What has no stored form need not have one
                when the call ends before.

        Raises:
            StoreError: it did not become durable; the run must not go on.
            Unstorable: something has no stored form.
            RunOver: the run is over.
        """
        async with self._flushing:
            if self._over is not None:
                raise self._over
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._sink is None or not self._dirty:
                return
            self._dirty = False
            try:
                with self._guard:
                    rows, taken = self._collect()
                await self._sink(rows)
            except BaseException as error:
                self._dirty = True
                if isinstance(error, Unstorable) and not needed:
                    pass  # the next node, or the next round, will need it
                elif isinstance(error, Exception):
                    self.end(error)
                    self._lost(error)
                else:
                    self._arm()  # a node whose time was up waited here, and its run goes on
                raise
            for each in taken:
                each.durable = True
            self._stored_blobs.update((ns, name, version) for ns, name, version, *_ in rows.blobs)

    def _flush_soon(self) -> None:
        task = self.loop.create_task(self.flush(needed=False))
        self._flushes.add(task)
        task.add_done_callback(self._flushed)

    def _flushed(self, task: asyncio.Task[None]) -> None:
        self._flushes.discard(task)
        if not task.cancelled():
            task.exception()  # told already

    def end(self, reason: Exception) -> None:
        """Let nothing of the run begin any more; the first reason counts."""
        if self._over is None:
            self._over = reason

    async def close(self) -> None:
        """End the run: let flushes that are under way end, and start no more."""
        self.end(RunOver("the run is over"))
        self._sink = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._flushes:
            await asyncio.wait(self._flushes)


class CallSaver(BasePostgresSaver):
    """LangGraph's view of a `CallState`.

    A saver of its own for each call: LangGraph's takes one lock around everything that goes through
    it. LangGraph copies a saver to give it the graph's own types to load; the copies share the
    state.
    """

    def __init__(self, state: CallState) -> None:
        self.serde = state.serde  # all that the base would do, which first looks at its type
        self.state = state

    def _namespace(self, config: RunnableConfig) -> str:
        """Where a graph of this call keeps its state.

        Raises:
            OtherThread: it has a thread of its own, at whose root it would be taken for the call.
        """
        configurable = _configurable(config)
        namespace: str = configurable.get("checkpoint_ns", "")
        if not namespace and configurable.get("thread_id") != self.state.thread:
            raise OtherThread("a graph that a node runs can't have a thread of its own here")
        return namespace

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.state.get(self._namespace(config), get_checkpoint_id(config), self.serde)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        self.state.used_by_sync_call()
        return self.state.get(self._namespace(config), get_checkpoint_id(config), self.serde)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The newest checkpoint alone: a call keeps no history."""
        if config is not None and before is None and (found := await self.aget_tuple(config)):
            yield found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        if config is not None and before is None and (found := self.get_tuple(config)):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        kept = self._put(config, checkpoint, metadata)
        # Code of a node follows on the end of a graph that it called, and no gate stands between.
        if self._namespace(kept):
            await self.state.flush()
        return kept

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        kept = self._put(config, checkpoint, metadata)
        if self._namespace(kept):
            self.state.flush_from_thread()
        return kept

    def _put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> RunnableConfig:
        # LangGraph's own keys only: of the configuration, which other savers copy into the
        # metadata, nothing is kept.
        ns = self._namespace(config)
        self.state.put(ns, _configurable(config).get("checkpoint_id"), checkpoint, metadata)
        return {
            "configurable": {
                "thread_id": self.state.thread,
                "checkpoint_ns": ns,
                "checkpoint_id": checkpoint["id"],
            }
        }

    def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> "CoroutineType[Any, Any, None]":
        """Keep a task's writes now. LangGraph lets what is awaited wait its turn among the nodes
        that `max_concurrency` holds back, and the next one would begin before these are kept."""
        self.put_writes(config, writes, task_id, task_path)
        return _nothing()

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        id: str = _configurable(config)["checkpoint_id"]
        self.state.put_writes(self._namespace(config), id, writes, task_id, task_path)


async def _nothing() -> None:
    """What is left to await."""


def _configurable(config: RunnableConfig) -> dict[str, Any]:
    return config.get("configurable", {})


def _fits_jsonb(value: object) -> bool:
    """Whether a value comes back from JSONB as it was; if not, it goes to a blob.

    JSONB has no NUL and no NaN. Its numbers know neither exponents nor a sign of zero: 1e16 would
    come back as an integer. And a member of a `StrEnum` is a string to JSON.
    """
    if type(value) is str:
        return "\0" not in value and not any("\ud800" <= c <= "\udfff" for c in value)
    if type(value) is float:
        text = repr(value)
        return text != "-0.0" and not set(text) & set("einf")
    return value is None or type(value) is int or type(value) is bool
