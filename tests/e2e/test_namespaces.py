"""A namespace with hundreds of objects of both kinds is deleted, with whoever still writes into it, and whoever owns finalizers there."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from tests.e2e.aggregated import until
from tests.e2e.replicated import Replicated
from tests.e2e.test_replicas import MERGE, answer, client, pools
from tests.kubectl.running import pool, worker

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

EACH, HELD_EACH = 250, 25


def workers(namespace: str) -> str:
    return f"/apis/worker.saved.sh/v1alpha1/namespaces/{namespace}/localworkers"


async def write_on(session: aiohttp.ClientSession, path: str, value: dict[str, Any], terminating: asyncio.Event) -> int:
    """Create objects until the namespace is gone, and return how many could be. Once one was refused, none is taken any more."""
    taken = 0
    while True:
        async with session.post(path, json={**value, "metadata": {"generateName": "late-"}}) as response:
            said = await response.json()
        if response.status == 201:
            assert not terminating.is_set()
            taken += 1
        elif response.status == 403:
            assert said["details"]["causes"][0]["reason"] == "NamespaceTerminating"
            terminating.set()
        else:
            assert (response.status, said["details"]["kind"]) == (404, "namespaces"), said
            return taken


async def remove_finalizers(session: aiohttp.ClientSession, path: str) -> None:
    """Do as an operator does: let go of each object that is being deleted."""
    listed = await answer(session.get(path))
    for item in listed["items"]:
        assert "deletionTimestamp" in item["metadata"]
        released = await answer(session.patch(f"{path}/{item['metadata']['name']}", json={"metadata": {"finalizers": None}}, headers=MERGE))
        assert "finalizers" not in released["metadata"]


async def test_t081_a_namespace_with_500_objects_goes_while_a_replica_is_restarted(service: Replicated) -> None:
    name = "five-hundred"
    service.cluster.namespace(name)
    paths = {pools(name): pool("x"), workers(name): worker("x")}
    one, two = service.replicas
    async with client(service, one) as first, client(service, two) as second:
        for path, value in paths.items():
            held = [{"finalizers": ["example.dev/hold"]} if number < HELD_EACH else {} for number in range(EACH)]
            values = [{**value, "metadata": {"name": f"x{number}", **held[number]}} for number in range(EACH)]
            await asyncio.gather(*(answer(first.post(path, json=one)) for one in values))
        async with client(service, two, raise_for_status=False) as late, asyncio.TaskGroup() as writing:
            late_writers = [writing.create_task(write_on(late, path, value, asyncio.Event())) for path, value in paths.items()]
            await asyncio.to_thread(service.cluster.kubectl, "delete", "namespace", name, "--wait=false")
            await asyncio.to_thread(one.end)
            conditions: dict[str, str] = {}

            async def only_held_are_left() -> bool:
                namespace = json.loads(await asyncio.to_thread(service.cluster.kubectl, "get", "namespace", name, "-o", "json"))
                conditions.update({told["type"]: told["message"] for told in namespace["status"].get("conditions", ())})
                said = conditions.get("NamespaceContentRemaining", "")
                return all(
                    f"{kind} has {HELD_EACH} resource instances" in said
                    for kind in ("workerpools.clrk.apoxy.dev", "localworkers.worker.saved.sh")
                )

            await until(only_held_are_left)
            assert f"example.dev/hold in {2 * HELD_EACH} resource instances" in conditions["NamespaceFinalizersRemaining"]
            for path in paths:
                assert len((await answer(second.get(path)))["items"]) == HELD_EACH
                await remove_finalizers(second, path)
            await asyncio.to_thread(service.cluster.kubectl, "wait", "--for=delete", f"namespace/{name}", "--timeout=60s")
        assert sum(writer.result() for writer in late_writers) > 0
        await asyncio.to_thread(one.start)
        await asyncio.to_thread(service.wait_ready)
    async with client(service, one) as first:
        for path in paths:
            assert (await answer(first.get(path)))["items"] == []
