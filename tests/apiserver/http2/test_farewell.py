"""A connection is left when its client has no request that has chosen it and is not here yet, as far as one can know."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from apiserver.request import Call
from http2 import frames
from http2.frames import ErrorCode
from tests.apiserver.http2.talking import Client, Frame, talking
from tests.apiserver.running import Listening

RUNNING = 3


class Endpoint:
    """Answers, but not on `/wait` until it may."""

    def __init__(self) -> None:
        self.running = 0
        self.all_run = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self, call: Call) -> web.StreamResponse:
        if call.info.path == "/wait":
            self.running += 1
            if self.running == RUNNING:
                self.all_run.set()
            await self.may_end.wait()
        return web.Response(body=b"done")


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint()


async def parted(client: Client, listener: Listening, endpoint: Endpoint) -> list[int]:
    """The streams of a connection that is just being left."""
    streams = [client.ask("GET", "/wait") for _ in range(RUNNING)]
    await endpoint.all_run.wait()
    listener.server.part()
    return streams


def limit(frame: Frame) -> int | None:
    """How many streams the client may have, when this says it."""
    said = frame.type == frames.SETTINGS and not frame.flags & frames.ACK
    return dict(frames.settings_of(frame.payload)).get(frames.MAX_CONCURRENT_STREAMS) if said else None


async def until_limit(client: Client, streams: int) -> None:
    """Read until the client is told of this limit, and has said that it keeps to it."""
    while limit(await client.next()) != streams:
        pass


async def test_one_that_is_quiet_has_next_to_no_room_for_more_before_the_farewell(listener: Listening, endpoint: Endpoint) -> None:
    async with talking(listener) as client:
        streams = await parted(client, listener, endpoint)
        limits = []
        while client.gone_away is None:
            if (streams_allowed := limit(await client.next())) is not None:
                limits.append(streams_allowed)
        assert limits == [100, 100, RUNNING + 1]
        assert client.gone_away == ErrorCode.NO_ERROR
        endpoint.may_end.set()
        for stream in streams:
            assert (await client.answer(stream)).body == b"done"
        assert await client.end() == ErrorCode.NO_ERROR


async def test_nothing_is_answered_between_the_limit_and_the_farewell(listener: Listening, endpoint: Endpoint) -> None:
    async with talking(listener) as client:
        streams = await parted(client, listener, endpoint)
        await until_limit(client, RUNNING + 1)
        endpoint.may_end.set()
        # It takes the last place: nobody else can have chosen this connection.
        streams.append(client.ask("GET", "/none"))
        heard = await client.next()
        assert heard.type == frames.GOAWAY
        assert frames.uint(heard.payload) == frames.MAX_WINDOW_BYTES
        for stream in streams:
            assert (await client.answer(stream)).body == b"done"
        assert await client.end() == ErrorCode.NO_ERROR


async def test_who_keeps_asking_is_given_room_in_proportion(listener: Listening, endpoint: Endpoint) -> None:
    async with talking(listener) as client:
        await parted(client, listener, endpoint)
        streams = [client.ask("GET", "/none") for _ in range(10)]
        await until_limit(client, RUNNING + 10 + 1 + 2 * 10)
        streams += [client.ask("GET", "/none") for _ in range(21)]
        assert (await client.next()).type == frames.GOAWAY
        for stream in streams:
            assert (await client.answer(stream)).body == b"done"
        endpoint.may_end.set()


async def test_a_stream_that_is_given_up_makes_room(listener: Listening, endpoint: Endpoint) -> None:
    async with talking(listener) as client:
        given_up, *streams = await parted(client, listener, endpoint)
        client.send(frames.rst_stream(given_up, ErrorCode.CANCEL))
        await until_limit(client, RUNNING)
        endpoint.may_end.set()
        for stream in streams:
            assert (await client.answer(stream)).body == b"done"
        assert await client.end() == ErrorCode.NO_ERROR


async def test_who_says_nothing_of_the_limit_is_told_in_the_end(listener: Listening, endpoint: Endpoint) -> None:
    async with talking(listener) as client:
        await client.next()
        streams = await parted(client, listener, endpoint)
        client.obedient = False
        endpoint.may_end.set()
        for stream in streams:
            assert (await client.answer(stream)).body == b"done"
        assert await client.end() == ErrorCode.NO_ERROR


async def test_an_unused_connection_is_left_with_its_first_request(listener: Listening, endpoint: Endpoint) -> None:
    async with talking(listener) as used, talking(listener) as unused:
        streams = await parted(used, listener, endpoint)
        stream = unused.ask("GET", "/none")
        await until_limit(unused, 2)
        assert (await unused.answer(stream)).body == b"done"
        assert await unused.end() == ErrorCode.NO_ERROR
        endpoint.may_end.set()
        for stream in streams:
            assert (await used.answer(stream)).body == b"done"


async def test_what_runs_when_the_server_stops_has_as_long_as_over_http_1_1(listener: Listening, endpoint: Endpoint) -> None:
    async with talking(listener) as client:
        streams = await parted(client, listener, endpoint)
        stopping = asyncio.create_task(listener.server.stop(timeout_seconds=20))
        while client.gone_away is None:
            await client.next()
        for stream in streams:
            assert not client.answers[stream].ended
        endpoint.may_end.set()
        for stream in streams:
            assert (await client.answer(stream)).body == b"done"
        assert await client.end() == ErrorCode.NO_ERROR
        await stopping
