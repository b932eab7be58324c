"""A whole response goes out exactly as aiohttp's own does, whatever asks for it."""

from __future__ import annotations

import asyncio
import re

import pytest
from aiohttp import web
from multidict import CIMultiDict

from apiserver.certificates import Certificates
from apiserver.request import Call
from apiserver.response import WholeResponse
from tests.apiserver.running import Listening
from tests.apiserver.shell import shell


async def _exchange(listener: Listening, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=listener.tls(listener.pki.admin))
    writer.write(request)
    received = await reader.readuntil(b"\r\n\r\n")
    # The rest; a connection that stays is closed with the answer to a second request.
    writer.write(b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    received += await reader.read(-1)
    writer.transport.abort()
    return re.sub(rb"\r\nDate: [^\r]+ GMT\r\n", b"\r\nDate: now\r\n", received)


@pytest.mark.parametrize(
    ("start", "code", "body"),
    [
        pytest.param("GET / HTTP/1.1\r\n", 200, b"body", id="get"),
        pytest.param("POST / HTTP/1.1\r\nContent-Length: 0\r\n", 201, b"body", id="post"),
        pytest.param("GET / HTTP/1.1\r\n", 200, b"", id="without a body"),
        pytest.param("GET / HTTP/1.1\r\n", 304, b"", id="not modified"),
        pytest.param("HEAD / HTTP/1.1\r\n", 200, b"body", id="head"),
        pytest.param("OPTIONS / HTTP/1.1\r\n", 405, b"body", id="options"),
        pytest.param("GET / HTTP/1.1\r\nConnection: close\r\n", 200, b"body", id="closing"),
        pytest.param("GET / HTTP/1.0\r\n", 200, b"body", id="old"),
        pytest.param("GET / HTTP/1.0\r\nConnection: keep-alive\r\n", 200, b"body", id="old and staying"),
        pytest.param("GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n", 200, b"body", id="declined upgrade"),
    ],
)
async def test_a_whole_response_is_written_as_one_of_aiohttp(pki: Certificates, start: str, code: int, body: bytes) -> None:
    async def whole(call: Call) -> web.Response:
        return WholeResponse(status=code, body=body, headers=CIMultiDict({"X-Own": "1", "Content-Type": "text/plain"}))

    async def aiohttps(call: Call) -> web.Response:
        return web.Response(status=code, body=body, headers={"X-Own": "1", "Content-Type": "text/plain"})

    received = []
    for endpoint in (whole, aiohttps):
        async with shell(pki, endpoint) as listener:
            received.append(await _exchange(listener, f"{start}Host: x\r\n\r\n".encode()))
    assert received[0] == received[1]
    assert b"X-Own: 1\r\n" in received[0]


async def test_a_response_that_is_to_end_its_connection_says_so(pki: Certificates) -> None:
    async def closing(call: Call) -> web.Response:
        response = WholeResponse(body=b"body", headers=CIMultiDict())
        response.force_close()
        return response

    async with shell(pki, closing) as listener:
        received = await _exchange(listener, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert received.count(b"HTTP/1.1 200 OK\r\n") == 1
    assert b"\r\nConnection: close\r\n" in received
