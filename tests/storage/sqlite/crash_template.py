"""A process that forks a writer at each line of its standard input, and says when that is gone. Run by test_crash.

The writer says its pid, then each write that was acknowledged: writer, count, revision. What it has said stays in the pipe when it is
killed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from storage.sqlite import SqliteConfig, SqliteStore
from storage.store import KeyValue
from storage.window import HistoryLimits

WRITERS = 8
DELETE_EACH = 5


async def write(path: Path, prefix: str, *, compacting: bool) -> None:
    history = HistoryLimits(revisions=30 if compacting else 1_000_000)
    store = await SqliteStore.open(path, SqliteConfig(history=history, checkpoint_pages=50, compaction_rows=7))

    async def one(writer: int) -> None:
        key = f"{prefix}{writer}"
        current: KeyValue | None = None
        count = 0
        while True:
            count += 1
            value = b"%d " % count + b"x" * 1000
            if current is None:
                current = done = await store.create(key, value)
            elif count % DELETE_EACH == 0:
                done, current = await store.delete(key, expected_revision=current.revision), None
            else:
                current = done = await store.update(key, value, expected_revision=current.revision)
            os.write(1, f"{writer} {count} {done.revision}\n".encode())

    await asyncio.gather(*(one(writer) for writer in range(WRITERS)))


def main() -> None:
    path = Path(sys.argv[1])
    for line in sys.stdin:
        prefix, compacting = line.split()
        pid = os.fork()
        if pid == 0:
            os.write(1, f"pid {os.getpid()}\n".encode())
            asyncio.run(write(path, prefix, compacting=compacting == "compacting"))
        _, status = os.waitpid(pid, 0)
        os.write(1, f"gone {os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()
