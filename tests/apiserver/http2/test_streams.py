"""Requests over HTTP/2 get what they get over HTTP/1.1, many at a time on one connection, and as fast as each is read."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from apiserver.endpoints.body import read_body
from apiserver.request import Call
from http2 import frames
from http2.frames import ErrorCode
from tests.apiserver.http2.talking import talking
from tests.apiserver.running import Listening

LARGE = bytes(range(256)) * 4096


class Endpoint:
    """Answers by path; tells what goes on in it."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()
        self.may_end = asyncio.Event()
        self.written_bytes = 0

    async def __call__(self, call: Call) -> web.StreamResponse:
        path = call.info.path
        if path == "/echo":
            return web.Response(body=await read_body(call))
        if path == "/none":
            return web.Response(status=204)
        if path == "/refused":
            return web.Response(status=403, body=b"no")
        if path == "/last":
            last = web.Response(body=b"last")
            last.force_close()
            return last
        if path == "/large":
            return web.Response(body=LARGE)
        if path == "/who":
            http = call.http
            return web.json_response({"user": call.user.name, "host": http.host, "headers": [list(pair) for pair in http.headers.items()]})
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(call.http)
        self.begun.set()
        try:
            if path == "/wait":
                await response.write(b"first")
                await self.may_end.wait()
            while path == "/endless":
                await response.write(b"x" * 10_000)
                self.written_bytes += 10_000
        finally:
            self.ended.set()
        await response.write(b"last")
        await response.write_eof()
        return response


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint()


async def test_a_request_is_understood_as_over_http_1_1(listener: Listening) -> None:
    async with talking(listener) as client:
        answer = await client.answer(client.ask("GET", "/who", ("x-one", "a"), ("x-one", "b"), ("te", "trailers")))
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/json; charset=utf-8"
        assert not {"connection", "transfer-encoding", "server"} & answer.headers.keys()
        assert b'"user": "admin", "host": "localhost"' in answer.body
        assert b'["x-one", "a"], ["x-one", "b"]' in answer.body


@pytest.mark.parametrize("length", [True, False], ids=["length-told", "length-not-told"])
async def test_bodies_come_in_pieces_with_and_without_a_length(listener: Listening, length: bool) -> None:
    async with talking(listener) as client:
        for end in (b"", b"!"):
            more = [("content-length", str(6 + len(end)))] if length else []
            stream = client.ask("POST", "/echo", *more, ended=False)
            client.data(stream, b"one")
            client.data(stream, b"two")
            client.data(stream, end, ended=True)
            assert (await client.answer(stream)).body == b"onetwo" + end


async def test_trailers_end_a_body_and_are_not_read(listener: Listening) -> None:
    async with talking(listener) as client:
        stream = client.ask("POST", "/echo", ended=False)
        client.data(stream, b"body")
        client.send(frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, stream, client.block(("x-sum", "1"))))
        assert (await client.answer(stream)).body == b"body"


async def test_answers_without_a_body_end_with_their_head(listener: Listening) -> None:
    async with talking(listener) as client:
        head = await client.answer(client.ask("HEAD", "/large"))
        assert (head.status, head.headers["content-length"], len(head.body)) == (200, str(len(LARGE)), 0)
        assert (await client.answer(client.ask("GET", "/none"))).status == 204
        assert (await client.answer(client.ask("GET", "/who"))).status == 200


async def test_who_waits_to_be_told_to_go_on_is_told_so(listener: Listening) -> None:
    async with talking(listener) as client:
        stream = client.ask("POST", "/echo", ("expect", "100-continue"), ("content-length", "4"), ended=False)
        while client.answers[stream].headers.get(":status") != "100":
            await client.next()
        client.data(stream, b"body", ended=True)
        answer = await client.answer(stream)
        assert answer.status == 200
        assert answer.body == b"body"


async def test_answers_that_end_a_connection_of_http_1_1_do_not_end_this_one(listener: Listening) -> None:
    async with talking(listener) as client:
        for _ in range(50):
            answer = await client.answer(client.ask("GET", "/last"))
            assert (answer.reset, answer.status) == (None, 200)
            assert "connection" not in answer.headers


async def test_many_are_answered_at_a_time_and_in_any_order(listener: Listening, endpoint: Endpoint) -> None:
    async with talking(listener) as client:
        waiting = client.ask("GET", "/wait")
        others = [client.ask("GET", "/large") for _ in range(20)]
        for stream in others:
            assert (await client.answer(stream)).body == LARGE
        assert not client.answers[waiting].ended
        endpoint.may_end.set()
        assert (await client.answer(waiting)).body == b"firstlast"


async def test_nothing_is_sent_beyond_the_windows(listener: Listening, endpoint: Endpoint) -> None:
    async with talking(listener, settings={frames.INITIAL_WINDOW_SIZE: 100}) as client:
        client.generous = False
        stream = client.ask("GET", "/large")
        other = client.ask("GET", "/who")
        while len(client.answers[stream].body) < 100:
            await client.next()
        client.send(frames.window_update(stream, 1_000), frames.frame(frames.PING, 0, 0, bytes(8)))
        while not client.pongs:
            await client.next()
        while len(client.answers[stream].body) < 1_100:
            await client.next()
        # All that there is may be sent, by the other window alone: that of the connection has its 65,535 bytes.
        client.send(frames.settings_frame({frames.INITIAL_WINDOW_SIZE: 1_000_000}))
        assert (await client.answer(other)).ended
        while len(client.answers[stream].body) + len(client.answers[other].body) < frames.WINDOW_BYTES:
            await client.next()
        client.send(frames.window_update(0, 10_000_000), frames.window_update(stream, 1_000_000))
        assert (await client.answer(stream)).body == LARGE


