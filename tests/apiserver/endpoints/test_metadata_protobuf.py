"""T066: metadata in protobuf, as client-go's metadata client asks for it first, and failures with it."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator

import aiohttp
import pytest

from apiserver.meta import protobuf
from tests.apiserver.reading import GADGETS, create, delete, read
from tests.apiserver.running import Listening
from tests.apiserver.status_assertions import assert_status

PROTOBUF = "application/vnd.kubernetes.protobuf"
ONE = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
MANY = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
CLIENT_GO = f"{ONE},application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
CLIENT_GO_MANY = f"{MANY},application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
WATCH_LIST = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


async def get(client: aiohttp.ClientSession, path: str, accept: str, **query: str) -> bytes:
    async with client.get(path, params=query, headers={"Accept": accept}) as response:
        assert response.status == 200, await response.text()
        assert response.headers["Content-Type"] == PROTOBUF
        return await response.read()


def of(value: dict[str, object], version: str = "v1") -> bytes:
    """The answer for an object, by its JSON."""
    message = protobuf.partial_object_metadata(value["metadata"])  # type: ignore[arg-type]
    return protobuf.envelope(f"meta.k8s.io/{version}", "PartialObjectMetadata", message)


def records(body: bytes) -> Iterator[bytes]:
    while body:
        length = int.from_bytes(body[:4], "big")
        yield body[4 : 4 + length]
        body = body[4 + length :]


@pytest.mark.parametrize("accept", [ONE, CLIENT_GO], ids=["alone", "client-go"])
async def test_one_object(client: aiohttp.ClientSession, accept: str) -> None:
    await create(client, "a", labels={"app": "a"})
    value = await read(client, f"{GADGETS}/a")
    assert await get(client, f"{GADGETS}/a", accept) == of(value)
    assert await get(client, f"{GADGETS}/a", accept.replace("v=v1", "v=v1beta1")) == of(value, "v1beta1")


async def test_an_object_that_is_written_or_deleted(client: aiohttp.ClientSession) -> None:
    await create(client, "a")
    headers = {"Accept": CLIENT_GO, "Content-Type": "application/merge-patch+json"}
    async with client.patch(f"{GADGETS}/a", data=b'{"metadata":{"labels":{"b":"c"}}}', headers=headers) as response:
        assert await response.read() == of(await read(client, f"{GADGETS}/a"))
    async with client.delete(f"{GADGETS}/a", headers={"Accept": CLIENT_GO}) as response:
        assert (response.status, response.headers["Content-Type"]) == (200, PROTOBUF)
        assert b"\x12\x06Status" in await response.read()


async def test_a_list(client: aiohttp.ClientSession) -> None:
    """Both versions of meta.k8s.io, which number their fields differently."""
    for name in ("a", "b", "c"):
        await create(client, name)
    listed = await read(client, GADGETS, limit=2)
    metadata = protobuf.list_meta(listed["metadata"])
    items = [protobuf.partial_object_metadata(item["metadata"]) for item in listed["items"]]
    first = b"".join((protobuf.embedded(1, metadata), *(protobuf.embedded(2, item) for item in items)))
    second = b"".join((*(protobuf.embedded(1, item) for item in items), protobuf.embedded(2, metadata)))
    for version, message in (("v1", first), ("v1beta1", second)):
        body = await get(client, GADGETS, CLIENT_GO_MANY.replace("v=v1", f"v={version}"), limit="2")
        assert body == protobuf.envelope(f"meta.k8s.io/{version}", "PartialObjectMetadataList", message)


async def test_a_list_of_nothing(client: aiohttp.ClientSession) -> None:
    revision = (await read(client, GADGETS))["metadata"]["resourceVersion"].encode()
    assert await get(client, GADGETS, MANY) == (
        b"k8s\x00\n+\n\x0emeta.k8s.io/v1\x12\x19PartialObjectMetadataList\x12%c\n%c\n\x00\x12%c%b\x1a\x00\x1a\x00\"\x00"
        % (len(revision) + 8, len(revision) + 6, len(revision), revision)
    )  # fmt: skip


async def test_a_large_list_is_compressed(client: aiohttp.ClientSession, server: Listening) -> None:
    names = [f"g{number}-{'n' * 200}" for number in range(700)]
    for start in range(0, 700, 50):
        await asyncio.gather(*(create(client, name) for name in names[start : start + 50]))
    async with client.get(GADGETS, headers={"Accept": MANY, "Accept-Encoding": "identity"}) as response:
        plain = await response.read()
    async with server.client(server.pki.admin, auto_decompress=False) as raw:
        response = await raw.get(GADGETS, headers={"Accept": MANY, "Accept-Encoding": "gzip"})
        assert (response.headers["Content-Type"], response.headers["Content-Encoding"]) == (PROTOBUF, "gzip")
        assert gzip.decompress(await response.read()) == plain
    assert all(name.encode() in plain for name in names)


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_a_watch(client: aiohttp.ClientSession, encoding: str) -> None:
    made = await create(client, "a")
    headers = {"Accept": CLIENT_GO, "Accept-Encoding": encoding}
    async with client.get(GADGETS, params=WATCH_LIST | {"timeoutSeconds": "1"}, headers=headers) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == f"{PROTOBUF};stream=watch"
        other = await create(client, "b")
        await delete(client, "b")
        added, bookmark, more, deleted, *last = records(await response.read())
    assert added == protobuf.watch_event(b"ADDED", of(made))
    assert bookmark.startswith(b"\n\x08BOOKMARK")
    assert b"k8s.io/initial-events-end" in bookmark
    assert more == protobuf.watch_event(b"ADDED", of(other))
    assert deleted.startswith(b"\n\x07DELETED")
    assert all(event.startswith(b"\n\x08BOOKMARK") for event in last)


async def test_a_watch_over_websocket(client: aiohttp.ClientSession) -> None:
    made = await create(client, "a")
    async with client.ws_connect(GADGETS, params={"watch": "true"}, origin="https://x", headers={"Accept": ONE}) as socket:
        assert await socket.receive_bytes(timeout=10) == protobuf.watch_event(b"ADDED", of(made))


async def test_an_error_in_a_watch(client: aiohttp.ClientSession) -> None:
    query = WATCH_LIST | {"resourceVersion": "1000000000"}
    async with client.get(GADGETS, params=query, headers={"Accept": ONE}) as response:
        (event,) = records(await response.read())
    assert event.startswith(b"\n\x05ERROR")
    assert b"\x12\x06Status" in event
    assert b'"\x07Timeout' in event


async def test_custom_resources_themselves_are_not_acceptable(client: aiohttp.ClientSession) -> None:
    """As upstream: the failure itself is written in what was asked for."""
    message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    failure = {"metadata": {}, "status": "Failure", "message": message, "reason": "NotAcceptable", "code": 406}
    for path, query in ((GADGETS, {}), (f"{GADGETS}/a", {}), (f"{GADGETS}/a/scale", {}), (GADGETS, {"watch": "true"})):
        async with client.get(path, params=query, headers={"Accept": PROTOBUF}) as response:
            assert (response.status, response.headers["Content-Type"]) == (406, PROTOBUF)
            assert await response.read() == protobuf.status(failure)
    async with client.get(GADGETS, headers={"Accept": f"{PROTOBUF}, */*"}) as response:
        assert (response.status, response.content_type) == (200, "application/json")
    async with client.get(GADGETS, headers={"Accept": f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1"}) as response:
        await assert_status(response, 406, "NotAcceptable")


@pytest.mark.parametrize(
    ("accept", "content_type", "beginning"),
    [
        pytest.param(f"{PROTOBUF},application/json", PROTOBUF, b"k8s\x00\n\x0c\n\x02v1\x12\x06Status", id="protobuf first"),
        pytest.param(CLIENT_GO, "application/json", b'{"kind":"Status"', id="client-go"),
        pytest.param(ONE, "application/json", b'{\n  "kind": "Status"', id="nothing but a conversion"),
        pytest.param("application/json;as=Table;g=meta.k8s.io;v=v1", "application/json", b'{\n  "kind"', id="nothing but a table"),
        pytest.param("application/yaml", "application/yaml", b"apiVersion: v1\ncode: 404\n", id="yaml"),
    ],
)
async def test_a_failure_comes_in_the_first_form_that_it_can_have(
    client: aiohttp.ClientSession, accept: str, content_type: str, beginning: bytes
) -> None:
    async with client.get(f"{GADGETS}/nope", headers={"Accept": accept}) as response:
        body = await response.read()
        assert (response.status, response.headers["Content-Type"]) == (404, content_type)
    assert body.startswith(beginning)
    assert body.endswith(b"\n") == (not body.startswith((b"{\n", b"k8s")))
