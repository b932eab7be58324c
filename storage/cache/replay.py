"""A watch as the store's contract has it, answered from an image.

There is no queue: the reader takes what it has not seen from the history, and gets WatcherTooSlow when that has moved on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from storage.errors import Compacted, WatcherTooSlow
from storage.snapshot import E
from storage.store import Event, KeyValue, Progress

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from storage.cache.image import Image
    from storage.history import Change
    from storage.store import WatchBatch


async def replay(image: Image[E], prefix: str, after_revision: int) -> AsyncGenerator[WatchBatch, None]:
    """Deliver every write under `prefix` after a revision that the image knows, until the image is closed.

    Raises:
        WatcherTooSlow: the reader has not asked for so long that changes are missing.
    """
    wake = _Wake()
    unsubscribe = image.subscribe(wake)
    image.readers.add(wake.event)
    position = after_revision
    try:
        while True:
            wake.event.clear()
            try:
                changes = image.history.changes_after(position)
            except Compacted as error:
                raise WatcherTooSlow(f"the history begins at {error.compact_revision}; this reader has seen {position}") from error
            events = [_event(change) for change in changes if change.key.startswith(prefix)]
            # To a reader that gets nothing of a batch, a batch for others is progress.
            progress = (image.revision > position and not events) or (wake.progressed and image.revision >= position)
            position = max(position, image.revision)
            wake.progressed = False
            if events or progress:
                yield (*events, Progress(position)) if progress else tuple(events)
            elif image.closed:
                return
            else:
                await wake.event.wait()
    finally:
        image.readers.discard(wake.event)
        unsubscribe()


class _Wake:
    """A subscriber that only wakes the reader of a watch."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.progressed = False

    def changes(self, batch: Sequence[object]) -> None:
        self.event.set()

    def progress(self, revision: int) -> None:
        self.progressed = True
        self.event.set()

    def reset(self) -> None:
        self.event.set()


def keyvalue(entry: E) -> KeyValue:
    """What the store holds for an entry."""
    return KeyValue(entry.key, entry.value, entry.revision)


def _event(change: Change[E]) -> Event:
    return Event(change.revision, change.key, None if change.entry is None else change.entry.value)
