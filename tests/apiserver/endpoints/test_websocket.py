"""T067: a watch over WebSocket, and what becomes of a connection whose handshake is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest

from apiserver.certificates import KeyPair
from tests.apiserver.reading import ALL_GADGETS, GADGETS, TABLE, brief, create, delete, read, watching
from tests.apiserver.running import Listening

ORIGIN = "https://headlamp.example"
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Origin": ORIGIN,
}


@asynccontextmanager
async def messages(
    client: aiohttp.ClientSession, path: str = GADGETS, *, accept: str = "application/json", protocols: tuple[str, ...] = (), **query: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    address = client.ws_connect(
        path, params={"watch": "true"} | query, origin=ORIGIN, headers={"Accept": accept}, protocols=protocols, max_msg_size=0
    )
    async with asyncio.timeout(20), address as socket:
        yield socket


async def next_event(socket: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    text = await socket.receive_str()
    assert text.endswith("\n")
    event: dict[str, Any] = orjson.loads(text)
    return event


async def exchange(server: Listening, headers: dict[str, str], identity: KeyPair | None, *, path: str, then: bytes = b"") -> bytes:
    """Send a request with these headers and whatever follows, and read until the server closes."""
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=server.tls(identity))
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode() + then)
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.transport.abort()


async def test_messages_are_the_lines_of_the_stream(client: aiohttp.ClientSession) -> None:
    """T067"""
    await create(client, "small")
    await create(client, "middle", note="n" * 1000)
    await create(client, "large", note="n" * 70_000)
    async with watching(client) as events, messages(client) as socket:
        await create(client, "later")
        await delete(client, "small")
        streamed = await events.take(5)
        assert [await next_event(socket) for _ in range(5)] == streamed
        assert [brief(event)[0] for event in streamed] == ["ADDED", "ADDED", "ADDED", "ADDED", "DELETED"]


async def test_each_event_is_one_message_however_many_come_at_once(client: aiohttp.ClientSession) -> None:
    async with messages(client, ALL_GADGETS) as socket:
        await asyncio.gather(*(create(client, f"g{number}") for number in range(50)))
        got = [brief(await next_event(socket))[1] for _ in range(50)]
        assert sorted(got) == sorted(f"g{number}" for number in range(50))


async def test_a_table_is_watched_in_messages(client: aiohttp.ClientSession) -> None:
    await create(client, "a")
    async with messages(client, accept=TABLE) as socket:
        await create(client, "b")
        first, second = await next_event(socket), await next_event(socket)
        assert first["object"]["columnDefinitions"]
        assert not second["object"].get("columnDefinitions")


async def test_the_time_out_closes_the_socket(client: aiohttp.ClientSession) -> None:
    async with messages(client, timeoutSeconds="1") as socket:
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
        assert socket.close_code == 1000


async def test_an_error_is_a_message_and_the_end(client: aiohttp.ClientSession) -> None:
    """T067"""
    ahead = messages(client, resourceVersion="1000000000", sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
    async with ahead as socket:
        assert (await next_event(socket))["type"] == "ERROR"
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE


@pytest.mark.parametrize("abruptly", [True, False], ids=["going", "closing"])
async def test_a_client_that_leaves_leaves_nothing_behind(client: aiohttp.ClientSession, server: Listening, abruptly: bool) -> None:
    assert server.app is not None
    watches = server.app._watches
    async with messages(client) as socket:
        await create(client, "a")
        await next_event(socket)
        assert sum(map(len, watches)) == 1
        if abruptly:
            transport = socket.get_extra_info("socket")
            assert transport is not None
            assert socket._response.connection is not None
            assert socket._response.connection.transport is not None
            socket._response.connection.transport.abort()
        else:
            await socket.close()
            assert socket.close_code == 1000
        async with asyncio.timeout(10):
            while sum(map(len, watches)):
                await read(client, GADGETS)


async def test_what_a_client_says_is_ignored_and_its_pings_are_answered(client: aiohttp.ClientSession) -> None:
    async with messages(client) as socket:
        for _ in range(100):  # more in sum than the head of a request may have
            await socket.send_bytes(b"n" * 60_000)
        await socket.ping(b"are you there?")
        await create(client, "a")
        assert brief(await next_event(socket)) == ("ADDED", "a")


async def test_a_message_that_is_too_long_closes_the_socket(client: aiohttp.ClientSession) -> None:
    async with messages(client) as socket:
        await socket.send_bytes(b"n" * 100_000)
        message = await socket.receive()
        assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 1009)


@pytest.mark.parametrize(
    ("protocols", "confirmed"),
    [
        pytest.param((), None, id="none"),
        pytest.param(("base64.binary.k8s.io",), "base64.binary.k8s.io", id="one"),
        pytest.param(
            ("base64url.bearer.authorization.k8s.io.dG9rZW4", "base64.binary.k8s.io"), "base64.binary.k8s.io", id="one and a token"
        ),
    ],
)
async def test_a_subprotocol_is_confirmed_and_a_token_is_not(
    client: aiohttp.ClientSession, protocols: tuple[str, ...], confirmed: str | None
) -> None:
    async with messages(client, protocols=protocols) as socket:
        assert socket.protocol == confirmed


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"Sec-WebSocket-Version": "12"}, 400, id="version"),
        pytest.param({"Sec-WebSocket-Key": ""}, 400, id="no key"),
        pytest.param({"Sec-WebSocket-Key": "abc"}, 400, id="short key"),
        pytest.param({"Origin": ""}, 403, id="no origin"),
        pytest.param({"Origin": "null"}, 403, id="a page without an address"),
        pytest.param({"Origin": "%zz"}, 403, id="no address as origin"),
        pytest.param({"Sec-WebSocket-Protocol": "a, b"}, 400, id="two subprotocols"),
    ],
)
async def test_a_refused_handshake_ends_the_connection(server: Listening, change: dict[str, str], code: int) -> None:
    """CVE-2018-1002105: what follows it is no second request, and no stream either."""
    then = f"GET {GADGETS} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    answer = await exchange(server, HANDSHAKE | change, server.pki.admin, path=f"{GADGETS}?watch=true", then=then)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % code)
    assert b"Connection: close" in head
    assert orjson.loads(body)["code"] == code
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_socket_is_for_those_who_may_watch(server: Listening, user: KeyPair) -> None:
    for identity, code in ((None, b"401"), (user, b"403")):
        answer = await exchange(server, HANDSHAKE, identity, path=f"{GADGETS}?watch=true")
        assert answer.startswith(b"HTTP/1.1 %b " % code)
        assert b"Connection: close" in answer


async def test_a_list_is_a_list_whatever_it_wants_to_become(server: Listening) -> None:
    answer = await exchange(server, HANDSHAKE, server.pki.admin, path=GADGETS)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"kind":"GadgetList"' in answer
