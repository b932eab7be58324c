"""What tests of lists and watches need: gadgets, and the events of a watch one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson

GADGETS = "/apis/example.dev/v1/namespaces/ns1/gadgets"
ALL_GADGETS = "/apis/example.dev/v1/gadgets"

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def gadgets_of(namespace: str) -> str:
    """The address of the gadgets of a namespace."""
    return f"/apis/example.dev/v1/namespaces/{namespace}/gadgets"


def gadget(name: str, *, labels: dict[str, str] | None = None, note: str | None = None) -> dict[str, Any]:
    """A gadget as a client writes it."""
    metadata: dict[str, Any] = {"name": name}
    if labels:
        metadata["labels"] = labels
    spec: dict[str, Any] = {"replicas": 1} | ({"note": note} if note else {})
    return {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": metadata, "spec": spec}


async def create(
    client: aiohttp.ClientSession, name: str, *, namespace: str = "ns1", labels: dict[str, str] | None = None, note: str | None = None
) -> dict[str, Any]:
    """Create a gadget, and return what the server made of it."""
    async with client.post(gadgets_of(namespace), json=gadget(name, labels=labels, note=note)) as response:
        assert response.status == 201, await response.text()
        created: dict[str, Any] = await response.json()
        return created


async def change(client: aiohttp.ClientSession, name: str, patch: dict[str, Any]) -> dict[str, Any]:
    """Change a gadget of ns1 by a merge patch."""
    headers = {"Content-Type": "application/merge-patch+json"}
    async with client.patch(f"{GADGETS}/{name}", data=orjson.dumps(patch), headers=headers) as response:
        assert response.status == 200, await response.text()
        changed: dict[str, Any] = await response.json()
        return changed


async def delete(client: aiohttp.ClientSession, name: str) -> None:
    """Delete a gadget of ns1."""
    async with client.delete(f"{GADGETS}/{name}") as response:
        assert response.status == 200, await response.text()


async def read(client: aiohttp.ClientSession, path: str, *, accept: str = "application/json", **query: str | int) -> dict[str, Any]:
    """GET a document."""
    parameters = {name.rstrip("_"): str(value) for name, value in query.items()}
    async with client.get(path, params=parameters, headers={"Accept": accept}) as response:
        assert response.status == 200, await response.text()
        document: dict[str, Any] = orjson.loads(await response.read())
        return document


def names(listed: dict[str, Any]) -> list[str]:
    """The names of the items of a list."""
    return [item["metadata"]["name"] for item in listed["items"]]


class Events:
    """The events of a watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> dict[str, Any]:
        """The next event; fails when none comes, or the stream ends."""
        async with asyncio.timeout(10):
            line = await self.response.content.readline()
        assert line.endswith(b"\n"), f"the stream has ended with {line!r}"
        event: dict[str, Any] = orjson.loads(line)
        return event

    async def take(self, count: int) -> list[dict[str, Any]]:
        """The next events."""
        return [await self.next() for _ in range(count)]

    async def end(self) -> None:
        """Check that the stream ends here, cleanly."""
        async with asyncio.timeout(10):
            assert await self.response.content.read() == b""


@asynccontextmanager
async def watching(
    client: aiohttp.ClientSession, path: str = GADGETS, *, accept: str = "application/json", **query: str
) -> AsyncIterator[Events]:
    """Watch until the end of the block."""
    async with client.get(path, params={"watch": "true"} | query, headers={"Accept": accept}) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "application/json"
        yield Events(response)


def brief(event: dict[str, Any]) -> tuple[str, str]:
    """Type and name."""
    return event["type"], event["object"]["metadata"].get("name", "")
