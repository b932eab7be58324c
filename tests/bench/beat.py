"""Runs our server as its command line does, and looks how long its event loop is held: the bench starts it like this.

A timer comes back to the loop a millisecond after its last turn. How much CPU time the loop's thread has taken by then is how long the loop
was held at the most, whatever else the machine did meanwhile. The most so far is kept in a file of eight bytes, which others can read, and
set back to nothing. It takes some microseconds a millisecond, which count as the server's.

    python tests/bench/beat.py FILE serve ...
"""

from __future__ import annotations

import asyncio
import mmap
import struct
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

_SECONDS = struct.Struct("d")
_PAUSE_SECONDS = 0.001


class Beat:
    """The longest hold of a loop, in a file that two processes share."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_SECONDS.pack(0.0))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _SECONDS.size)

    @property
    def longest_seconds(self) -> float:
        """CPU time, since `forget`."""
        longest: float = _SECONDS.unpack_from(self._memory)[0]
        return longest

    def forget(self) -> None:
        """Begin anew."""
        _SECONDS.pack_into(self._memory, 0, 0.0)

    def begin(self) -> None:
        """Watch the loop that runs, for as long as it does."""
        self._look(asyncio.get_running_loop(), time.thread_time())

    def _look(self, loop: asyncio.AbstractEventLoop, before: float) -> None:
        now = time.thread_time()
        if now - before > self.longest_seconds:
            _SECONDS.pack_into(self._memory, 0, now - before)
        loop.call_later(_PAUSE_SECONDS, self._look, loop, now)


def main(path: Path) -> None:
    """Run the rest of the command line."""
    import uvloop

    from apiserver import __main__ as command_line

    beat, run = Beat(path), uvloop.run

    def watched(work: Coroutine[Any, Any, Any], **settings: Any) -> Any:
        async def working() -> Any:
            beat.begin()
            return await work

        return run(working(), **settings)

    uvloop.run = watched  # type: ignore[assignment] # for this one call
    command_line.main()


if __name__ == "__main__":
    main(Path(sys.argv.pop(1)))
