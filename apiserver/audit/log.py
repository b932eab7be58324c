"""The audit log: what the policy wants written down goes to every backend.

No request waits for its event: kube-apiserver's mode `batch`. What a backend loses is counted (`apiserver_audit_error_total`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from apiserver.audit.file import AuditLogConfig
from apiserver.audit.webhook import AuditWebhookConfig

if TYPE_CHECKING:
    from prometheus_client import Metric

    from apiserver.audit.backend import Backend
    from apiserver.audit.event import Entry
    from apiserver.audit.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    """What is written down of requests, and where; the flags are kube-apiserver's."""

    policy_file: Path | None = None
    """What is written down. None: nothing."""
    log: AuditLogConfig = field(default_factory=AuditLogConfig)
    webhook: AuditWebhookConfig = field(default_factory=AuditWebhookConfig)


class AuditLog:
    """Hands events to backends. The owner awaits `run` as a task."""

    def __init__(self, policy: Policy, backends: tuple[Backend, ...]) -> None:
        self.policy = policy
        self._backends = backends
        self._events = 0
        self._levels: Counter[str] = Counter()

    def note_level(self, level: str) -> None:
        """Count what was decided about a request."""
        self._levels[level] += 1

    def put(self, entry: Entry) -> None:
        """Have an event written."""
        self._events += 1
        for backend in self._backends:
            backend.put(entry)

    async def run(self) -> None:
        """Keep the backends going, until this is cancelled; then they pass on what still waits."""
        async with asyncio.TaskGroup() as group:
            for backend in self._backends:
                group.create_task(backend.run(), name=f"audit {backend.losses.plugin}")

    def collect(self) -> Iterator[Metric]:
        """What has become of the events, under kube-apiserver's names."""
        from prometheus_client.core import CounterMetricFamily

        yield CounterMetricFamily("apiserver_audit_event", "Audit events, lost ones too.", value=self._events)
        errors = CounterMetricFamily("apiserver_audit_error", "Audit events that were lost.", labels=("plugin",))
        for backend in self._backends:
            errors.add_metric((backend.losses.plugin,), backend.losses.count)
        levels = CounterMetricFamily("apiserver_audit_level", "Requests by their audit level.", labels=("level",))
        for level, count in self._levels.items():
            levels.add_metric((level,), count)
        yield from (errors, levels)
