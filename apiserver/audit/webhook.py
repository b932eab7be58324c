"""Sends audit events to a server that takes them: kube-apiserver's webhook backend in its mode `batch`.

Events wait in a queue with a bound in number and in bytes, and go in batches, one after the other. A batch that is not taken is tried
again, whatever the reason was, and is lost after the fifth time; it may arrive twice.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/plugin/pkg/audit/webhook/webhook.go
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from apiserver.audit.backend import Losses
from apiserver.cluster.client import ClusterError

if TYPE_CHECKING:
    from apiserver.audit.event import Entry
    from apiserver.cluster.client import ClusterClient

_ATTEMPTS = 5
_PAUSE_FACTOR = 1.5
_JITTER = 0.2
_ANSWER_SECONDS = 30.0
_END_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditWebhookConfig:
    """The server that takes audit events; the flags are kube-apiserver's, with its defaults."""

    config_file: Path | None = None
    """A kubeconfig, whose `server` is the whole address. None: events are sent to nobody."""
    initial_backoff_seconds: float = 10.0
    """How long to wait before a batch is sent a second time; then half as long again each time."""
    batch_max_size: int = 400
    """How many events go together at most."""
    batch_max_wait_seconds: float = 30.0
    """How long an event waits at most for others to go with."""
    queue_events: int = 10_000
    """Events that may wait, as kube-apiserver's --audit-webhook-batch-buffer-size."""
    queue_bytes: int = 64 * 1024 * 1024
    """What they may hold in memory."""


class WebhookBackend:
    """Takes events, and sends them while `run` runs. It owns the client."""

    def __init__(self, config: AuditWebhookConfig, client: ClusterClient) -> None:
        self.losses = Losses("webhook")
        self._config = config
        self._client = client
        self._waiting: deque[Entry] = deque()
        self._waiting_bytes = 0
        self._some, self._enough = asyncio.Event(), asyncio.Event()

    def put(self, entry: Entry) -> None:
        """See `Backend.put`."""
        size = entry.size_bytes
        too_large = self._waiting and self._waiting_bytes + size > self._config.queue_bytes
        if len(self._waiting) >= self._config.queue_events or too_large:
            self.losses.add(1, "the queue is full")
            return
        self._waiting.append(entry)
        self._waiting_bytes += size
        self._some.set()
        if len(self._waiting) >= self._config.batch_max_size:
            self._enough.set()

    async def run(self) -> None:
        """See `Backend.run`. At the end each batch is tried once."""
        connections = asyncio.create_task(self._client.run(), name="audit webhook connections")
        try:
            while True:
                await self._some.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._config.batch_max_wait_seconds):
                        await self._enough.wait()
                await self._send_batch(_ATTEMPTS)
        finally:
            try:
                async with asyncio.timeout(_END_SECONDS):
                    while self._waiting:
                        await self._send_batch(1)
            except TimeoutError:
                self.losses.add(len(self._waiting), "the server has ended")
            connections.cancel()
            await asyncio.wait([connections])

    async def _send_batch(self, attempts: int) -> None:
        """Send the next events, which go on waiting until they have arrived, or are lost."""
        batch = list(islice(self._waiting, self._config.batch_max_size))
        body = await asyncio.to_thread(self._list, batch)
        pause_seconds = self._config.initial_backoff_seconds
        for attempt in range(1, attempts + 1):
            try:
                await self._client.send("", body, timeout_seconds=_ANSWER_SECONDS)
                break
            except ClusterError as error:
                if attempt == attempts:
                    self.losses.add(len(batch), str(error))
                    break
            await asyncio.sleep(pause_seconds * random.uniform(1.0, 1.0 + _JITTER))
            pause_seconds *= _PAUSE_FACTOR
        for entry in batch:
            self._waiting.popleft()
            self._waiting_bytes -= entry.size_bytes
        if not self._waiting:
            self._some.clear()
        if len(self._waiting) < self._config.batch_max_size:
            self._enough.clear()

    def _list(self, batch: Sequence[Entry]) -> bytes:
        events = []
        for entry in batch:
            try:
                events.append(entry.line())
            except Exception as error:
                # A supervisor: whatever is wrong with one event, the others are sent.
                self.losses.add(1, str(error) or type(error).__name__)
        return b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[%s]}' % b",".join(events)
