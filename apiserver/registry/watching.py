"""Watches: every change of a resource to everybody who asked for it, each event made once for all who want the same.

Watchers with the same selection and form are a group. A change becomes one line of bytes for a group; what has come together in one turn
of the event loop is packed once and written to each connection. Nobody is waited for: a connection that holds too much unsent data leaves
its group, and when it has caught its breath it takes what it missed from the history of the cache and comes back. Initial events go the
same way: in pieces, as fast as the connection takes them. So a watcher costs no queue, and sees each event once and in order.

Knows connections as asyncio transports only.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.meta import errors
from apiserver.registry.deflated import GZIP_HEAD, GzipSum
from apiserver.registry.errors import api_error
from apiserver.registry.frames import ADDED, DELETED, MODIFIED, Frames, Framing, Pack, chunk
from apiserver.registry.listing import parse_revision
from storage.errors import Compacted, FutureRevision, StoreError

if TYPE_CHECKING:
    from apiserver.meta.options import ListOptions
    from apiserver.registry.forms import Form
    from apiserver.registry.resource_store import ResourceStore
    from apiserver.registry.selection import Selection
    from apiserver.registry.stored_object import StoredObject
    from storage.history import Change

    _Wanted = tuple[Selection, Form, Framing]

Sent = Callable[[Sequence[int], int], None]
"""Is told the sizes of events, in bytes, and to how many watchers they were sent."""


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
    writes_per_step: int = 256
    """Connections written to before others get their turn on the event loop: some milliseconds."""
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


class Watches:
    """All watchers of one resource. A subscriber of its cache."""

    def __init__(self, store: ResourceStore, limits: WatchLimits | None = None, *, sent: Sent | None = None) -> None:
        """`sent` is told of all events that are sent."""
        self._store = store
        self.sent = sent or _ignore
        self._limits = limits or WatchLimits()
        self._groups: dict[_Wanted, _Group] = {}
        self._scopes: dict[tuple[str, str | None], list[_Group]] = {}
        self._dirty: list[_Group] = []
        self._segments: deque[_Segment] = deque()
        self._due: list[_Watcher] = []
        self._watchers: set[_Watcher] = set()
        self._revision = store.cache.revision
        self._writing = False
        self._spent_seconds = 0.0
        self._rest_until = 0.0
        self._closed = False
        self._ended_at = 0
        self._flushed = asyncio.Event()
        self.fallen_behind = 0
        """How often a watcher had to catch up."""
        self.cut = 0
        """How many watchers were cut since they did not read."""
        self.received = 0
        """How many changes the cache was told of."""
        self.lists = 0
        """How often the cache has listed its store."""
        self._unsubscribe = store.cache.subscribe(self)

    def __len__(self) -> int:
        return len(self._watchers)

    def close(self) -> None:
        """End all watches cleanly: each client sees everything up to now, a last bookmark if it takes them, and the end of its stream.

        So it resumes elsewhere from now, also when it had not seen an event for long.
        """
        if self._closed:
            return
        self._closed = True
        self._unsubscribe()
        self._ended_at = self._store.cache.revision
        if not self._writing:
            self._flushed.set()
        for watcher in self._watchers:
            watcher.wake()

    # What the cache tells

    def changes(self, batch: Sequence[Change[StoredObject]]) -> None:
        """Make the events of these changes for every group that is concerned; they are sent in the next turn of the loop."""
        before = self._revision
        self._revision = batch[-1].revision
        self.received += len(batch)
        if not self._groups:
            return
        for change in batch:
            for group in self._concerned(change):
                line = group.line(change)
                if line is None:
                    continue
                if not group.pending:
                    group.since = before
                    self._dirty.append(group)
                group.pending.append(line)
        if self._dirty:
            self._write_soon()

    def progress(self, revision: int) -> None:
        """Nothing to do: bookmarks read the cache's revision when they are due."""

    def reset(self) -> None:
        """Let every watcher find out by itself whether what it misses can still be had."""
        self.lists += 1
        self._revision = self._store.cache.revision
        self._segments.clear()
        for group in self._dirty:
            group.pending.clear()
        self._dirty.clear()
        for group in list(self._groups.values()):
            for watcher in list(group.members):
                watcher.fall_behind(watcher.position)

    def _concerned(self, change: Change[StoredObject]) -> Iterable[_Group]:
        obj = change.entry or change.previous
        assert obj is not None
        scopes = self._scopes
        concerned = scopes.get(("", None), ())
        if len(scopes) > 1 or not concerned:
            concerned = [*concerned, *scopes.get(("", obj.name), ())]
            if obj.namespace:
                concerned += scopes.get((obj.namespace, None), ())
                concerned += scopes.get((obj.namespace, obj.name), ())
        return concerned

    # Writing

    def _write_soon(self) -> None:
        if not self._writing:
            self._writing = True
            loop = asyncio.get_running_loop()
            if self._rest_until > loop.time():
                loop.call_at(self._rest_until, self._write)
            else:
                loop.call_soon(self._write)

    def _seal(self, group: _Group) -> None:
        """Pack what a group has pending, for those who are its members now."""
        if group.pending:
            packs = tuple(group.packs(self._limits.piece_bytes))
            sizes = list(map(len, group.pending))
            self._segments.append(_Segment(packs, sizes, tuple(group.members), group.since, self._revision))
            group.pending = []

    def _write(self) -> None:
        began = time.perf_counter()
        for group in self._dirty:
            self._seal(group)
        self._dirty.clear()
        buffer_bytes = self._limits.buffer_bytes
        left = self._limits.writes_per_step
        segments = self._segments
        while segments and left > 0:
            segment = segments[0]
            packs, through = segment.packs, segment.through
            members = segment.members[segment.written : segment.written + left]
            reached = 0
            for watcher in members:
                if watcher.group is None or watcher.position >= through:
                    continue
                transport = watcher.transport
                if watcher.headers_due or transport.is_closing() or transport.get_write_buffer_size() > buffer_bytes:
                    watcher.fall_behind(segment.since)
                else:
                    watcher.write(packs)
                    reached += 1
            self.sent(segment.sizes, reached)
            segment.written += len(members)
            left -= len(members)
            if segment.written >= len(segment.members):
                segments.popleft()
        self._spent_seconds += time.perf_counter() - began
        loop = asyncio.get_running_loop()
        if segments:
            loop.call_soon(self._write)
            return
        self._rest_until = loop.time() + min(self._spent_seconds * self._limits.rest_ratio, self._limits.rest_seconds_max)
        self._spent_seconds = 0.0
        self._writing = False
        due, self._due = self._due, []
        for watcher in due:
            watcher.send_bookmark()
        if self._closed:
            self._flushed.set()

    def bookmark(self, watcher: _Watcher) -> None:
        """Tell a watcher how far it has got, after what is on its way to it."""
        if self._writing:
            self._due.append(watcher)
        else:
            watcher.send_bookmark()

    # Watchers come and go

    def check(self, options: ListOptions) -> None:
        """Refuse what must be refused before a stream begins; everything later is an ERROR event.

        Raises:
            APIError: 422 for a resourceVersion that is none.
        """
        try:
            parse_revision(options.resource_version)
        except ValueError as error:
            kind = self._store.kind
            cause = errors.Cause("FieldValueInvalid", str(error), "resourceVersion")
            raise errors.invalid(kind.group, kind.plural, "", [cause]) from error

    async def serve(self, selection: Selection, form: Form, options: ListOptions, outlet: Outlet, *, timeout_seconds: float) -> None:
        """Send a watcher what it asked for, until its time is over, the server stops, or an ERROR event has ended the watch.

        The response has begun; the caller ends it. Safe to cancel: only whole events are written.

        Also returns when the client has gone, or has been cut since it did not read.
        """
        watcher = _Watcher(self, self._group((selection, form, outlet.framing)), outlet, bookmarks=options.allow_watch_bookmarks)
        self._watchers.add(watcher)
        watcher.send_head()
        outlet.transport.set_write_buffer_limits(high=self._limits.buffer_bytes)
        try:
            async with asyncio.timeout(timeout_seconds) as limit:
                watcher.deadline = limit.when()
                try:
                    await watcher.start(options)
                    while not self._closed:
                        await watcher.catch_up()
                        await watcher.rest()
                    # What is on its way to the members goes out first.
                    await self._flushed.wait()
                    watcher.send_last_bookmark(self._ended_at)
                except Compacted as error:
                    watcher.send_error(_too_old(error))
                except StoreError as error:
                    watcher.send_error(api_error(error, self._store.kind.group_resource))
            watcher.send_tail()
        except TimeoutError:
            if not limit.expired():
                raise
            watcher.send_tail()
        except ConnectionResetError:
            pass
        finally:
            watcher.leave()
            self._watchers.discard(watcher)
            self._drop_if_empty(watcher.home)
            if not outlet.transport.is_closing():
                outlet.transport.set_write_buffer_limits()

    def _group(self, wanted: _Wanted) -> _Group:
        group = self._groups.get(wanted)
        if group is None:
            selection, form, framing = wanted
            group = self._groups[wanted] = _Group(selection, Frames(self._store.kind, form, framing), wanted)
            self._scopes.setdefault(group.scope, []).append(group)
        group.users += 1
        return group

    def _drop_if_empty(self, group: _Group) -> None:
        group.users -= 1
        if not group.users:
            del self._groups[group.wanted]
            scope = self._scopes[group.scope]
            scope.remove(group)
            if not scope:
                del self._scopes[group.scope]

    def join(self, watcher: _Watcher) -> None:
        """Make a watcher that has seen everything a member of its group."""
        self._seal(watcher.home)
        watcher.home.members[watcher] = None

    def by_scope(self) -> Mapping[str, int]:
        """How many watch one object, one namespace, or everything: `resource`, `namespace`, `cluster`."""
        selections = (watcher.home.selection for watcher in self._watchers)
        return Counter("resource" if one.name is not None else "namespace" if one.namespace else "cluster" for one in selections)

    @property
    def closed(self) -> bool:
        """Whether all watches are ending."""
        return self._closed

    @property
    def store(self) -> ResourceStore:
        """What is watched."""
        return self._store

    @property
    def limits(self) -> WatchLimits:
        """What a watcher may cost."""
        return self._limits


