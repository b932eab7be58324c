"""T025: bodies up to 3 MiB through the real listener, with and without an announced length, and with `Expect: 100-continue`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO

import aiohttp
import pytest

from tests.apiserver.conftest import GADGETS
from tests.apiserver.running import Listening
from tests.apiserver.status_assertions import assert_status

LIMIT_BYTES = 3_145_728


def gadget(name: str, size_bytes: int) -> bytes:
    start = b'{"apiVersion":"example.dev/v1","kind":"Gadget","metadata":{"name":"%s"},"spec":{"note":"' % name.encode()
    return start + b"x" * (size_bytes - len(start) - 3) + b'"}}'


async def in_chunks(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 100_000):
        yield body[start : start + 100_000]


@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
@pytest.mark.parametrize("expect", [False, True], ids=["at once", "100-continue"])
async def test_t025_bodies_up_to_3_mebibytes_are_taken(client: aiohttp.ClientSession, chunked: bool, expect: bool) -> None:
    headers = {"Content-Type": "application/json"}
    for number, size_bytes in enumerate((1_258_291, LIMIT_BYTES)):
        body = gadget(f"g{number}", size_bytes)
        data = in_chunks(body) if chunked else BytesIO(body)
        async with client.post(GADGETS, data=data, headers=headers, expect100=expect) as response:
            assert response.status == 201, await response.text()


@pytest.mark.parametrize("size_bytes", [LIMIT_BYTES + 1, 4 * 1024 * 1024])
@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
@pytest.mark.parametrize(
    ("method", "path", "content_type"),
    [
        ("POST", GADGETS, "application/json"),
        ("PUT", f"{GADGETS}/g", "application/json"),
        ("PATCH", f"{GADGETS}/g", "application/merge-patch+json"),
    ],
)
async def test_t025_one_byte_more_is_a_413_status_and_the_client_can_go_on(
    client: aiohttp.ClientSession, method: str, path: str, content_type: str, chunked: bool, size_bytes: int
) -> None:
    async with client.post(GADGETS, data=gadget("g", 200), headers={"Content-Type": "application/json"}) as response:
        assert response.status == 201
    body = gadget("g", size_bytes)
    data = in_chunks(body) if chunked else BytesIO(body)
    async with client.request(method, path, data=data, headers={"Content-Type": content_type}) as response:
        status = await assert_status(response, 413, "RequestEntityTooLarge")
        assert "limit is 3145728" in status["message"]
    async with client.get(f"{GADGETS}/g") as response:
        assert response.status == 200


async def test_a_client_that_waits_for_a_word_gets_it_only_when_its_body_is_wanted(server: Listening) -> None:
    head = "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n"
    for identity, size_bytes, answer in (
        (server.pki.admin, 200, b"HTTP/1.1 100 Continue\r\n"),
        (server.pki.admin, LIMIT_BYTES + 1, b"HTTP/1.1 413 Request Entity Too Large\r\n"),
        (None, 200, b"HTTP/1.1 401 Unauthorized\r\n"),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=server.tls(identity))
        writer.write((head % (GADGETS, size_bytes)).encode())
        assert await reader.readline() == answer
        writer.write(gadget("waited", size_bytes))
        if b"Continue" in answer:
            assert await reader.readline() == b"\r\n"
            assert await reader.readline() == b"HTTP/1.1 201 Created\r\n"
        writer.transport.abort()
