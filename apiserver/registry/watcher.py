"""One client that watches: where it stands, and what it is sent for itself alone.

Initial and missed events are sent by its own task, in pieces and as fast as the connection takes them; while it keeps up, the writes for
its whole group reach it (`watching.py`). Knows connections as asyncio transports only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.registry import unreadable
from apiserver.registry.deflated import GZIP_HEAD, GzipSum
from apiserver.registry.frames import ADDED, Framing, Pack, chunk
from apiserver.registry.listing import parse_revision
from storage.errors import FutureRevision

if TYPE_CHECKING:
    from apiserver.meta import errors
    from apiserver.meta.options import ListOptions
    from apiserver.registry.stored_object import StoredObject
    from apiserver.registry.watch_group import Group
    from apiserver.registry.watching import Watches


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """What a watcher may cost."""

    buffer_bytes: int = 128 * 1024
    """Unsent data of a connection above which it gets no further events until it has caught up. With one piece, or the events of one turn,
    on top this bounds the memory of a watcher."""
    piece_bytes: int = 64 * 1024
    """Size of the pieces in which initial and missed events are sent."""
    stall_seconds: float = 60.0
    """How long a connection that has fallen behind may take nothing at all before it is cut."""
    bookmark_seconds: float = 60.0
    """Time between bookmarks, as in kube-apiserver."""
    step_seconds: float = 0.004
    """How long events are written before others get their turn on the event loop. What an answer waits for is a few such steps."""
    rest_ratio: float = 1.0
    """After events have been written, none are for this many times as long as that took: many watchers cannot take more than their share of
    the event loop, and what comes together meanwhile goes out in one write, which is what a delivery costs. 0: no pause."""
    rest_seconds_max: float = 0.05
    """The longest such pause, and so what it can add to the latency of an event."""
    changes_per_step: int = 1024
    """Past changes looked at before others get their turn."""


@dataclass(frozen=True, slots=True)
class Outlet:
    """The client's end of a watch."""

    transport: asyncio.WriteTransport
    drain: Callable[[], Awaitable[None]]
    """Returns when the transport wants more data."""
    framing: Framing = "chunked"