class _Group:
    """Watchers who want the same."""

    __slots__ = ("_everything", "frames", "members", "pending", "scope", "selection", "since", "users", "wanted")

    def __init__(self, selection: Selection, frames: Frames, wanted: _Wanted) -> None:
        self.selection = selection
        self.scope = (selection.namespace, selection.name)
        self.frames = frames
        self.wanted = wanted
        self.users = 0
        """Watchers that name this group, members or not."""
        self.members: dict[_Watcher, None] = {}
        """Those who have seen everything before what is pending."""
        self.pending: list[bytes] = []
        self.since = 0
        """The revision before the first of what is pending."""
        self._everything = selection.is_everything

    def line(self, change: Change[StoredObject], *, headers: bool = False) -> bytes | None:
        """The event that a change (inside the scope) is for this group, or None when it is none.

        What leaves the selection is deleted: in its last state that was selected, at the revision of the change.
        """
        entry, previous = change.entry, change.previous
        if not self._everything:
            matches = self.selection.matches
            if entry is not None and not matches(entry):
                entry = None
            if previous is not None and not matches(previous):
                previous = None
        if entry is not None:
            return self.frames.event(ADDED if previous is None else MODIFIED, entry, headers=headers)
        if previous is not None:
            return self.frames.event(DELETED, previous.at(change.revision), headers=headers)
        return None

    def packs(self, piece_bytes: int) -> Iterator[Pack]:
        """What is pending, packed in pieces: what TLS encrypts at once stays allocated to the connection."""
        lines: list[bytes] = []
        size = 0
        for line in self.pending:
            if lines and size + len(line) > piece_bytes:
                yield self.frames.pack(lines)
                lines, size = [], 0
            lines.append(line)
            size += len(line)
        yield self.frames.pack(lines)

    def covers(self, change: Change[StoredObject]) -> bool:
        """Whether a change is inside the scope."""
        obj = change.entry or change.previous
        assert obj is not None
        namespace, name = self.scope
        return (not namespace or obj.namespace == namespace) and (name is None or obj.name == name)


