"""Where audit events go, and the count of those that get lost on the way."""

from __future__ import annotations

import logging
import time
from threading import Lock
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from apiserver.audit.event import Entry

_log = logging.getLogger(__name__)
_TELL_EVERY_SECONDS = 10.0


class Losses:
    """Events that were lost: counted, and told of in the log, though not each by itself. For any thread."""

    def __init__(self, plugin: str) -> None:
        self.plugin = plugin
        """What kube-apiserver calls such a backend."""
        self.count = 0
        self._told_at = float("-inf")
        self._lock = Lock()

    def add(self, events: int, reason: str) -> None:
        """Count some."""
        with self._lock:
            self.count += events
            now = time.monotonic()
            if now - self._told_at >= _TELL_EVERY_SECONDS:
                self._told_at = now
                _log.error("audit events are lost (%d until now, %s): %s", self.count, self.plugin, reason)


class Backend(Protocol):
    """Takes events on the event loop, never waits, and passes them on while `run` runs."""

    @property
    def losses(self) -> Losses:
        """What it could not pass on."""

    def put(self, entry: Entry) -> None:
        """Have an event passed on; when too many wait it is lost, and counted."""

    async def run(self) -> None:
        """Pass on what is put, until this is cancelled; then what still waits."""
