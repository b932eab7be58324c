"""The memory of the process: what the garbage collector looks at, and what goes back to the system.

Objects are freed by counting references; the collector only finds cycles. What is freed lies in the C library's heap between what is still
used, where the system cannot take it back by itself: after a crowd of watchers has left, that is most of what they took. Where the C
library has a function for that (glibc), it is asked to give it back now and then.
Source: https://man7.org/linux/man-pages/man3/malloc_trim.3.html
"""

from __future__ import annotations

import asyncio
import ctypes
import gc

_TRIM_SECONDS = 3.0
_COLLECT_SECONDS = 3600.0
_YOUNG_CONTAINERS = 2_000
"""New ones that the collector looks at together."""
_YOUNG_LOOKS = 5
"""After so many looks, what is left of them is looked at once more, together."""
_NEVER = 1_000_000


def look_away() -> None:
    """Keep the garbage collector from looking through the heap until `settle`: a start makes much that stays.

    With the collector's own numbers looking takes a ninth of a start, and finds a megabyte. It is not switched off: a store that cannot be
    reached may keep the server here for days.
    """
    gc.set_threshold(500_000, 20, 100)


def settle() -> None:
    """Take what is there after the start out of the garbage collector's sight, and let it look at little at a time.

    Looking through a heap of a hundred thousand cached objects holds the loop for a tenth of a second. So it is not looked through first:
    what little garbage the start has left stays. What comes later is looked at twice while it is young, some thousand containers at a
    time: some milliseconds. After that `keep_collected` alone looks at it.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG_CONTAINERS, _YOUNG_LOOKS, _NEVER)


async def keep_collected(*, every_seconds: float = _COLLECT_SECONDS) -> None:
    """Look through everything that has come since the start, every so often. The owner's task.

    This holds the loop for 35 ms where there are a thousand watchers, which is why it is not left to the collector, who would do it while
    they come. It finds what hardly ever is there: cycles that have grown old before they became garbage.
    """
    while True:
        await asyncio.sleep(every_seconds)
        gc.collect()


async def keep_trimmed(*, every_seconds: float = _TRIM_SECONDS) -> None:
    """Give free memory back to the system every so often. The owner's task; returns at once where that cannot be done.

    Takes less than a millisecond of a thread when there is nothing to give back, and some per hundred megabytes.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return
    while True:
        await asyncio.sleep(every_seconds)
        await asyncio.to_thread(trim, 0)
