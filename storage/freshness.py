"""One read of the store's current revision for all who ask while another is under way.

A reader is served by a read that began after the reader asked, so what it gets covers every write that had returned before. Those who
come while a read is in flight share the next one: any number of readers cost one read per round trip.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from storage.deadline import wait_until
from storage.errors import StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class SharedRevision:
    """The current revision of a store, read in batches. Owns one task while somebody waits; `close` ends it."""

    def __init__(self, read: Callable[[], Coroutine[Any, Any, int]]) -> None:
        self._read = read
        self._immediate = True
        self._served: list[asyncio.Future[int]] = []
        self._next: list[asyncio.Future[int]] = []
        self._task: asyncio.Task[None] | None = None

    def at_once(self) -> int | None:
        """Return the current revision if the store knows it without waiting, else None.

        A store in this process does. The first time that a store had to wait is the last time it is tried.
        """
        if not self._immediate:
            return None
        reading = self._read()
        try:
            reading.send(None)
        except StopIteration as done:
            revision: int = done.value
            return revision
        self._immediate = False
        reading.close()
        return None

    async def read(self, deadline: float | None = None) -> int:
        """Return a current revision that was read after this call. Safe to cancel: the others get theirs.

        Raises:
            StoreError: what the store raised.
            TimeoutError: it has not answered by the deadline, in the time of the loop.
        """
        waiter: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._next.append(waiter)
        if self._task is None:
            self._task = asyncio.create_task(self._serve(), name="shared revision")
        return await wait_until(waiter, deadline)

    async def close(self) -> None:
        """End the read in flight; those who wait get StoreClosed."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        for waiter in (*self._served, *self._next):
            if not waiter.done():
                waiter.set_exception(StoreClosed("closed while the current revision was read"))
        self._task, self._served, self._next = None, [], []

    async def _serve(self) -> None:
        while self._next:
            self._served, self._next = self._next, []
            try:
                revision = await self._read()
            except Exception as error:  # whatever it is, it belongs to those who asked
                for waiter in self._served:
                    if not waiter.done():
                        waiter.set_exception(error)
            else:
                for waiter in self._served:
                    if not waiter.done():
                        waiter.set_result(revision)
        self._task = None
