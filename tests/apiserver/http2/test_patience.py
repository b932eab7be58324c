"""Who is slow, or says no more, holds what is bounded, and not for ever."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

import pytest
from aiohttp import web

from apiserver.certificates import Certificates
from apiserver.config import ListenConfig
from apiserver.endpoints.body import read_body
from apiserver.filters.deadline import Deadlines
from apiserver.http2.body import Body
from apiserver.request import Call
from http2 import frames
from http2.frames import ErrorCode
from tests.apiserver.http2.talking import Client, talking
from tests.apiserver.running import Listening
from tests.apiserver.shell import shell

STREAMS = 100
PIECE = b"x" * 10_000


class Endless:
    """Writes without end, and counts what it has written, and to how many."""

    def __init__(self) -> None:
        self.written_bytes = 0
        self.running = 0
        self.all_ended = asyncio.Event()

    async def __call__(self, call: Call) -> web.StreamResponse:
        if call.info.path == "/livez":
            return web.Response(body=b"ok")
        response = web.StreamResponse()
        await response.prepare(call.http)
        self.running += 1
        try:
            while True:
                await response.write(PIECE)
                self.written_bytes += len(PIECE)
        finally:
            self.running -= 1
            if not self.running:
                self.all_ended.set()


@pytest.fixture
def endpoint() -> Endless:
    return Endless()


async def heard(client: Client) -> None:
    """Wait until everything that has been said was taken up."""
    pongs = client.pongs
    client.send(frames.frame(frames.PING, 0, 0, bytes(8)))
    while client.pongs == pongs:
        await client.next()


@pytest.mark.parametrize("window", [0, 1])
async def test_cve_2019_9511_many_streams_of_tiny_windows_are_not_written_to_without_end(
    listener: Listening, endpoint: Endless, window: int
) -> None:
    async with talking(listener, settings={frames.INITIAL_WINDOW_SIZE: window}) as client:
        client.generous = False
        streams = [client.ask("GET", "/endless") for _ in range(STREAMS)]
        while not all(client.answers[stream].headers for stream in streams):
            await client.next()
        for _ in range(20):
            client.send(*(frames.window_update(stream, 1) for stream in streams))
            await heard(client)
        assert endpoint.running == STREAMS
        assert endpoint.written_bytes < STREAMS * 100_000
        assert all(len(client.answers[stream].body) <= window + 20 for stream in streams)
        async with talking(listener) as other:
            assert (await other.answer(other.ask("GET", "/livez"))).body == b"ok"
        client.send(*(frames.rst_stream(stream, ErrorCode.CANCEL) for stream in streams))
        await endpoint.all_ended.wait()


async def test_cve_2019_9517_an_open_window_over_a_closed_socket_is_not_written_to_without_end(
    listener: Listening, endpoint: Endless
) -> None:
    async with talking(listener, settings={frames.INITIAL_WINDOW_SIZE: frames.MAX_WINDOW_BYTES}) as client:
        client.send(frames.window_update(0, frames.MAX_WINDOW_BYTES - frames.WINDOW_BYTES))
        for _ in range(STREAMS):
            client.ask("GET", "/endless")
        # Others are answered, again and again, while nothing is read here.
        async with talking(listener) as other:
            for _ in range(STREAMS):
                assert (await other.answer(other.ask("GET", "/livez"))).body == b"ok"
        # What the sockets hold, some megabytes, and for each stream what it may have waiting.
        assert endpoint.written_bytes < STREAMS * 100_000 + 20_000_000
        client.writer.transport.abort()
        await endpoint.all_ended.wait()


async def test_bodies_that_never_come_are_waited_for_as_long_as_any_request_may_take(pki: Certificates) -> None:
    async def read(call: Call) -> web.Response:
        return web.Response(body=await read_body(call))

    deadlines = Deadlines(timeout_seconds=0.1, look_every_seconds=0.05)
    cutting = asyncio.create_task(deadlines.run())
    async with shell(pki, read, deadlines=deadlines) as listener, talking(listener) as client:
        streams = [client.ask("POST", "/x", ended=False) for _ in range(STREAMS)]
        for stream in streams:
            answer = await client.answer(stream)
            assert answer.status == 504
            while answer.reset is None:
                await client.next()
            assert answer.reset == ErrorCode.NO_ERROR
        cutting.cancel()
        with suppress(asyncio.CancelledError):
            await cutting
        whole = client.ask("POST", "/x", ended=False)
        client.data(whole, b"body", ended=True)
        assert (await client.answer(whole)).body == b"body"


async def test_a_connection_that_asks_for_nothing_is_left(pki: Certificates) -> None:
    async with shell(pki, listen=ListenConfig(secure_port=0, keep_alive_seconds=0.05)) as listener, talking(listener) as client:
        assert await client.end() == ErrorCode.NO_ERROR


async def test_a_body_in_the_smallest_pieces_takes_no_more_room_than_one_in_large_ones() -> None:
    read: list[int] = []
    body = Body(read.append)
    for _ in range(100_000):
        body.feed(b"x", ended=False)
    assert sys.getsizeof(body._buffer) < 200_000
    assert await body.readany() == b"x" * 100_000
    assert read == [100_000]
    body.feed(b"", ended=True)
    assert body.is_eof()
    assert body.at_eof()
    assert await body.readany() == b""


async def test_who_reads_a_body_hears_that_its_client_has_gone() -> None:
    body = Body(lambda _: None)
    reading = asyncio.create_task(body.readany())
    await asyncio.sleep(0)
    body.set_exception(ConnectionResetError("gone"))
    with pytest.raises(ConnectionResetError):
        await reading
    with pytest.raises(ConnectionResetError):
        await body.readany()
