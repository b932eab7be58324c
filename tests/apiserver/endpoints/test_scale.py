"""The scale subresource, over real HTTP."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from tests.apiserver.endpoints.gadget_requests import GADGETS, JSON_PATCH, MERGE, gadget
from tests.apiserver.status_assertions import assert_status

X = f"{GADGETS}/x"
SCALE = f"{X}/scale"


@pytest.fixture
async def value(client: aiohttp.ClientSession) -> dict[str, Any]:
    async with client.post(GADGETS, json=gadget(spec={"replicas": 2, "note": "hello"})) as response:
        created: dict[str, Any] = await response.json()
        return created


def scale(replicas: int | None, **metadata: str) -> dict[str, Any]:
    spec = {} if replicas is None else {"replicas": replicas}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "x", **metadata}, "spec": spec}


async def test_a_scale_shows_both_numbers(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    """T083"""
    async with client.patch(f"{X}/status", json={"status": {"readyReplicas": 1}}, headers=MERGE) as response:
        metadata = (await response.json())["metadata"]
    async with client.get(SCALE) as response:
        assert await response.json() == {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")},
            "spec": {"replicas": 2},
            "status": {"replicas": 1},
        }


async def test_scaling_touches_one_field(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    """T084"""
    async with client.put(SCALE, json={**scale(5), "status": {"replicas": 99}}) as response:
        scaled = await response.json()
        assert response.status == 200
    assert (scaled["spec"], scaled["status"]) == ({"replicas": 5}, {"replicas": 0})
    async with client.get(X) as response:
        changed = await response.json()
    assert changed["spec"] == {"replicas": 5, "note": "hello"}
    assert changed["metadata"]["generation"] == 2
    assert changed["metadata"]["resourceVersion"] == scaled["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("patch", "headers"),
    [({"spec": {"replicas": 5}}, MERGE), ([{"op": "replace", "path": "/spec/replicas", "value": 5}], JSON_PATCH)],
    ids=["merge", "json"],
)
async def test_a_scale_can_be_patched(client: aiohttp.ClientSession, value: dict[str, Any], patch: Any, headers: dict[str, str]) -> None:
    """T084"""
    async with client.patch(SCALE, json=patch, headers=headers) as response:
        assert (await response.json())["spec"] == {"replicas": 5}


async def test_nothing_said_is_the_typed_zero(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    """T084"""
    async with client.put(SCALE, json=scale(None)) as response:
        assert (await response.json())["spec"] == {}
    async with client.get(X) as response:
        assert (await response.json())["spec"]["replicas"] == 0


@pytest.mark.parametrize(
    ("body", "code", "reason", "message"),
    [
        pytest.param(scale(5, resourceVersion="1"), 409, "Conflict", "the object has been modified", id="stale"),
        pytest.param(scale(5, uid="other"), 409, "Conflict", "UID in precondition: other", id="other-uid"),
        pytest.param(scale(-1), 422, "Invalid", ".spec.replicas: Invalid value: -1: should be a non-negative integer", id="negative"),
        pytest.param({**scale(1), "metadata": {"name": "y"}}, 400, "BadRequest", "does not match the name on the URL (x)", id="other-name"),
        pytest.param(scale(3_000_000_000), 400, "BadRequest", "ScaleSpec.spec.replicas of type int32", id="too-large"),
        pytest.param({**scale(1), "spec": {"replicas": "1"}}, 400, "BadRequest", "cannot unmarshal string", id="text"),
        pytest.param(gadget(), 400, "BadRequest", 'no kind "Gadget" is registered', id="other-kind"),
    ],
)
async def test_a_scale_that_cannot_be_is_told(
    client: aiohttp.ClientSession, value: dict[str, Any], body: dict[str, Any], code: int, reason: str, message: str
) -> None:
    """T084"""
    async with client.put(SCALE, json=body) as response:
        assert message in (await assert_status(response, code, reason))["message"]
    async with client.get(X) as response:
        assert await response.json() == value


async def test_null_is_a_scale_without_members(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    """T084: as Go's decoder has it."""
    answers = []
    for body in ("null", "{}"):
        async with client.put(SCALE, data=body, headers={"Content-Type": "application/json"}) as response:
            answers.append(await assert_status(response, 400, "BadRequest"))
    assert answers[0] == answers[1]


async def test_a_dry_run_scales_nothing(client: aiohttp.ClientSession, value: dict[str, Any]) -> None:
    """T014"""
    async with client.put(f"{SCALE}?dryRun=All", json=scale(5)) as response:
        assert (await response.json())["spec"] == {"replicas": 5}
    async with client.get(X) as response:
        assert await response.json() == value


async def test_what_is_not_there_has_no_scale(client: aiohttp.ClientSession) -> None:
    """T084"""
    for method, options in (("GET", {}), ("PUT", {"json": scale(1)}), ("PATCH", {"json": {}, "headers": MERGE})):
        async with client.request(method, SCALE, **options) as response:
            await assert_status(response, 404, "NotFound")
