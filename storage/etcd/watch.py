"""Watches over etcd: a stream for each, opened again where it broke off.

Knows etcd's watch messages. Policy: a watch goes on after every fault, from the revision up to which its reader has everything; it ends
only when that is impossible (Compacted), refused (Unavailable), or the store is closed. The bounded queue between etcd and a reader is
the flow-control window of its stream: etcd holds back what a slow reader has no room for.

Each watch has a stream of its own. On a shared one, etcd answers a progress request for all watches together, and the answer can
overtake the announcement of a watch that it does not cover; and one watch that is catching up holds back the progress of the others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from storage.errors import Compacted, StoreClosed, Unavailable
from storage.etcd.calls import Call, CallError, StatusCode, StreamEnded
from storage.etcd.connection import Connection, Epoch
from storage.etcd.failures import is_stale_token, text_of
from storage.etcd.link import WATCH, Link
from storage.etcd.messages import EVENT_DELETE, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse
from storage.keys import prefix_end
from storage.store import Event, Progress, WatchBatch

_PROGRESS_REQUEST = WatchRequest(progress_request=WatchProgressRequest()).SerializeToString()
# etcd does not answer a progress request while the watch is catching up, which it looks at ten times a second.
_ASK_AGAIN_SECONDS = 0.05
# One that is not prompt (see `Link.prompt_progress`) is asked when it has had time to catch up, and begins anew when it has not answered
# for so long; both are doubled then, since it may have much to look through.
_CATCH_UP_SECONDS = 0.2
_ANSWER_SECONDS = 0.5
_BATCH = 1000
"""How much is passed on together at most: some milliseconds of decoding."""
_RETRY_SECONDS = (0.05, 0.25, 0.5, 1.0)


class Watches:
    """All watches of one store, so that they can be asked for their progress and be cut."""

    def __init__(self, connection: Connection, key_prefix: bytes, *, progress_seconds: float) -> None:
        self._connection = connection
        self._key_prefix = key_prefix
        self._progress_seconds = progress_seconds
        self._open: set[_Watch] = set()

    async def watch(self, prefix: str, after_revision: int) -> AsyncIterator[WatchBatch]:
        """Deliver as `Store.watch` promises."""
        watch = _Watch(self._connection, self._key_prefix, prefix, after_revision, progress_seconds=self._progress_seconds)
        self._open.add(watch)
        failures = 0
        try:
            while (link := await self._patient_link()) is not None:
                try:
                    watch.begin(link)
                    while True:
                        batch = await watch.read()
                        failures = 0
                        yield batch
                except CallError as error:
                    await self._recover(link, error)
                except StreamEnded:
                    pass  # etcd ended it without a reason, or it was cut
                watch.end()
                await self._pause(failures)
                failures += 1
        finally:
            self._open.discard(watch)
            watch.end()

    def want(self, revision: int) -> None:
        """Have every watch that is behind `revision` (etcd's) find out that it is there."""
        for watch in self._open:
            watch.want(revision)

    def cut(self) -> None:
        """Break every stream off, so that its watch looks again at what has become of etcd and of the store."""
        for watch in self._open:
            watch.cut()

    async def _patient_link(self) -> Link | None:
        """Return a link, however long it takes; None when the store has been closed."""
        failures = 0
        while True:
            try:
                return await self._connection.link()
            except Unavailable:
                failures += 1
                await self._pause(failures)
            except StoreClosed:
                return None

    async def _recover(self, link: Link, error: CallError) -> None:
        if is_stale_token(error.details):
            await _renew_token(self._connection, link)
        elif error.code is StatusCode.PERMISSION_DENIED:
            raise Unavailable(text_of(error)) from error
        else:
            self._connection.lose(link, error)

    async def _pause(self, failures: int) -> None:
        if failures:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_SECONDS[min(failures, len(_RETRY_SECONDS)) - 1]):
                    await self._connection.closed.wait()