class Watcher:
    """One client. Its task sends it initial and missed events; while it keeps up, the task sleeps and the group's writes reach it."""

    __slots__ = (
        "_bookmark_timer",
        "_bookmarks",
        "_drain",
        "_limits",
        "_sum",
        "_waker",
        "_watches",
        "deadline",
        "group",
        "headers_due",
        "home",
        "position",
        "transport",
    )

    def __init__(self, watches: Watches, group: Group, outlet: Outlet, *, bookmarks: bool) -> None:
        self._watches = watches
        self._limits = watches.limits
        self._drain = outlet.drain
        self._bookmarks = bookmarks
        self._waker: asyncio.Future[None] | None = None
        self._bookmark_timer: asyncio.TimerHandle | None = None
        self._sum = GzipSum() if outlet.framing == "gzip" else None
        self.transport = outlet.transport
        self.home = group
        self.group: Group | None = None
        """The home group while this watcher is a member of it."""
        self.position = 0
        """Up to this revision everything has been sent; while a member, the revision at which it joined."""
        self.headers_due = group.frames.has_headers
        self.deadline: float | None = None

    async def start(self, options: ListOptions) -> None:
        """Find where to begin, and send what exists if that was asked for.

        Raises:
            StoreError: the beginning cannot be had.
            APIError: 500, something cannot be read.
        """
        cache = self._watches.store.cache
        revision = parse_revision(options.resource_version)
        if options.resource_version == "":
            revision = await cache.fresh()
        elif revision == 0:
            revision = cache.revision
        # Who asks in the old way, without a version and without the option, gets what exists too.
        legacy = options.send_initial_events is None and options.resource_version in ("", "0")
        if not (options.send_initial_events or legacy):
            cache.check_known(revision)
            self.position = revision
            return
        await cache.until(revision)
        await self._watches.store.turns.next()
        snapshot = cache.snapshot()
        selection, codec = self.home.selection, self._watches.store.codec
        if selection.is_single:
            found = snapshot.get(codec.key(selection.namespace, selection.name or ""))
            if found is not None:
                self._watches.store.check_readable([found])
            if found is not None and selection.matches(found):
                await self._send_added([found])
        else:
            everything, prefix = selection.is_everything, codec.prefix(selection.namespace)
            self._watches.store.check_readable(snapshot.iterate(prefix))
            for block in snapshot.blocks(prefix):
                if everything and (pack := self.home.frames.added(block)) is not None:
                    self.write((pack,))
                    self._watches.sent([len(obj.wire) for obj in block.entries], 1)
                    await self._drained()
                else:
                    await self._send_added(block.entries if everything else [obj for obj in block.entries if selection.matches(obj)])
        self.position = snapshot.revision
        if self._bookmarks:
            self._send(self.home.frames.bookmark(snapshot.revision, initial_events_end=True, headers=self.headers_due))

    async def _send_added(self, objects: Sequence[StoredObject]) -> None:
        lines: list[bytes] = []
        size = 0
        for obj in objects:
            line = self.home.frames.event(ADDED, obj, headers=self.headers_due)
            self.headers_due = False
            lines.append(line)
            size += len(line)
            if size >= self._limits.piece_bytes:
                self._send(*lines)
                lines, size = [], 0
                await self._drained()
        if lines:
            self._send(*lines)
            del lines
        await self._drained()

    async def catch_up(self) -> None:
        """Send the changes since `position`, and become a member of the group in the very step in which there are no more.

        Raises:
            Compacted: the history has moved on.
            APIError: 500, something cannot be read.
        """
        store = self._watches.store
        cache = store.cache
        while True:
            if self.position > cache.revision:
                # Nothing at or below a revision that is yet to come is sent.
                await self._reach(self.position)
            changes = cache.changes_after(self.position, limit=self._limits.changes_per_step)
            if not changes:
                self.position = cache.revision
                self.group = self.home
                self._watches.join(self)
                self._plan_bookmark()
                return
            lines: list[bytes] = []
            size = 0
            for change in changes:
                if store.has_seen_unreadable and (found := unreadable.of_change(change)) and self.home.covers(change):
                    if lines:
                        self._send(*lines)
                    raise unreadable.not_listed(store.kind.group_resource, found)
                if self.home.covers(change) and (line := self.home.line(change, headers=self.headers_due)) is not None:
                    self.headers_due = False
                    lines.append(line)
                    size += len(line)
                self.position = change.revision
                if size >= self._limits.piece_bytes:
                    break
            if lines:
                self._send(*lines)
            await self._drained()

    async def _reach(self, revision: int) -> None:
        while self._watches.store.cache.revision < revision:
            try:
                await self._watches.store.cache.until(revision, timeout_seconds=self._limits.bookmark_seconds)
            except FutureRevision:
                if self.transport.is_closing():
                    raise ConnectionResetError("the client has gone") from None

    async def rest(self) -> None:
        """Sleep until something is to be done for this watcher alone."""
        if self.group is None or self._watches.closed:
            return
        self._waker = asyncio.get_running_loop().create_future()
        try:
            await self._waker
        finally:
            self._waker = None
        await self._drained()

    def wake(self) -> None:
        """Let the task look what is to be done."""
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    def fall_behind(self, since: int) -> None:
        """Leave the group: everything up to `since` has been written, nothing after it."""
        self.leave()
        self.position = max(self.position, since)
        self._watches.fallen_behind += 1
        self.wake()

    def leave(self) -> None:
        """Be a member no longer, if that was the case."""
        if self.group is not None:
            self.group.members.pop(self, None)
            self.group = None
        if self._bookmark_timer is not None:
            self._bookmark_timer.cancel()
            self._bookmark_timer = None

    def _plan_bookmark(self) -> None:
        if not self._bookmarks:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + self._limits.bookmark_seconds
        if self.deadline is not None:
            # The last one comes right before the end, so that the client resumes from there.
            when = min(when, self.deadline - 2.0)
        if when > loop.time():
            self._bookmark_timer = loop.call_at(when, self._watches.bookmark, self)

    def send_bookmark(self) -> None:
        """Say how far this watcher has got; nothing for it is on its way."""
        if self.group is None:
            return
        self._send(self.home.frames.bookmark(self._watches.store.cache.revision, headers=self.headers_due))
        self._plan_bookmark()

    def send_last_bookmark(self, ended_at: int) -> None:
        """Say how far this watcher has got when all watches end: as a member to `ended_at`, else as far as it has caught up."""
        revision = self.position if self.group is None else max(self.position, ended_at)
        if self._bookmarks and revision <= self._watches.store.cache.revision:
            self._send(self.home.frames.bookmark(revision, headers=self.headers_due))

    def send_error(self, error: errors.APIError) -> None:
        """Send the event after which nothing comes."""
        self._send(self.home.frames.error(error))

    def send_head(self) -> None:
        """Begin what stands around all events, if anything does."""
        if self._sum is not None:
            self.transport.write(chunk(GZIP_HEAD))

    def send_tail(self) -> None:
        """End it, after everything that was written."""
        if self._sum is not None and not self.transport.is_closing():
            self.transport.write(chunk(self._sum.tail()))

    def write(self, packs: Iterable[Pack]) -> None:
        """Hand packed events to a connection that is open."""
        for pack in packs:
            self.transport.write(pack.data)
            if self._sum is not None and pack.segment is not None:
                self._sum.add(pack.segment)

    def _send(self, *lines: bytes) -> None:
        self.headers_due = False
        if not self.transport.is_closing():
            self.write((self.home.frames.pack(lines),))
            self._watches.sent(list(map(len, lines)), 1)

    async def _drained(self) -> None:
        """Wait until the connection takes more, and let others have their turn.

        Raises:
            ConnectionResetError: the client has gone, or has not read for too long and has been cut.
        """
        if not self.transport.is_closing() and self.transport.get_write_buffer_size():
            try:
                async with asyncio.timeout(self._limits.stall_seconds) as stall:
                    await self._drain()
            except TimeoutError:
                if not stall.expired():
                    raise
                self._watches.cut += 1
                self.transport.abort()
                raise ConnectionResetError("the client has not read for too long") from None
        await self._watches.store.turns.next()
        if self.transport.is_closing():
            raise ConnectionResetError("the client has gone")
