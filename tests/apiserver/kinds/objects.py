"""Objects of our kinds, as short as they can be, for tests to add to; and what tests ask of the answers."""

from __future__ import annotations

from typing import Any

import aiohttp
import orjson

Cause = tuple[str, str, str]
"""Reason, field and message of a cause, without `FieldValue` before the reason."""

POOLS = "/apis/clrk.apoxy.dev/v1alpha1/namespaces/ns1/workerpools"
WORKERS = "/apis/worker.saved.sh/v1alpha1/namespaces/ns1/localworkers"
IMAGE = "registry.example/w:1"


def pool(name: str = "", *, template: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A WorkerPool with this in its spec and its template. Without a name it asks for one."""
    return {
        "apiVersion": "clrk.apoxy.dev/v1alpha1",
        "kind": "WorkerPool",
        "metadata": {"name": name} if name else {"generateName": "pool-"},
        "spec": {"template": {"image": IMAGE, **(template or {})}, **spec},
    }


def worker(name: str = "", **spec: Any) -> dict[str, Any]:
    """A LocalWorker with this spec."""
    return {
        "apiVersion": "worker.saved.sh/v1alpha1",
        "kind": "LocalWorker",
        "metadata": {"name": name} if name else {"generateName": "worker-"},
        "spec": spec,
    }


async def create(client: aiohttp.ClientSession, path: str, value: dict[str, Any]) -> dict[str, Any]:
    """Create the object and return what the server made of it."""
    created, _ = await create_with_warnings(client, path, value)
    return created


async def create_with_warnings(client: aiohttp.ClientSession, path: str, value: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Create the object; return what the server made of it, and its Warning headers."""
    async with client.post(path, json=value) as response:
        body = await response.read()
        assert response.status == 201, body.decode()
        created: dict[str, Any] = orjson.loads(body)
        return created, response.headers.getall("Warning", [])


async def causes_of(response: aiohttp.ClientResponse) -> list[Cause]:
    """The causes of a 422, whose message must tell each of them."""
    status = orjson.loads(await response.read())
    assert (response.status, status.get("reason")) == (422, "Invalid"), status
    causes = [(cause["reason"], cause.get("field", ""), cause["message"]) for cause in status["details"]["causes"]]
    for _, field, message in causes:
        assert f"{field}: {message}" in status["message"]
    return [(reason.removeprefix("FieldValue"), field, message) for reason, field, message in causes]
