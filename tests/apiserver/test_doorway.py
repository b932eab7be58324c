"""What comes from a socket waits for its turn in front of TLS, and nothing of it is lost or mistaken for something else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count

import pytest
import uvloop
from aiohttp import web

from apiserver import server
from apiserver.certificates import Certificates
from apiserver.request import Peer
from apiserver.turns import Turns
from tests.apiserver.running import Listening, listening

MEGABYTE = b"m" * 1_000_000
Test = Callable[[Listening], Coroutine[None, None, None]]


async def echo(http: web.BaseRequest, _peer: Peer) -> web.StreamResponse:
    return web.Response(body=await http.read())


async def requests_are_answered(listener: Listening) -> None:
    async with listener.client(listener.pki.admin) as client:
        for _ in range(3):
            async with client.post("/x", data=MEGABYTE) as answer:
                assert await answer.read() == MEGABYTE
        answers = await asyncio.gather(*(client.get("/x") for _ in range(40)))
        assert [answer.status for answer in answers] == [200] * 40


async def one_after_the_other_on_a_connection(listener: Listening) -> None:
    tls = listener.tls(listener.pki.admin)
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=tls, server_hostname="localhost")
    bodies = [b"%03d" % number for number in range(20)]
    for body in bodies:
        writer.write(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n" + body)
        await asyncio.sleep(0)
    for body in bodies:
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(3) == body
    writer.close()
    await writer.wait_closed()


async def those_who_leave_are_let_go(listener: Listening) -> None:
    """In TLS's way, in TCP's way, with a request half sent, and before TLS was there."""
    tls = listener.tls(listener.pki.admin)
    for leave in ("close", "abort", "half", "silent"):
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=tls if leave != "silent" else None)
        if leave == "half":
            writer.write(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nm")
            await writer.drain()
        if leave == "abort":
            writer.transport.abort()
        else:
            writer.close()
    connections = listener.server._listener
    assert connections is not None
    async with asyncio.timeout(10):
        while connections.connections or listener.server.handshakes:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def what_is_no_tls_fails_in_the_handshake(listener: Listening) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert not (await reader.read()).startswith(b"HTTP")
    writer.close()
    async with asyncio.timeout(10):
        while not listener.server._failed():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("run", [pytest.param(uvloop.run, id="uvloop"), pytest.param(asyncio.run, id="asyncio")])
@pytest.mark.parametrize("always_long", [pytest.param(False, id="passes are short"), pytest.param(True, id="every pass is long")])
@pytest.mark.parametrize(
    "test", [requests_are_answered, one_after_the_other_on_a_connection, those_who_leave_are_let_go, what_is_no_tls_fails_in_the_handshake]
)
def test_whatever_comes_through_the_doorway(
    pki: Certificates, test: Test, run: Callable[[Coroutine[None, None, None]], None], always_long: bool
) -> None:
    async def work() -> None:
        # A second passes between any two looks at the clock: nothing is ever done at once.
        turns = Turns(clock=count().__next__) if always_long else Turns()
        async with listening(pki, echo, turns=turns) as listener:
            await test(listener)

    run(work())


async def test_a_stop_waits_for_a_client_that_has_not_taken_all_of_its_answer(pki: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_CLOSE_SECONDS", 60)

    async def much(_http: web.BaseRequest, _peer: Peer) -> web.StreamResponse:
        return web.Response(body=MEGABYTE * 20)

    async with listening(pki, much) as listener:
        tls = listener.tls(pki.admin)
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=tls, server_hostname="localhost", limit=1)
        writer.write(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.read(1)
        stopping = asyncio.create_task(listener.server.stop(timeout_seconds=5))
        await asyncio.sleep(0.1)
        assert not stopping.done()
        received = 0
        while piece := await reader.read(1 << 20):
            received += len(piece)
        await stopping
    assert received > 20 * len(MEGABYTE)
    writer.close()


async def test_a_stop_waits_for_no_client_that_takes_nothing(pki: Certificates) -> None:
    async def much(_http: web.BaseRequest, _peer: Peer) -> web.StreamResponse:
        return web.Response(body=MEGABYTE * 20)

    async with listening(pki, much) as listener:
        tls = listener.tls(pki.admin)
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=tls, server_hostname="localhost", limit=1)
        writer.write(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.read(1)
        async with asyncio.timeout(10):
            await listener.server.stop(timeout_seconds=0.2)
    writer.transport.abort()
