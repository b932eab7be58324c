"""Follows objects of the cluster: a list, then a watch, and a list again whenever the watch ends.

What was known stays known while kube-apiserver is away. Each watch ends after some minutes, so that a connection that is dead without
saying so is not believed for long.
Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlencode

from apiserver.cluster.client import ClusterError

if TYPE_CHECKING:
    from apiserver.cluster.client import ClusterClient

_log = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 10.0


class Follower(Protocol):
    """Is told what there is. Must not fail."""

    def replaced(self, objects: Sequence[dict[str, Any]]) -> None:
        """These are all."""

    def changed(self, kind: str, value: dict[str, Any]) -> None:
        """One was `ADDED`, `MODIFIED` or `DELETED`."""


class Reflector:
    """Keeps a follower up to date about the objects at a path. The owner awaits `run` as a task."""

    def __init__(self, client: ClusterClient, path: str, follower: Follower, *, field_selector: str = "", watch_seconds: int = 300) -> None:
        self._client = client
        self._path = path
        self._follower = follower
        self._query = {"fieldSelector": field_selector} if field_selector else {}
        self._watch_seconds = watch_seconds
        self.synced = asyncio.Event()
        """Set once the follower has been told all there is."""
        self.problem = "not read yet"
        """Why it is not up to date; empty when it is."""

    async def run(self) -> None:
        """Follow, for ever. Failures are logged and tried again, at most ten seconds later."""
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._follow()
                pause_seconds = _FIRST_PAUSE_SECONDS
                await asyncio.sleep(pause_seconds)
            except ClusterError as error:
                if str(error) != self.problem:
                    _log.warning("cannot follow %s: %s", self._path, ascii(str(error))[1:-1])
                self.problem = str(error)
                pause_seconds = min(pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
                await asyncio.sleep(pause_seconds * random.uniform(0.5, 1.0))

    async def _follow(self) -> None:
        listed = await self._client.get(self._address({"resourceVersion": "0"}))
        try:
            version = listed["metadata"]["resourceVersion"]
            self._follower.replaced(listed["items"] or ())
        except (KeyError, TypeError) as error:
            raise ClusterError("the answer is no list") from error
        self.problem = ""
        self.synced.set()
        watch = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(random.randint(self._watch_seconds // 2, self._watch_seconds)),
        }
        async for event in self._client.watch(self._address(watch)):
            kind, value = event.get("type"), event.get("object")
            if kind == "ERROR" or not isinstance(value, dict):
                # Too old, as a rule: the list that follows tells all again.
                return
            if kind in ("ADDED", "MODIFIED", "DELETED"):
                self._follower.changed(kind, value)

    def _address(self, query: dict[str, str]) -> str:
        return f"{self._path}?{urlencode({**self._query, **query})}"