class _Watch:
    """Where one reader is, and the stream that brings it further. Revisions in here are etcd's."""

    def __init__(self, connection: Connection, key_prefix: bytes, prefix: str, after_revision: int, *, progress_seconds: float) -> None:
        self._connection = connection
        self._after_revision = after_revision
        self._progress_seconds = progress_seconds
        end = prefix_end(prefix)
        self._key = key_prefix + prefix.encode()
        self._range_end = b"\0" if end is None else key_prefix + end.encode()
        self._cut_bytes = len(key_prefix)
        self._epoch: Epoch | None = None
        self._position = 0
        self._link: Link | None = None
        self._call: Call | None = None
        self._reading = False
        self._put_off = False
        self._ahead = False
        self._needs_progress = False
        self._fragments: list[Any] = []
        self._wanted = 0
        self._prompter: asyncio.TimerHandle | None = None
        self._pressing = False
        self._prompt_progress = True
        self._asking = False
        self._asked_at: float | None = None
        self._patience = 1

    def begin(self, link: Link) -> None:
        """Open a stream that goes on from the position.

        Raises:
            Compacted: revisions have another meaning now than when the watch began, or the first one is too old for good.
            CallError: the link takes no more streams.
        """
        epoch = self._connection.epoch
        if self._epoch is None:
            self._epoch, self._position = epoch, self._after_revision - epoch.offset
        shown = self._position + self._epoch.offset
        if epoch is not self._epoch or shown < epoch.floor:
            raise Compacted(shown, max(epoch.floor, self._connection.highest_revision + epoch.offset))
        self._link, self._fragments, self._prompt_progress = link, [], link.prompt_progress
        # A watch that begins after the newest revision is live at once; any other one has to catch up first, for a tenth of a second or
        # more, and a compaction may overtake it. But etcd tells it nothing of its progress until the next write, wherever that is.
        # One that begins in the past does so with what it has: etcd compares the compaction revision with where a watch begins, and a
        # deletion at the compaction revision itself may be gone. What comes again is dropped.
        newest = self._connection.highest_revision
        self._ahead = self._position >= newest and not self._needs_progress
        self._needs_progress = False
        start_revision = self._position + 1 if self._ahead else max(1, min(self._position, newest))
        create = WatchCreateRequest(
            key=self._key,
            range_end=self._range_end,
            start_revision=start_revision,
            fragment=True,
        )
        self._call = link.stream(WATCH, WatchRequest(create_request=create))

    async def read(self) -> WatchBatch:
        """Return what has come, at least one item: whatever etcd sends together is passed on together.

        Raises:
            CallError, StreamEnded: nothing more; a stream may be begun again.
            Compacted, Unavailable: no stream will be any better.
        """
        assert self._call is not None
        batch: list[Event | Progress] = []
        while not batch or (self._call.has_message and len(batch) < _BATCH):
            batch += await self._take(self._call)
        return tuple(batch)

    async def _take(self, call: Call) -> WatchBatch:
        """Return what the next message brings; often nothing."""
        self._reading = True
        if self._put_off:
            self._put_off = False
            self._ask()
        response = WatchResponse.FromString(await call.read())
        self._reading = False
        revision = response.header.revision
        if revision > self._connection.highest_revision:
            self._connection.highest_revision = revision
        if response.canceled:
            await self._canceled(response)
            # Not by raising: events that came before it may be about to be passed on.
            self.cut()
            return ()
        if response.created:
            if self._ahead or self._prompt_progress:
                self._begin_to_ask()
            else:
                delay_seconds = _CATCH_UP_SECONDS * self._patience
                self._prompter = asyncio.get_running_loop().call_later(delay_seconds, self._begin_to_ask)
            return ()
        self._ahead = False
        self._asked_at, self._patience = None, 1
        if response.events or self._fragments:
            self._fragments.extend(response.events)
            return () if response.fragment else self._events()
        if revision < self._position:
            return ()
        self._position = revision
        return (Progress(revision + self._offset),)

    def want(self, revision: int) -> None:
        """Have it find out soon that all up to `revision` has been delivered."""
        if self._position >= revision:
            return
        self._wanted = revision
        if self._asking:
            self._ask()
            if not self._pressing:
                self._wait()

    def cut(self) -> None:
        """Make `read` raise StreamEnded, now or when it is called."""
        if self._call is not None:
            self._call.cancel()

    def end(self) -> None:
        """Close the stream; what was not delivered comes again with the next one."""
        if self._prompter is not None:
            self._prompter.cancel()
            self._prompter = None
        self._asking, self._asked_at = False, None
        self.cut()
        self._call = None

    @property
    def _offset(self) -> int:
        return 0 if self._epoch is None else self._epoch.offset

    def _events(self) -> WatchBatch:
        offset, cut, position = self._offset, self._cut_bytes, self._position
        events: list[Event] = []
        for event in self._fragments:
            kv = event.kv
            revision = kv.mod_revision
            if revision <= position:
                continue
            events.append(Event(revision + offset, kv.key[cut:].decode(), None if event.type == EVENT_DELETE else kv.value))
        self._fragments = []
        if events:
            self._position = events[-1].revision - offset
        return tuple(events)

    async def _canceled(self, response: Any) -> None:
        """Find out what the end of a watch by etcd means.

        Raises:
            Compacted, Unavailable: no stream will be any better.
        """
        reason, compact_revision = response.cancel_reason, response.compact_revision
        if compact_revision:
            # A begin below the position, since the newest revision was not known, may be too old when the position is not.
            self._connection.highest_revision = max(self._connection.highest_revision, compact_revision)
            if self._position < compact_revision:
                raise Compacted(self._position + self._offset, compact_revision + self._offset)
        elif is_stale_token(reason) and self._link is not None:
            await _renew_token(self._connection, self._link)
        elif "permission denied" in reason:
            raise Unavailable(f"etcd: {reason}: the etcd user has no read permission for {self._key.decode()}")

    def _begin_to_ask(self) -> None:
        self._asking = True
        self._wait()
        self.want(self._wanted)

    def _wait(self) -> None:
        """Be prompted in a few seconds, or soon if somebody waits."""
        if self._prompter is not None:
            self._prompter.cancel()
        self._pressing = self._position < self._wanted
        delay_seconds = _ASK_AGAIN_SECONDS if self._pressing else self._progress_seconds
        self._prompter = asyncio.get_running_loop().call_later(delay_seconds, self._prompt)

    def _prompt(self) -> None:
        """Ask again, if the answer has not come or the watch has been quiet for long."""
        if self._ahead and not self._pressing:
            self._needs_progress = True
            self.cut()
            return
        if not self._prompt_progress and self._has_asked_in_vain():
            self._patience *= 2
            self.cut()
            return
        if not self._pressing or self._position < self._wanted:
            self._ask()
        self._wait()

    def _has_asked_in_vain(self) -> bool:
        return self._asked_at is not None and asyncio.get_running_loop().time() - self._asked_at > _ANSWER_SECONDS * self._patience

    def _ask(self) -> None:
        """Ask for progress, as soon as the reader is there to take it."""
        if self._reading and self._call is not None:
            self._call.write(_PROGRESS_REQUEST)
            if self._asked_at is None:
                self._asked_at = asyncio.get_running_loop().time()
        else:
            self._put_off = True


async def _renew_token(connection: Connection, link: Link) -> None:
    with contextlib.suppress(CallError):
        await connection.renew_token(link, link.token)
