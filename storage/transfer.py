"""Copying a store: a backup is a copy into a SQLite file, a restore one out of it, a move one from any store to any other.

Knows only the contract and locations. Policy: every value is kept, no revision is ever given twice. The target begins far above all that
either store has given, those after a backup included, and its history begins there: whoever holds an older revision is told `Compacted`,
and lists again.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from storage.errors import Corrupted
from storage.open import Source, open_source, open_store, seal
from storage.store import KeyValue, LoadableStore

if TYPE_CHECKING:
    from storage.open import Location

REVISION_JUMP = 1_000_000_000
"""How far above everything known a copy begins: a store that went on after its backup cannot have come so far."""

ALL = "/"
"""The prefix of every key."""

OnProgress: TypeAlias = Callable[[int, int], None]
"""Called with how many keys are done and how many there are: once before the first one, then after each page."""

_PAGE_KEYS = 500


async def backup(source: Location, file: Path, *, progress: OnProgress | None = None) -> int:
    """Write what a store holds at one revision into a new file, while it is served; return the revision of the copy.

    The file appears when it is whole and on the disk, not before. `migrate` restores it.

    Raises:
        FileExistsError: there is such a file.
        OSError: there is no such folder, or it cannot be written to.
        StoreError: as `copy` and `open_source`.
    """
    if await asyncio.to_thread(file.exists):
        raise FileExistsError(f"{file} exists")
    # A folder, since the database has files beside it while it is open; of its own, so that nothing that was left behind is in the way.
    folder = await asyncio.to_thread(_folder_beside, file)
    try:
        revision = await migrate(source, folder, progress=progress)
        await asyncio.to_thread(_put_in_place, await seal(folder), file)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return revision


async def migrate(source: Location, target: Location, *, exclusive: bool = False, progress: OnProgress | None = None) -> int:
    """Fill the store at `target` with what is at `source`: a store, or a backup's file. Return the target's revision.

    `exclusive` refuses a file that another process serves, and keeps others from serving it meanwhile: nothing is written that the target
    does not get.

    Raises:
        StoreError: as `copy`, `open_source` and `open_store`.
    """
    reading = await open_source(source, exclusive=exclusive)
    try:
        filling = await open_store(target)
        try:
            return await copy(reading, filling, progress=progress)
        finally:
            await filling.close()
    finally:
        await reading.close()


async def copy(source: Source, target: LoadableStore, *, progress: OnProgress | None = None) -> int:
    """Fill `target`, which has no keys, with what `source` holds at one revision; return the target's revision.

    What is written to the source meanwhile is not in the copy. Cancelling leaves the target as a failed `LoadableStore.load` does.

    Raises:
        KeyExists: the target has keys.
        Compacted: the source forgot the revision before all was read: it took longer than its history lasts.
        Corrupted: the source gave another number of keys than it had said.
    """
    first = await source.list(ALL, limit=_PAGE_KEYS)
    total = len(first.items) + first.remaining
    report = progress or _silent

    async def items() -> AsyncGenerator[KeyValue, None]:
        page, done = first, 0
        report(done, total)
        while True:
            for item in page.items:
                yield item
            done += len(page.items)
            report(done, total)
            if not page.remaining:
                break
            page = await source.list(ALL, start_key=page.items[-1].key + "\0", limit=_PAGE_KEYS, revision=first.revision)
        if done != total:
            raise Corrupted(f"{done} of {total} keys could be read")

    highest = max(first.revision, await target.current_revision())
    async with aclosing(items()) as values:
        return await target.load(values, above_revision=highest + REVISION_JUMP)


def _folder_beside(file: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(".partial", f"{file.name}.", file.parent))
    except OSError as error:
        # It names a folder that nobody knows of.
        raise OSError(error.errno, error.strerror, str(file.parent)) from error


def _put_in_place(made: Path, file: Path) -> None:
    made.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _silent(_done: int, _total: int) -> None:
    """Nobody watches."""