async def test_who_does_not_read_is_not_written_to_without_end(listener: Listening, endpoint: Endpoint) -> None:
    async with talking(listener) as client:
        client.generous = False
        stream = client.ask("GET", "/endless")
        await endpoint.begun.wait()
        assert (await client.answer(client.ask("GET", "/none"))).status == 204
        while len(client.answers[stream].body) < frames.WINDOW_BYTES:
            await client.next()
        assert endpoint.written_bytes < 400_000
        client.send(frames.rst_stream(stream, ErrorCode.CANCEL))
        await endpoint.ended.wait()


async def test_a_body_that_nobody_reads_is_not_taken_without_end(listener: Listening, endpoint: Endpoint) -> None:
    async with talking(listener) as client:
        stream = client.ask("POST", "/wait", ended=False)
        await endpoint.begun.wait()
        client.send(*(frames.frame(frames.DATA, 0, stream, bytes(16_000)) for _ in range(16)), frames.frame(frames.PING, 0, 0, bytes(8)))
        while not client.pongs:
            await client.next()
        assert client.credit.get(stream, 0) <= 256_000
        endpoint.may_end.set()
        answer = await client.answer(stream)
        assert answer.body == b"firstlast"


async def test_a_large_body_is_taken_as_it_is_read_and_one_that_is_too_large_is_refused(listener: Listening) -> None:
    async with talking(listener) as client:
        stream = client.ask("POST", "/echo", ended=False)
        left = client.settings.get(frames.INITIAL_WINDOW_SIZE, 0)
        while not left:
            await client.next()
            left = client.settings.get(frames.INITIAL_WINDOW_SIZE, 0)
        for at in range(0, len(LARGE), 16_384):
            while left + client.credit.get(stream, 0) < at + 16_384:
                await client.next()
            client.data(stream, LARGE[at : at + 16_384], ended=at + 16_384 >= len(LARGE))
        assert (await client.answer(stream)).body == LARGE
        refused = await client.answer(client.ask("POST", "/echo", ("content-length", "4000000"), ended=False))
        assert refused.status == 413
        assert (await client.answer(client.ask("GET", "/none"))).status == 204


async def test_a_body_that_nobody_wanted_is_given_up(listener: Listening) -> None:
    async with talking(listener) as client:
        stream = client.ask("POST", "/refused", ended=False)
        assert (await client.answer(stream)).status == 403
        while client.answers[stream].reset is None:
            await client.next()
        assert client.answers[stream].reset == ErrorCode.NO_ERROR
        assert (await client.answer(client.ask("GET", "/none"))).status == 204


@pytest.mark.parametrize("how", ["reset", "gone"])
async def test_a_read_ends_when_its_client_gives_it_up(listener: Listening, endpoint: Endpoint, how: str) -> None:
    async with talking(listener) as client:
        stream = client.ask("GET", "/wait")
        await endpoint.begun.wait()
        if how == "reset":
            client.send(frames.rst_stream(stream, ErrorCode.CANCEL))
            await endpoint.ended.wait()
            assert (await client.answer(client.ask("GET", "/none"))).status == 204
        else:
            client.writer.transport.abort()
            await endpoint.ended.wait()


async def test_a_server_that_ends_says_so_and_finishes_what_has_begun(listener: Listening, endpoint: Endpoint) -> None:
    async with talking(listener) as idle, talking(listener) as client:
        stream = client.ask("GET", "/wait")
        await endpoint.begun.wait()
        assert (await idle.answer(idle.ask("GET", "/none"))).status == 204
        stopping = asyncio.create_task(listener.server.stop(timeout_seconds=10))
        assert await idle.end() == ErrorCode.NO_ERROR
        while client.gone_away is None:
            await client.next()
        # It may have been on its way before the client heard.
        assert (await client.answer(client.ask("GET", "/none"))).status == 204
        endpoint.may_end.set()
        assert (await client.answer(stream)).body == b"firstlast"
        assert await client.end() == ErrorCode.NO_ERROR
        await stopping


async def test_a_connection_that_comes_while_the_server_ends_is_asked_to_leave(listener: Listening, endpoint: Endpoint) -> None:
    async with talking(listener) as before:
        waiting = before.ask("GET", "/wait")
        await endpoint.begun.wait()
        assert (await before.answer(before.ask("GET", "/none"))).status == 204
        listener.server.part()
        async with talking(listener) as client:
            assert (await client.answer(client.ask("GET", "/none"))).status == 204
            assert await client.end() == ErrorCode.NO_ERROR
        endpoint.may_end.set()
        assert (await before.answer(waiting)).body == b"firstlast"
        assert await before.end() == ErrorCode.NO_ERROR
