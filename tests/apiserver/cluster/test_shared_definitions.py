"""The cluster's words for shared types: read when it answers at last, and again when it has become another version."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from apiserver.cluster import shared_definitions
from apiserver.cluster.shared_definitions import SharedDefinitions
from tests.apiserver.cluster.fake_cluster import FakeCluster, fake_cluster

STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST_PAUSE_SECONDS", "_LONGEST_PAUSE_SECONDS", "_LOOK_AGAIN_SECONDS"):
        monkeypatch.setattr(shared_definitions, name, 0.01)


def tell(cluster: FakeCluster, version: str, **definitions: Any) -> None:
    cluster.put("/openapi", "v2", definitions={STATUS: {"description": f"as of {version}"}, **definitions})
    cluster.put("", "version", gitVersion=version)


@asynccontextmanager
async def reading(cluster: FakeCluster) -> AsyncIterator[asyncio.Queue[Mapping[str, Any]]]:
    """What is adopted, one after the other."""
    found: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
    async with fake_cluster(cluster) as client:
        task = asyncio.create_task(SharedDefinitions(client, found.put_nowait).run())
        yield found
        task.cancel()
        await asyncio.wait([task])


async def test_t010_what_both_have_is_taken_from_the_cluster_when_it_answers_at_last() -> None:
    cluster = FakeCluster(refusal=503)
    tell(cluster, "v1.37.2", **{"dev.apoxy.clrk.v1alpha1.WorkerPool": {"description": "of an older server of ours"}})
    async with reading(cluster) as found:
        for _ in range(3):
            await cluster.refused.acquire()
        assert found.empty()
        cluster.refusal = 0
        assert await found.get() == {STATUS: {"description": "as of v1.37.2"}}


async def test_a_cluster_of_another_version_is_read_again_and_otherwise_is_not() -> None:
    cluster = FakeCluster()
    tell(cluster, "v1.37.2")
    async with reading(cluster) as found:
        await found.get()
        # Its version has been asked for several times in the meantime.
        cluster.refusal = 503
        for _ in range(3):
            await cluster.refused.acquire()
        cluster.refusal = 0
        tell(cluster, "v1.38.0")
        assert await found.get() == {STATUS: {"description": "as of v1.38.0"}}
        assert found.empty()


@pytest.mark.parametrize("document", [{}, {"definitions": {}}], ids=["nothing", "no definitions"])
async def test_a_document_without_them_is_read_again(document: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    read, loop, shared = asyncio.Event(), asyncio.get_running_loop(), shared_definitions._shared

    def spied(body: bytes) -> dict[str, Any]:
        loop.call_soon_threadsafe(read.set)
        return shared(body)

    monkeypatch.setattr(shared_definitions, "_shared", spied)
    cluster = FakeCluster()
    cluster.put("/openapi", "v2", **document)
    cluster.put("", "version", gitVersion="v1.37.2")
    async with reading(cluster) as found:
        await read.wait()
        tell(cluster, "v1.37.2")
        # Of the document without them nothing was taken, or it would come first.
        assert STATUS in await found.get()
