"""Keeps an image in step with the store: lists once, then follows the watch, and comes back after every loss.

A watch that ends is resumed after the last revision seen; only when the store has compacted that, or has contradicted itself, a new list
is made. The caches of many servers that lose a store together do not come back together.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Generic, cast

from storage.errors import Compacted, Corrupted, KeyNotFound, StoreClosed, StoreError, Unavailable
from storage.snapshot import E
from storage.store import WatchBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.cache.image import Image
    from storage.cache.limits import CacheLimits
    from storage.store import Page, Store

_log = logging.getLogger(__name__)
_STEP = 100
"""Values that are taken at once: what others wait for is then some milliseconds of decoding."""


class Follower(Generic[E]):
    """Follows one store for one image."""

    def __init__(self, store: Store, image: Image[E], limits: CacheLimits) -> None:
        self._store = store
        self._image = image
        self._prefix = image.prefix
        self._limits = limits
        self._list_again = True
        self._following: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Follow until the image or the store is closed. The owner's task; safe to cancel."""
        checking = asyncio.create_task(self._check_compaction_often(), name=f"check compaction of {self._prefix}")
        try:
            await self._follow_always()
        finally:
            checking.cancel()
            await asyncio.wait([checking])

    async def _follow_always(self) -> None:
        pause = 0.0
        while not self._image.closed:
            seen = self._image.revision
            self._following = asyncio.create_task(self._follow(pause), name=f"follow {self._prefix}")
            try:
                await self._following
            except StoreClosed:
                return
            except asyncio.CancelledError:
                # `close` and `verify` cancel the task inside only.
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise
                continue
            except Compacted as error:
                self._list_again = True
                _log.warning("cache of %s lists again: %s", self._prefix, error)
            except Corrupted as error:
                self._list_again = True
                _log.error("cache of %s lists again: %s", self._prefix, error)
            except StoreError as error:
                # Once: a store that is away for an hour is asked again a thousand times.
                level = logging.DEBUG if pause else logging.WARNING
                _log.log(level, "cache of %s lost the watch at revision %d: %s", self._prefix, self._image.revision, error)
            except Exception:
                self._list_again = True
                _log.exception("cache of %s lists again after a fault", self._prefix)
            pause = 0.0 if self._image.revision > seen else min(max(2 * pause, self._limits.retry_seconds), self._limits.retry_seconds_max)

    async def close(self) -> None:
        """End `run`; the image has been closed."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])

    async def _follow(self, pause: float) -> None:
        # Many caches lose the same store together; they should not come back together.
        await asyncio.sleep(pause * (0.5 + random.random() / 2))
        if self._list_again:
            await self._list()
        watch = cast(AsyncGenerator[WatchBatch, None], self._store.watch(self._prefix, after_revision=self._image.revision))
        async with aclosing(watch):
            async for batch in watch:
                if len(batch) <= _STEP:
                    self._image.apply(batch)
                    continue
                for part in _parts(batch):
                    self._image.apply(part)
                    await asyncio.sleep(0)
        raise Unavailable("the watch has ended")

    async def _list(self) -> None:
        """Put a new list in the place of what is held, in one step at its end; what has not changed stays the same object."""
        snapshot = self._image.snapshot
        revision = snapshot.revision
        held = {entry.key: entry for entry in snapshot.iterate()}
        entries: dict[str, E] = {}
        async with aclosing(self._pages()) as pages:
            async for page in pages:
                revision = page.revision
                for begin in range(0, len(page.items), _STEP):
                    writes: list[tuple[str, E | None]] = []
                    for item in page.items[begin : begin + _STEP]:
                        entry = held.get(item.key)
                        if entry is None or entry.revision != item.revision:
                            entry = self._image.decode(item)
                            writes.append((item.key, entry))
                        entries[item.key] = entry
                    snapshot = snapshot.write(revision, writes)
                    await asyncio.sleep(0)
        gone: list[tuple[str, E | None]] = [(key, None) for key in sorted(held.keys() - entries.keys())]
        self._image.replace(entries, snapshot.write(revision, gone))
        self._list_again = False

    async def _pages(self, revision: int | None = None) -> AsyncGenerator[Page, None]:
        """List the store at one revision, with a pause for others after each page. The next one is asked for meanwhile."""
        asked = self._ask(None, revision)
        try:
            while True:
                page = await asked
                if page.remaining:
                    asked = self._ask(page.items[-1].key + "\0", page.revision)
                yield page
                if not page.remaining:
                    return
                await asyncio.sleep(0)
        finally:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)

    def _ask(self, start_key: str | None, revision: int | None) -> asyncio.Task[Page]:
        page = self._store.list(self._prefix, start_key=start_key, limit=self._limits.page_size, revision=revision)
        return asyncio.create_task(page, name=f"list {self._prefix}")

    async def _check_compaction_often(self) -> None:
        while self._limits.compaction_seconds:
            await asyncio.sleep(self._limits.compaction_seconds)
            try:
                await self.check_compaction()
            except StoreClosed:
                return
            except StoreError as error:
                _log.debug("cache of %s: the store does not say how far it is compacted: %r", self._prefix, error)

    async def check_compaction(self) -> None:
        """Find out how far anybody has compacted the store: what it has forgotten is not told from memory either, to those who ask anew.

        Raises:
            StoreError: it does not answer.
        """
        if not self._image.listed:
            return
        try:
            # No object has this key; that the revision can be read is all that matters.
            await self._store.get(self._prefix, revision=self._image.oldest_revision)
        except KeyNotFound:
            pass
        except Compacted as error:
            self._image.compacted(error.compact_revision)

    async def verify(self) -> None:
        """Compare key and revision of all entries with a list of the store at the same revision; where they differ, list again.

        Says nothing when the store has compacted that revision meanwhile, or nothing has been listed yet.

        Raises:
            Corrupted: they differ; a list has been ordered, and the history begins anew with it.
        """
        if not self._image.listed:
            return
        snapshot = self._image.snapshot
        held = ((entry.key, entry.revision) for entry in snapshot.iterate())
        try:
            async with aclosing(self._pages(snapshot.revision)) as pages:
                async for page in pages:
                    for item in page.items:
                        self._agree(next(held, None), (item.key, item.revision), snapshot.revision)
        except Compacted:
            return
        self._agree(next(held, None), None, snapshot.revision)

    def _agree(self, held: tuple[str, int] | None, stored: tuple[str, int] | None, revision: int) -> None:
        if held == stored:
            return
        self._list_again = True
        if self._following is not None:
            self._following.cancel()
        raise Corrupted(f"at revision {revision} the cache of {self._prefix} holds {held} where the store has {stored}")


def _parts(batch: WatchBatch) -> Iterator[WatchBatch]:
    begin = 0
    while begin < len(batch):
        end = begin + _STEP
        # A revision is atomic.
        while end < len(batch) and batch[end].revision == batch[end - 1].revision:
            end += 1
        yield batch[begin:end]
        begin = end
