"""A watch that begins with a list, compressed: one gzip file that any client can read while it grows, and that ends well."""

from __future__ import annotations

import asyncio
import zlib
from typing import Any

import aiohttp
import orjson
import pytest

from tests.apiserver.reading import GADGETS, METADATA, TABLE, brief, change, create, delete, watching

WATCH_LIST = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


class Unpacked:
    """The events of a compressed watch, unpacked as they come."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._decompressor = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._text = b""

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(10):
            while b"\n" not in self._text:
                piece = await self._response.content.readany()
                assert piece, "the stream has ended"
                self._text += self._decompressor.decompress(piece)
        line, _, self._text = self._text.partition(b"\n")
        event: dict[str, Any] = orjson.loads(line)
        return event

    async def end(self) -> None:
        """Check that the file ends here, with the right sum."""
        async with asyncio.timeout(10):
            self._text += self._decompressor.decompress(await self._response.content.read())
        assert (self._text, self._decompressor.eof, self._decompressor.unused_data) == (b"", True, b"")


async def open_watch(client: aiohttp.ClientSession, *, accept: str = "application/json", **query: str) -> aiohttp.ClientResponse:
    headers = {"Accept": accept, "Accept-Encoding": "gzip"}
    return await client.get(GADGETS, params={"watch": "true"} | query, headers=headers)


@pytest.fixture
async def raw(server: Any) -> Any:
    """A client that does not unpack."""
    async with server.client(server.pki.admin, auto_decompress=False) as session:
        yield session


@pytest.mark.parametrize(
    ("accept", "query"),
    [
        pytest.param("application/json", {}, id="objects"),
        pytest.param(METADATA, {}, id="metadata"),
        pytest.param(TABLE, {}, id="table"),
        pytest.param("application/json", {"labelSelector": "app=a"}, id="selected"),
    ],
)
async def test_it_unfolds_to_the_events_of_a_plain_one(
    client: aiohttp.ClientSession, raw: aiohttp.ClientSession, accept: str, query: dict[str, str]
) -> None:
    for name in ("x", "y", "z"):
        await create(client, name, labels={"app": "a"}, note=name * 1000)
    query = WATCH_LIST | query | {"timeoutSeconds": "2"}
    for turn in range(2):  # what is kept with the block is sent the second time
        plain = await raw.get(GADGETS, params={"watch": "true"} | query, headers={"Accept": accept, "Accept-Encoding": "identity"})
        packed = await open_watch(raw, accept=accept, **query)
        assert "Content-Encoding" not in plain.headers
        assert (packed.headers["Content-Encoding"], packed.headers["Vary"]) == ("gzip", "Accept-Encoding")
        events = Unpacked(packed)
        got = [await events.next() for _ in range(4)]
        await change(client, "x", {"spec": {"note": f"changed {turn} " * 50}})
        await delete(client, "y")
        got += [await events.next() for _ in range(2)]
        await events.end()
        lines = [orjson.loads(line) for line in (await plain.read()).splitlines()]
        assert [event["type"] for event in got] == ["ADDED", "ADDED", "ADDED", "BOOKMARK", "MODIFIED", "DELETED"]
        if accept != TABLE:  # which shows ages
            assert got == lines[:6]
        await create(client, "y", labels={"app": "a"})


async def test_an_error_ends_it_well(raw: aiohttp.ClientSession) -> None:
    events = Unpacked(await open_watch(raw, **WATCH_LIST, resourceVersion="1000000000"))
    assert (await events.next())["type"] == "ERROR"
    await events.end()


async def test_a_client_that_unpacks_by_itself_sees_nothing_of_it(client: aiohttp.ClientSession) -> None:
    await create(client, "a")
    async with watching(client, **WATCH_LIST) as events:
        assert events.response.headers["Content-Encoding"] == "gzip"
        assert brief(await events.next()) == ("ADDED", "a")
        assert (await events.next())["type"] == "BOOKMARK"
        await create(client, "b")
        assert brief(await events.next()) == ("ADDED", "b")


@pytest.mark.parametrize(
    ("encoding", "query"),
    [
        pytest.param("gzip", {}, id="no list at its beginning"),
        pytest.param("gzip", {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}, id="no bookmarks"),
        pytest.param("identity", WATCH_LIST, id="not wanted"),
        pytest.param("gzip;q=0.5", WATCH_LIST, id="wanted in a way that kube-apiserver does not read"),
    ],
)
async def test_other_watches_are_not_compressed(raw: aiohttp.ClientSession, encoding: str, query: dict[str, str]) -> None:
    response = await raw.get(GADGETS, params={"watch": "true", "timeoutSeconds": "1"} | query, headers={"Accept-Encoding": encoding})
    assert response.status == 200
    assert "Content-Encoding" not in response.headers
    response.close()
