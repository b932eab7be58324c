"""Watches: every change of a resource to everybody who asked for it, each event made once for all who want the same.

Watchers with the same selection and form are a group. A change becomes one line of bytes for a group; what has come together in one turn
of the event loop is packed once and written to each connection. Nobody is waited for: a connection that holds too much unsent data leaves
its group, and when it has caught its breath it takes what it missed from the history of the cache and comes back. So a watcher costs no
queue, and sees each event once and in order.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.meta import errors
from apiserver.registry import unreadable
from apiserver.registry.errors import api_error
from apiserver.registry.frames import Frames, Pack
from apiserver.registry.listing import parse_revision
from apiserver.registry.watch_group import Group
from apiserver.registry.watcher import Outlet, Watcher, WatchLimits
from storage.errors import Compacted, StoreError

if TYPE_CHECKING:
    from apiserver.meta.options import ListOptions
    from apiserver.registry.forms import Form
    from apiserver.registry.resource_store import ResourceStore
    from apiserver.registry.selection import Selection
    from apiserver.registry.stored_object import StoredObject
    from apiserver.registry.watch_group import Wanted
    from storage.history import Change

__all__ = ["Outlet", "Sent", "WatchLimits", "Watches"]

Sent = Callable[[Sequence[int], int], None]
"""Is told the sizes of events, in bytes, and to how many watchers they were sent."""


class Watches:
    """All watchers of one resource. A subscriber of its cache."""

    def __init__(self, store: ResourceStore, limits: WatchLimits | None = None, *, sent: Sent | None = None) -> None:
        """`sent` is told of all events that are sent."""
        self._store = store
        self.sent = sent or _ignore
        self._limits = limits or WatchLimits()
        self._groups: dict[Wanted, Group] = {}
        self._scopes: dict[tuple[str, str | None], list[Group]] = {}
        self._dirty: list[Group] = []
        self._barred: dict[Group, int] = {}
        """Groups for which a change cannot be made an event, and the revision before it: each member comes to it by itself, and fails."""
        self._segments: deque[_Segment] = deque()
        self._due: list[Watcher] = []
        self._watchers: set[Watcher] = set()
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
        looking = self._store.has_seen_unreadable
        for change in batch:
            barred = looking and unreadable.of_change(change)
            for group in self._concerned(change):
                if barred:
                    self._barred.setdefault(group, change.revision - 1)
                if group in self._barred:
                    continue
                line = group.line(change)
                if line is None:
                    continue
                if not group.pending:
                    group.since = before
                    self._dirty.append(group)
                group.pending.append(line)
        if self._dirty or self._barred:
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
        self._barred.clear()
        for group in list(self._groups.values()):
            for watcher in list(group.members):
                watcher.fall_behind(watcher.position)

    def _concerned(self, change: Change[StoredObject]) -> Iterable[Group]:
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

    def _seal(self, group: Group) -> None:
        """Pack what a group has pending, for those who are its members now."""
        if group.pending:
            packs = tuple(group.packs(self._limits.piece_bytes))
            sizes = list(map(len, group.pending))
            self._segments.append(_Segment(packs, sizes, tuple(group.members), group.since, self._revision))
            group.pending = []

    def _write(self) -> None:
        began = time.perf_counter()
        if not self._segments:
            # What comes while this is written goes out together, too.
            for group in self._dirty:
                self._seal(group)
            self._dirty.clear()
        buffer_bytes, over = self._limits.buffer_bytes, began + self._limits.step_seconds
        segments, now = self._segments, began
        while segments:
            segment = segments[0]
            packs, through, members = segment.packs, segment.through, segment.members
            written, reached = segment.written, 0
            while written < len(members):
                watcher = members[written]
                written += 1
                if watcher.group is None or watcher.position >= through:
                    continue
                transport = watcher.transport
                if watcher.headers_due or transport.is_closing() or transport.get_write_buffer_size() > buffer_bytes:
                    watcher.fall_behind(segment.since)
                else:
                    watcher.write(packs)
                    reached += 1
                if (now := time.perf_counter()) >= over:
                    break
            self.sent(segment.sizes, reached)
            segment.written = written
            if written >= len(members):
                segments.popleft()
            if now >= over:
                break
        self._spent_seconds += time.perf_counter() - began
        loop = asyncio.get_running_loop()
        if segments:
            loop.call_soon(self._write)
            return
        self._rest_until = loop.time() + min(self._spent_seconds * self._limits.rest_ratio, self._limits.rest_seconds_max)
        self._spent_seconds = 0.0
        if self._dirty:
            loop.call_at(self._rest_until, self._write)
            return
        self._writing = False
        barred, self._barred = self._barred, {}
        for group, since in barred.items():
            for watcher in list(group.members):
                watcher.fall_behind(since)
        due, self._due = self._due, []
        for watcher in due:
            watcher.send_bookmark()
        if self._closed:
            self._flushed.set()

    def bookmark(self, watcher: Watcher) -> None:
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
        watcher = Watcher(self, self._group((selection, form, outlet.framing)), outlet, bookmarks=options.allow_watch_bookmarks)
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
                except errors.APIError as error:
                    watcher.send_error(error)
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

    def _group(self, wanted: Wanted) -> Group:
        group = self._groups.get(wanted)
        if group is None:
            selection, form, framing = wanted
            group = self._groups[wanted] = Group(selection, Frames(self._store.kind, form, framing), wanted)
            self._scopes.setdefault(group.scope, []).append(group)
        group.users += 1
        return group

    def _drop_if_empty(self, group: Group) -> None:
        group.users -= 1
        if not group.users:
            del self._groups[group.wanted]
            scope = self._scopes[group.scope]
            scope.remove(group)
            if not scope:
                del self._scopes[group.scope]

    def join(self, watcher: Watcher) -> None:
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


@dataclass(slots=True)
class _Segment:
    """Packed events on their way to those who were members of a group when they were made."""

    packs: tuple[Pack, ...]
    sizes: Sequence[int]
    """Of the events in them, in bytes."""
    members: tuple[Watcher, ...]
    since: int
    through: int
    written: int = 0


def _too_old(error: Compacted) -> errors.APIError:
    return errors.expired(f"too old resource version: {error.revision} ({error.compact_revision})")


def _ignore(_sizes: Sequence[int], _watchers: int) -> None:
    pass
