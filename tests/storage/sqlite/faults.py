"""A disk on which a sync takes a while, or fails, or which becomes full."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

import apsw


class Disk(apsw.VFS):
    """What every connection opened meanwhile stands on."""

    def __init__(self) -> None:
        super().__init__("faulty", "unix", makedefault=True)
        self.sync_seconds_max = 0.0
        self.failing = False
        self.failures = 0
        self.room_bytes: int | None = None
        """How much it still takes; None for no end."""

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - the interface's name
        return _File(self, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - the interface's name
        room_bytes = self._disk.room_bytes
        if room_bytes is None:
            super().xWrite(data, offset)
            return
        self._disk.room_bytes = max(0, room_bytes - len(data))
        if data[:room_bytes]:
            super().xWrite(data[:room_bytes], offset)
        if len(data) > room_bytes:
            raise apsw.exception_for(apsw.SQLITE_FULL)

    def xSync(self, flags: int) -> None:  # noqa: N802 - the interface's name
        if self._disk.sync_seconds_max:
            time.sleep(random.random() * self._disk.sync_seconds_max)
        if self._disk.failing:
            self._disk.failures += 1
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)


@contextmanager
def disk() -> Iterator[Disk]:
    faulty = Disk()
    yield faulty
    faulty.unregister()
