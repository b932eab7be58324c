"""Every rule of a LocalWorker, over HTTP."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from apiserver.kinds.local_worker import LocalWorker
from apiserver.meta.resource import describe
from apiserver.registry.stored_object import ObjectCodec
from storage.memory import MemoryStore
from tests.apiserver.kinds.objects import WORKERS, Cause, causes_of, create, worker
from tests.apiserver.status_assertions import assert_status

pytestmark = pytest.mark.asyncio(loop_scope="module")

REFERENCE = "spec.configSecretRef"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="empty"),
        pytest.param({"image": "ghcr.io/savedhq/local-worker:v0.1.0"}, id="image"),
        pytest.param({"image": ""}, id="image_empty"),
        pytest.param({"configSecretRef": "saved-worker-config"}, id="secret"),
        pytest.param({"configSecretRef": "a.b-c.1"}, id="secret_with_dots"),
        pytest.param({"configSecretRef": "a" * 253}, id="longest_secret"),
    ],
)
async def test_a_spec_is_accepted_as_written(client: aiohttp.ClientSession, spec: dict[str, Any]) -> None:
    created = await create(client, WORKERS, worker(**spec))
    assert created["spec"] == spec


async def test_nulls_are_pruned(client: aiohttp.ClientSession) -> None:
    assert (await create(client, WORKERS, worker(image=None, configSecretRef=None)))["spec"] == {}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        *(
            pytest.param({"configSecretRef": name}, ("Invalid", REFERENCE, f'Invalid value: "{name}": {SUBDOMAIN}'), id=what)
            for what, name in (
                ("slash", "other/config"),
                ("capital", "Config"),
                ("empty", ""),
                ("underscore", "a_b"),
                ("leading_dash", "-a"),
                ("trailing_dot", "a."),
            )
        ),
        pytest.param(
            {"configSecretRef": "a" * 254},
            ("Invalid", REFERENCE, f'Invalid value: "{"a" * 254}": must be no more than 253 characters'),
            id="too_long",
        ),
        pytest.param(
            {"configSecretRef": 5},
            ("TypeInvalid", REFERENCE, f'Invalid value: "integer": {REFERENCE} in body must be of type string: "integer"'),
            id="number",
        ),
        pytest.param(
            {"configSecretRef": {"name": "a"}},
            ("TypeInvalid", REFERENCE, f'Invalid value: "object": {REFERENCE} in body must be of type string: "object"'),
            id="object",
        ),
        pytest.param(
            {"image": 5},
            ("TypeInvalid", "spec.image", 'Invalid value: "integer": spec.image in body must be of type string: "integer"'),
            id="image_number",
        ),
        pytest.param(None, ("Required", "spec", "Required value"), id="no_spec"),
        pytest.param("x", ("TypeInvalid", "spec", 'Invalid value: "string": spec in body must be of type object: "string"'), id="text"),
    ],
)
async def test_a_wrong_spec_is_refused(client: aiohttp.ClientSession, spec: Any, expected: Cause) -> None:
    async with client.post(WORKERS, json={**worker(), "spec": spec}) as response:
        assert await causes_of(response) == [expected]


async def test_an_invalid_object_stays_writable_as_long_as_its_spec_does_not_change(
    client: aiohttp.ClientSession, store: MemoryStore
) -> None:
    codec = ObjectCodec(describe(LocalWorker))
    value = worker("old", configSecretRef="Not/A/Name")
    value["metadata"] |= {"namespace": "ns1", "uid": "11111111-2222-3333-4444-555555555555", "generation": 1}
    await store.create(codec.key("ns1", "old"), codec.encode(value).value)
    merge = {"Content-Type": "application/merge-patch+json"}
    async with client.patch(f"{WORKERS}/old/status", json={"status": {"conditions": []}}, headers=merge) as response:
        assert response.status == 200
    async with client.patch(f"{WORKERS}/old", json={"metadata": {"labels": {"a": "b"}}}, headers=merge) as response:
        assert response.status == 200
    async with client.patch(f"{WORKERS}/old", json={"spec": {"image": "x"}}, headers=merge) as response:
        assert [field for _, field, _ in await causes_of(response)] == [REFERENCE]


async def test_the_table_shows_whether_a_worker_polls(client: aiohttp.ClientSession) -> None:
    created = await create(client, WORKERS, worker("table", image="w", configSecretRef="config"))
    table_form = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    async with client.get(f"{WORKERS}/table", headers=table_form) as response:
        table = await response.json()
    assert [(column["name"], column["type"], column["priority"]) for column in table["columnDefinitions"]] == [
        ("Name", "string", 0),
        ("Image", "string", 0),
        ("Config", "string", 0),
        ("Polling", "string", 0),
        ("Age", "date", 0),
    ]
    assert table["rows"][0]["cells"][:4] == ["table", "w", "config", None]
    condition = {"status": "False", "reason": "None", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    conditions = [{"type": "Ready", **condition}, {"type": "Polling", **condition, "status": "True"}]
    async with client.put(f"{WORKERS}/table/status", json={**created, "status": {"conditions": conditions}}) as response:
        assert response.status == 200
    async with client.get(f"{WORKERS}/table", headers=table_form) as response:
        assert (await response.json())["rows"][0]["cells"][:4] == ["table", "w", "config", "True"]


async def test_a_worker_cannot_be_scaled(client: aiohttp.ClientSession) -> None:
    await create(client, WORKERS, worker("one"))
    async with client.get(f"{WORKERS}/one/scale") as response:
        await assert_status(response, 404, "NotFound")
