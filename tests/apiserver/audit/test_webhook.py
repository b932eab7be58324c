"""Audit events are sent in batches to a server that takes them, again where it did not, and never hold anybody up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from aiohttp import web

from apiserver.audit.log import AuditLog
from apiserver.audit.policy import Policy
from apiserver.audit.webhook import AuditWebhookConfig, WebhookBackend
from apiserver.cluster.client import ClusterClient
from apiserver.cluster.kubeconfig import Kubeconfig
from tests.apiserver.audit.test_file import entry


class Receiver:
    """Takes event lists, once it has answered with the `codes` that come first."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.lists: list[dict[str, Any]] = []
        self.arrived = asyncio.Semaphore(0)
        self.url = ""

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.lists.append(orjson.loads(await request.read()))
        self.arrived.release()
        return web.Response(status=self.codes.pop(0) if self.codes else 200)

    @property
    def batches(self) -> list[list[str]]:
        """The audit ids of each list."""
        return [[event["auditID"] for event in one["items"]] for one in self.lists]


@asynccontextmanager
async def receiving(*codes: int) -> AsyncIterator[Receiver]:
    receiver = Receiver(*codes)
    runner = web.ServerRunner(web.Server(receiver.serve))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/audit"
    try:
        yield receiver
    finally:
        await runner.cleanup()


@asynccontextmanager
async def sending(url: str, **settings: Any) -> AsyncIterator[WebhookBackend]:
    backend = WebhookBackend(AuditWebhookConfig(initial_backoff_seconds=0.0, **settings), ClusterClient(Kubeconfig(server=url)))
    running = asyncio.create_task(backend.run())
    await asyncio.sleep(0)  # it has begun
    try:
        yield backend
    finally:
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()


async def test_events_go_together_when_there_are_enough_or_it_is_time() -> None:
    async with receiving() as receiver, sending(receiver.url, batch_max_size=3, batch_max_wait_seconds=0.01) as backend:
        for number in range(7):
            backend.put(entry(f"e{number}"))
        for _ in range(3):
            await receiver.arrived.acquire()
        backend.put(entry("later"))
        await receiver.arrived.acquire()
    # At the end the last one is sent again when its answer has not been read yet.
    assert receiver.batches[:4] == [["e0", "e1", "e2"], ["e3", "e4", "e5"], ["e6"], ["later"]]
    assert {(one["kind"], one["apiVersion"]) for one in receiver.lists} == {("EventList", "audit.k8s.io/v1")}
    assert receiver.lists[0]["items"][0]["kind"] == "Event"


async def test_what_waits_at_the_end_is_sent() -> None:
    async with receiving() as receiver:
        async with sending(receiver.url, batch_max_size=4) as backend:
            for number in range(6):
                backend.put(entry(f"e{number}"))
        assert receiver.batches == [["e0", "e1", "e2", "e3"], ["e4", "e5"]]
        assert backend.losses.count == 0


async def test_a_batch_that_was_not_taken_is_sent_again_and_lost_after_the_fifth_time(caplog: pytest.LogCaptureFixture) -> None:
    async with receiving(500, 404, 429, 503, *[500] * 5) as receiver, sending(receiver.url, batch_max_wait_seconds=0.0) as backend:
        backend.put(entry("kept"))
        for _ in range(5):
            await receiver.arrived.acquire()
        assert backend.losses.count == 0
        backend.put(entry("lost"))
        for _ in range(5):
            await receiver.arrived.acquire()
        backend.put(entry("next"))
        await receiver.arrived.acquire()
    assert receiver.batches[:11] == [["kept"]] * 5 + [["lost"]] * 5 + [["next"]]
    assert backend.losses.count == 1
    assert caplog.text.count("audit events are lost") == 1


async def test_nobody_who_takes_them_holds_nobody_up_and_the_queue_is_bounded() -> None:
    """Nothing listens at that port."""
    async with sending("http://127.0.0.1:1/audit", queue_events=10, queue_bytes=100_000) as backend:
        for number in range(15):
            backend.put(entry(f"e{number}"))
        assert backend.losses.count == 5
        backend.put(entry("large", body=b"x" * 200_000))
        assert backend.losses.count == 6
    assert backend.losses.count == 16


async def test_every_backend_gets_each_event_and_losses_are_told_by_plugin() -> None:
    policy = Policy.model_validate({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]})
    async with receiving() as one, receiving() as two:
        config = AuditWebhookConfig(queue_events=1)
        log = AuditLog(policy, tuple(WebhookBackend(config, ClusterClient(Kubeconfig(server=receiver.url))) for receiver in (one, two)))
        running = asyncio.create_task(log.run())
        await asyncio.sleep(0)
        log.note_level("Metadata")
        log.put(entry("a"))
        log.put(entry("b"))
        running.cancel()
        await asyncio.wait([running])
        assert one.batches == two.batches == [["a"]]
    told = {(sample.name, *sample.labels.values()): sample.value for metric in log.collect() for sample in metric.samples}
    assert told["apiserver_audit_event_total",] == 2
    assert told["apiserver_audit_error_total", "webhook"] == 1
    assert told["apiserver_audit_level_total", "Metadata"] == 1