@dataclass(slots=True)
class _Segment:
    """Packed events on their way to those who were members of a group when they were made."""

    packs: tuple[Pack, ...]
    sizes: Sequence[int]
    """Of the events in them, in bytes."""
    members: tuple[_Watcher, ...]
    since: int
    through: int
    written: int = 0


class _Watcher:
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

    def __init__(self, watches: Watches, group: _Group, outlet: Outlet, *, bookmarks: bool) -> None:
        self._watches = watches
        self._limits = watches.limits
        self._drain = outlet.drain
        self._bookmarks = bookmarks
        self._waker: asyncio.Future[None] | None = None
        self._bookmark_timer: asyncio.TimerHandle | None = None
        self._sum = GzipSum() if outlet.framing == "gzip" else None
        self.transport = outlet.transport
        self.home = group
        self.group: _Group | None = None
        """The home group while this watcher is a member of it."""
        self.position = 0
        """Up to this revision everything has been sent; while a member, the revision at which it joined."""
        self.headers_due = group.frames.has_headers
        self.deadline: float | None = None

    async def start(self, options: ListOptions) -> None:
        """Find where to begin, and send what exists if that was asked for.

        Raises:
            StoreError: the beginning cannot be had.
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
        snapshot = cache.snapshot()
        selection, codec = self.home.selection, self._watches.store.codec
        if selection.is_single:
            found = snapshot.get(codec.key(selection.namespace, selection.name or ""))
            if found is not None and selection.matches(found):
                await self._send_added([found])
        else:
            everything = selection.is_everything
            for block in snapshot.blocks(codec.prefix(selection.namespace)):
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
                await self._drained()
                lines, size = [], 0
        if lines:
            self._send(*lines)
        await self._drained()

    async def catch_up(self) -> None:
        """Send the changes since `position`, and become a member of the group in the very step in which there are no more.

        Raises:
            Compacted: the history has moved on.
        """
        cache = self._watches.store.cache
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
        await asyncio.sleep(0)
        if self.transport.is_closing():
            raise ConnectionResetError("the client has gone")


def _too_old(error: Compacted) -> errors.APIError:
    return errors.expired(f"too old resource version: {error.revision} ({error.compact_revision})")


def _ignore(_sizes: Sequence[int], _watchers: int) -> None:
    pass
