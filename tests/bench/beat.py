"""Runs our server as its command line does, and looks how long its event loop is held: the bench starts it like this.

While somebody watches, a timer comes back to the loop a millisecond after its last turn. How much CPU time the loop's thread has taken by
then is how long the loop was held at the most, whatever else the machine did meanwhile. The most so far is kept in a small file, which
others can read. It takes some microseconds a millisecond, which count as the server's; while nobody watches next to nothing.

    python tests/bench/beat.py FILE serve ...
"""

from __future__ import annotations

import asyncio
import mmap
import struct
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_KEPT = struct.Struct("d?")
"""Seconds, and whether somebody watches."""
_PAUSE_SECONDS = 0.001
_IDLE_SECONDS = 0.02
"""So often a server looks whether somebody watches."""


class Beat:
    """The longest hold of a loop, in a file that two processes share."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_KEPT.pack(0.0, False))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _KEPT.size)

    @property
    def longest_seconds(self) -> float:
        """CPU time, while somebody watched last."""
        longest: float = _KEPT.unpack_from(self._memory)[0]
        return longest

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch another process's loop beside what the block does."""
        _KEPT.pack_into(self._memory, 0, 0.0, True)
        time.sleep(2 * _IDLE_SECONDS)  # until it has seen that
        _KEPT.pack_into(self._memory, 0, 0.0, True)
        try:
            yield
        finally:
            _KEPT.pack_into(self._memory, 0, self.longest_seconds, False)

    def begin(self) -> None:
        """Look at the loop that runs, for as long as it does, whenever somebody watches."""
        self._look(asyncio.get_running_loop(), None)

    def _look(self, loop: asyncio.AbstractEventLoop, before: float | None) -> None:
        longest, watched = _KEPT.unpack_from(self._memory)
        now = time.thread_time() if watched else None
        if before is not None and now is not None and now - before > longest:
            _KEPT.pack_into(self._memory, 0, now - before, watched)
        loop.call_later(_PAUSE_SECONDS if watched else _IDLE_SECONDS, self._look, loop, now)


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
