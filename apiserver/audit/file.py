"""Writes audit events to a file that is rotated, or to standard output.

Between requests and the thread that writes is a queue with a bound in events and in bytes; what does not fit any more, or cannot be
written, is lost.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, BinaryIO

from apiserver.audit.backend import Losses

if TYPE_CHECKING:
    from apiserver.audit.event import Entry

_log = logging.getLogger(__name__)

_END_SECONDS = 10.0
_STAMP = "%Y-%m-%dT%H-%M-%S.%f"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLogConfig:
    """The file of the audit log; the flags are kube-apiserver's."""

    path: str = ""
    """The file; `-`: standard output. Empty: there is none."""
    maxsize_megabytes: int = 0
    """Size at which the file is put aside and a new one begun. 0: never."""
    maxbackup: int = 0
    """How many files that were put aside are kept. 0: all."""
    maxage_days: int = 0
    """For how long they are kept. 0: for ever."""
    queue_events: int = 10_000
    """Events that may wait to be written, as kube-apiserver's --audit-log-batch-buffer-size."""
    queue_bytes: int = 64 * 1024 * 1024
    """What they may hold in memory."""


class FileBackend:
    """Takes events on the event loop, and writes them in a thread of its own while `run` runs."""

    def __init__(self, config: AuditLogConfig) -> None:
        """Open the file.

        Raises:
            OSError: that is not possible.
        """
        self.losses = Losses("log")
        self._config = config
        self._queue: SimpleQueue[Entry | None] = SimpleQueue()
        self._put_events = self._taken_events = self._put_bytes = self._taken_bytes = 0
        self._file = _File(config) if config.path != "-" else None

    def put(self, entry: Entry) -> None:
        """See `Backend.put`."""
        size = entry.size_bytes
        waiting, held = self._put_events - self._taken_events, self._put_bytes - self._taken_bytes
        if waiting >= self._config.queue_events or (waiting and held + size > self._config.queue_bytes):
            self.losses.add(1, "the queue is full")
            return
        self._put_events += 1
        self._put_bytes += size
        self._queue.put(entry)

    async def run(self) -> None:
        """See `Backend.run`."""
        thread = Thread(target=self._write_all, name="audit log", daemon=True)
        thread.start()
        try:
            await asyncio.Event().wait()
        finally:
            self._queue.put(None)
            await asyncio.to_thread(thread.join, _END_SECONDS)

    def _write_all(self) -> None:
        while (entry := self._queue.get()) is not None:
            try:
                self._write(entry.line())
            except Exception as error:
                # A supervisor: whatever is wrong with one event or with the disk, the next one is tried.
                self.losses.add(1, str(error) or type(error).__name__)
            self._taken_events += 1
            self._taken_bytes += entry.size_bytes
        if self._file is not None:
            self._file.close()

    def _write(self, line: bytes) -> None:
        if self._file is not None:
            self._file.write(line)
        else:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


class _File:
    """A file that is put aside when it has grown large. Used by one thread."""

    def __init__(self, config: AuditLogConfig) -> None:
        self._path = Path(config.path)
        self._config = config
        self._limit_bytes = config.maxsize_megabytes * 1024 * 1024
        self._file, self._size = self._open()
        self._torn = False
        """Whether the last line was written in part."""
        self._growing = False
        """Whether it is too large and could not be put aside."""

    def _open(self) -> tuple[BinaryIO, int]:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return os.fdopen(descriptor, "ab", buffering=0), os.fstat(descriptor).st_size

    def write(self, line: bytes) -> None:
        if self._limit_bytes and self._size and self._size + len(line) > self._limit_bytes:
            try:
                self._rotate()
            except OSError as error:
                if not self._growing:
                    _log.warning("the audit log %s cannot be put aside, and grows: %s", self._path, error)
                self._growing = True
        if self._torn:
            line = b"\n" + line
        written = 0
        try:
            while written < len(line):
                written += self._file.write(line[written:])
        finally:
            self._torn = 0 < written < len(line) or (self._torn and not written)
            self._size += written

    def _rotate(self) -> None:
        """Begin a new file. When it raises, the old one goes on, whatever its name is then."""
        stamp = datetime.now(UTC).strftime(_STAMP)[:-3]
        with suppress(FileNotFoundError):  # somebody else has put it aside
            self._path.rename(self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}"))
        full = self._file
        self._file, self._size = self._open()
        full.close()
        self._growing = False
        self._forget_old()

    def _forget_old(self) -> None:
        aside = sorted(self._path.parent.glob(f"{self._path.stem}-*{self._path.suffix}"), reverse=True)
        dated = [(file, when) for file in aside if (when := _stamped(file, self._path)) is not None]
        oldest = datetime.now(UTC) - timedelta(days=self._config.maxage_days)
        for number, (file, when) in enumerate(dated):
            too_many = self._config.maxbackup and number >= self._config.maxbackup
            if too_many or (self._config.maxage_days and when < oldest):
                file.unlink(missing_ok=True)

    def close(self) -> None:
        self._file.close()


def _stamped(file: Path, path: Path) -> datetime | None:
    """When a file was put aside; None for one that is something else."""
    try:
        return datetime.strptime(file.stem.removeprefix(f"{path.stem}-"), _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
