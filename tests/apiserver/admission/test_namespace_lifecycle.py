"""Creating in namespaces that are not there, not there yet, or going away. The server is real; only its kube-apiserver is made up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from apiserver.access import standalone
from apiserver.admission import namespace_lifecycle
from apiserver.admission.create_authorization import CreateAuthorization
from apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from apiserver.app import build_app
from apiserver.certificates import Certificates
from apiserver.config import Config
from apiserver.meta import errors
from apiserver.meta.errors import GroupResource
from apiserver.request import RequestInfo, User
from storage.memory import MemoryStore
from tests.apiserver.cluster.fake_cluster import FakeCluster, fake_cluster
from tests.apiserver.running import listening
from tests.apiserver.status_assertions import assert_status

NAMESPACES = "/api/v1/namespaces"
ACTIVE, TERMINATING = {"phase": "Active"}, {"phase": "Terminating"}


def gadgets(namespace: str) -> str:
    return f"/apis/example.dev/v1/namespaces/{namespace}/gadgets"


def gadget(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": metadata, "spec": {}}


class Denying:
    """An authorizer of creations that says no to one name."""

    def __init__(self) -> None:
        self.asked: list[RequestInfo] = []

    async def check(self, user: User, info: RequestInfo) -> None:
        self.asked.append(info)
        if info.name == "forbidden":
            raise errors.forbidden(GroupResource(info.group, info.resource), info.name, f"{user.name} cannot {info.verb}")


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.put(NAMESPACES, "ns1", status=ACTIVE)
    cluster.put(NAMESPACES, "going", status=TERMINATING)
    return cluster


@pytest.fixture
def denying() -> Denying:
    return Denying()


@pytest.fixture
async def client(
    pki: Certificates, store: MemoryStore, config: Config, cluster: FakeCluster, denying: Denying
) -> AsyncIterator[aiohttp.ClientSession]:
    async with fake_cluster(cluster) as core:
        lifecycle = NamespaceLifecycle(core)
        access = standalone([pki.authority.certificate])
        validators = (CreateAuthorization(denying.check),)
        app = build_app(config, store, replace(access, mutators=(lifecycle,), validators=validators, tasks=(lifecycle.run,)))
        async with app.running():
            await app.wait_ready()
            async with listening(pki, app.handle, app=app) as running, running.client(pki.admin) as client:
                yield client


async def test_what_exists_takes_objects(client: aiohttp.ClientSession, cluster: FakeCluster) -> None:
    await cluster.watching.acquire()
    async with client.post(gadgets("ns1"), json=gadget(name="g1")) as response:
        assert response.status == 201
    requests = len(cluster.headers)
    async with client.post(gadgets("ns1"), json=gadget(name="g2")) as response:
        assert response.status == 201
    assert len(cluster.headers) == requests


async def test_a_missing_namespace_is_a_404_of_the_namespace(client: aiohttp.ClientSession) -> None:
    async with client.post(gadgets("nowhere"), json=gadget(name="g1")) as response:
        status = await assert_status(response, 404, "NotFound")
    assert (status["message"], status["details"]) == ('namespaces "nowhere" not found', {"name": "nowhere", "kind": "namespaces"})


async def test_it_is_refused_before_the_object_is_looked_at(client: aiohttp.ClientSession) -> None:
    async with client.post(gadgets("nowhere"), json={**gadget(name="g1"), "spec": {"replicas": -1}}) as response:
        await assert_status(response, 404, "NotFound")


@pytest.mark.parametrize(("metadata", "name"), [({"name": "g1"}, "g1"), ({"generateName": "g-"}, "g-")])
async def test_a_terminating_namespace_takes_nothing_new(client: aiohttp.ClientSession, metadata: dict[str, str], name: str) -> None:
    async with client.post(gadgets("going"), json=gadget(**metadata), params={"dryRun": "All"}) as response:
        status = await assert_status(response, 403, "Forbidden")
    assert status["message"] == (
        f'gadgets.example.dev "{name}" is forbidden: unable to create new content in namespace going because it is being terminated'
    )
    assert status["details"] == {
        "name": name,
        "group": "example.dev",
        "kind": "gadgets",
        "causes": [{"reason": "NamespaceTerminating", "message": "namespace going is being terminated", "field": "metadata.namespace"}],
    }


async def test_what_is_there_can_be_changed_and_deleted_while_its_namespace_goes(
    client: aiohttp.ClientSession, cluster: FakeCluster
) -> None:
    await cluster.watching.acquire()
    async with client.post(gadgets("ns1"), json=gadget(name="g1", finalizers=["example.dev/wait"])) as response:
        value = await response.json()
    cluster.put(NAMESPACES, "ns1", status=TERMINATING)
    while True:
        async with client.post(gadgets("ns1"), json=gadget(name="g2"), params={"dryRun": "All"}) as response:
            if response.status == 403:
                break
    async with client.put(f"{gadgets('ns1')}/g1", json={**value, "spec": {"replicas": 3}}) as response:
        assert response.status == 200
    async with client.delete(gadgets("ns1")) as response:
        assert response.status == 200
    patch = {"metadata": {"finalizers": None}}
    async with client.patch(f"{gadgets('ns1')}/g1", json=patch, headers={"Content-Type": "application/merge-patch+json"}) as response:
        assert response.status == 200


async def test_a_fresh_namespace_is_waited_for_a_moment(
    client: aiohttp.ClientSession, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.watching.acquire()
    monkeypatch.setattr(namespace_lifecycle, "_WAIT_SECONDS", 60.0)
    requests = len(cluster.headers)
    creating = asyncio.create_task(client.post(gadgets("fresh"), json=gadget(name="g1")).__aenter__())
    cluster.put(NAMESPACES, "other", status=ACTIVE)
    cluster.put(NAMESPACES, "fresh", status=ACTIVE)
    assert (await creating).status == 201
    assert len(cluster.headers) == requests


async def test_a_namespace_that_the_watch_has_not_told_is_asked_for(client: aiohttp.ClientSession, cluster: FakeCluster) -> None:
    await cluster.watching.acquire()
    cluster.objects[NAMESPACES]["silent"] = {"metadata": {"name": "silent"}, "status": ACTIVE}
    async with client.post(gadgets("silent"), json=gadget(name="g1")) as response:
        assert response.status == 201


async def test_a_namespace_that_has_gone_takes_nothing(client: aiohttp.ClientSession, cluster: FakeCluster) -> None:
    await cluster.watching.acquire()
    cluster.remove(NAMESPACES, "ns1")
    while True:
        async with client.post(gadgets("ns1"), json=gadget(name="g1"), params={"dryRun": "All"}) as response:
            if response.status == 404:
                break


async def test_without_an_answer_nothing_is_created(client: aiohttp.ClientSession, cluster: FakeCluster) -> None:
    await cluster.watching.acquire()
    cluster.refusal = 503
    async with client.post(gadgets("unknown"), json=gadget(name="g1")) as response:
        await assert_status(response, 500, "InternalError")
    async with client.post(gadgets("ns1"), json=gadget(name="g1")) as response:
        assert response.status == 201


async def test_objects_outside_of_namespaces_need_none(client: aiohttp.ClientSession) -> None:
    value = {"apiVersion": "example.dev/v1", "kind": "ClusterGadget", "metadata": {"name": "c1"}, "spec": {}}
    async with client.post("/apis/example.dev/v1/clustergadgets", json=value) as response:
        assert response.status == 201


async def test_an_apply_that_creates_needs_the_permission_to_create(client: aiohttp.ClientSession, denying: Denying) -> None:
    async def apply(name: str, namespace: str = "ns1") -> aiohttp.ClientResponse:
        return await client.patch(
            f"{gadgets(namespace)}/{name}",
            json=gadget(name=name),
            params={"fieldManager": "test"},
            headers={"Content-Type": "application/apply-patch+yaml"},
        )

    async with await apply("forbidden") as response:
        await assert_status(response, 403, "Forbidden")
    async with await apply("g1") as response:
        assert response.status == 201
    async with await apply("g1") as response:
        assert response.status == 200
    async with await apply("g1", "nowhere") as response:
        await assert_status(response, 404, "NotFound")
    assert [(info.verb, info.name) for info in denying.asked] == [("create", "forbidden"), ("create", "g1")]
    async with client.post(gadgets("ns1"), json=gadget(name="g2")) as response:
        assert response.status == 201
    assert len(denying.asked) == 2
