"""What one client of HTTP/2 may cost: the known attacks end its connection, and cost others nothing."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from hpack import Encoder

from apiserver.certificates import Certificates
from apiserver.endpoints.body import read_body
from apiserver.request import Call
from http2 import frames
from http2.frames import ErrorCode
from tests.apiserver.http2.talking import Client, Header, talking
from tests.apiserver.running import Listening
from tests.apiserver.shell import shell
from tests.tools.needed import needed


@pytest.fixture
async def listener(pki: Certificates) -> AsyncIterator[Listening]:
    async with shell(pki) as running:
        yield running


async def lives(listener: Listening) -> bool:
    async with talking(listener) as other:
        return (await other.answer(other.ask("GET", "/livez"))).status == 200


async def test_it_conforms_to_the_protocol(pki: Certificates) -> None:
    """h2spec holds 145 conversations of every sort, most of them with mistakes in them."""

    async def read_first(call: Call) -> web.Response:
        # It does not expect an answer before it has said everything.
        return web.Response(body=await read_body(call) or b"nothing")

    async with shell(pki, read_first) as listener:
        command = [str(needed("h2spec")), "-t", "-k", "-h", "127.0.0.1", "-p", str(listener.port), "-o", "10"]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "0 failed" in done.stdout


@pytest.mark.parametrize(
    "header",
    [
        ("x-a", "b\r\nx-evil: 1"),
        ("x-a", "b\nx-evil: 1"),
        ("x-a", "b\0"),
        ("x-a\r\nx-evil", "1"),
        ("x-a: 1\r\nx-evil", "1"),
        ("X-Upper", "1"),
        ("x a", "1"),
        ("", "1"),
        ("transfer-encoding", "chunked"),
        ("connection", "x-remote-user"),
        ("upgrade", "websocket"),
        ("te", "gzip"),
        ("content-length", "+1"),
        ("content-length", "1"),
        (":path", "/other"),
        (":unknown", "1"),
    ],
)
async def test_nothing_in_a_header_becomes_another_one(listener: Listening, header: Header) -> None:
    async with talking(listener) as client:
        answer = await client.answer(client.ask("GET", "/livez", header))
        assert answer.reset == ErrorCode.PROTOCOL_ERROR
        assert (await client.answer(client.ask("GET", "/livez"))).status == 200


@pytest.mark.parametrize(
    ("method", "target"), [("GET /evil", "/"), ("GET", "/ HTTP/1.1\r\nx-evil: 1"), ("GET", "/a b"), ("", "/"), ("GET", "")]
)
async def test_nothing_in_a_request_line_becomes_another_one(listener: Listening, method: str, target: str) -> None:
    async with talking(listener) as client:
        assert (await client.answer(client.ask(method, target))).reset == ErrorCode.PROTOCOL_ERROR


@pytest.mark.parametrize("announced", [3, 5])
async def test_a_body_has_the_length_that_was_announced(listener: Listening, announced: int) -> None:
    async with talking(listener) as client:
        stream = client.ask("POST", "/x", ("content-length", str(announced)), ended=False)
        client.data(stream, b"four", ended=True)
        assert (await client.answer(stream)).reset == ErrorCode.PROTOCOL_ERROR


async def test_heads_as_large_as_go_servers_take_are_read(listener: Listening) -> None:
    async with talking(listener) as client:
        groups = [("x-remote-group", f"group-{number}-{'g' * 100}") for number in range(700)]
        assert (await client.answer(client.ask("GET", "/x?labelSelector=" + "a" * 30_000, *groups))).status == 200


async def test_cve_2023_44487_who_resets_what_it_has_asked_for_is_sent_away(listener: Listening) -> None:
    async with talking(listener) as client:
        for _ in range(1_000):
            client.send(frames.rst_stream(client.ask("GET", "/livez"), ErrorCode.CANCEL))
        assert await client.end() == ErrorCode.ENHANCE_YOUR_CALM
    assert await lives(listener)


async def test_cve_2025_8671_who_makes_us_reset_what_it_has_asked_for_is_sent_away(listener: Listening) -> None:
    async with talking(listener) as client:
        for _ in range(1_000):
            client.send(frames.window_update(client.ask("POST", "/livez", ended=False), 0))
        assert await client.end() == ErrorCode.ENHANCE_YOUR_CALM


@pytest.mark.parametrize("piece", [b"", b"x" * 10, b"x" * 16_384], ids=["empty", "small", "full"])
async def test_cve_2024_27316_a_head_without_end_is_not_kept(listener: Listening, piece: bytes) -> None:
    async with talking(listener) as client:
        client.send(frames.frame(frames.HEADERS, 0, 1, b""))
        for _ in range(1_000):
            client.send(frames.frame(frames.CONTINUATION, 0, 1, piece))
        assert await client.end() == ErrorCode.ENHANCE_YOUR_CALM


async def test_a_small_head_that_unfolds_to_a_large_one_is_refused(listener: Listening) -> None:
    async with talking(listener) as client:
        encoder = Encoder()
        encoder.encode([("x-large", "x" * 4_000)])
        client.ask("GET", "/livez", ("x-large", "x" * 4_000))
        again = client.block(("x-large", "x" * 4_000))
        assert len(again) == 1
        client.send(frames.frame(frames.HEADERS, frames.END_HEADERS, 3, again * 1_000))
        assert await client.end() == ErrorCode.ENHANCE_YOUR_CALM


async def test_no_more_streams_than_was_said_are_answered_at_a_time(listener: Listening) -> None:
    async with talking(listener) as client:
        streams = [client.ask("POST", "/livez", ("expect", "100-continue"), ended=False) for _ in range(101)]
        assert (await client.answer(streams[100])).reset == ErrorCode.REFUSED_STREAM
        assert client.settings[frames.MAX_CONCURRENT_STREAMS] == 100


@pytest.mark.parametrize("flood", [frames.frame(frames.PING, 0, 0, bytes(8)), frames.settings_frame({})], ids=["ping", "settings"])
async def test_who_asks_without_reading_is_not_read_any_more(listener: Listening, flood: bytes) -> None:
    async with talking(listener) as client:
        # The answers fill every buffer on their way back, until nothing is taken on the way there.
        for _ in range(10_000):
            client.send(flood * 1_000)
            await asyncio.sleep(0)
            if client.writer.transport.get_write_buffer_size() >= 1_000_000:
                break
        assert client.writer.transport.get_write_buffer_size() >= 1_000_000
        assert await lives(listener)


async def test_what_is_no_http_2_is_not_answered_as_if_it_were(listener: Listening) -> None:
    context = listener.tls(listener.pki.admin)
    context.set_alpn_protocols(["h2"])
    for said in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", frames.PREFACE + frames.frame(frames.PING, 0, 0, bytes(8))):
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=context, server_hostname="localhost")
        client = Client(reader, writer)
        client.send(said)
        assert await client.end() == ErrorCode.PROTOCOL_ERROR
        writer.transport.abort()
