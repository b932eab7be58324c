"""What one client of HTTP/2 may cost: the known attacks end its connection, and cost others nothing."""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import replace

import pytest
from aiohttp import web
from hpack import Encoder

from apiserver.access import standalone
from apiserver.certificates import Certificates
from apiserver.endpoints.body import read_body
from apiserver.request import Call, User
from http2 import frames
from http2.frames import ErrorCode
from tests.apiserver.http2.talking import Answer, Client, Header, talking
from tests.apiserver.running import Listening
from tests.apiserver.shell import shell
from tests.tools.needed import needed


class Waiting:
    """Answers nobody before it may, and counts those who wait; whoever asks for `/livez` need not."""

    def __init__(self) -> None:
        self.running = 0
        self.many_wait = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self, call: Call) -> web.Response:
        if call.info.path != "/livez":
            self.running += 1
            if self.running == 100:
                self.many_wait.set()
            try:
                await self.may_end.wait()
            finally:
                self.running -= 1
        return web.Response(body=b"done")


async def lives(listener: Listening) -> bool:
    async with talking(listener) as other:
        return (await other.answer(other.ask("GET", "/livez"))).status == 200


async def test_it_conforms_to_the_protocol(pki: Certificates) -> None:
    """h2spec holds 145 conversations of every sort, most of them with mistakes in them."""

    async def read_first(call: Call) -> web.Response:
        # It does not expect an answer before it has said everything, not even that it may not ask.
        return web.Response(body=await read_body(call) or b"nothing")

    everybody = replace(standalone([pki.authority.certificate]), anonymous=User("h2spec", groups=("system:masters",)))
    async with shell(pki, read_first, access=everybody) as listener:
        command = [str(needed("h2spec")), "-t", "-k", "-h", "127.0.0.1", "-p", str(listener.port), "-o", "10"]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "145 passed" in done.stdout


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


PRIORITY = bytes((0, 0, 0, 0, 1))


@pytest.mark.parametrize(
    ("kind", "flags", "payload"),
    [
        pytest.param(frames.WINDOW_UPDATE, 0, bytes(4), id="no-window"),
        pytest.param(frames.WINDOW_UPDATE, 0, b"\x7f\xff\xff\xff", id="too-large-a-window"),
        pytest.param(frames.PRIORITY, 0, PRIORITY[:4], id="short-priority"),
        pytest.param(frames.DATA, 0, b"longer", id="longer-body"),
        pytest.param(frames.DATA, frames.END_STREAM, b"", id="shorter-body"),
    ],
)
async def test_cve_2025_8671_who_makes_us_reset_what_it_has_asked_for_is_sent_away(
    pki: Certificates, kind: int, flags: int, payload: bytes
) -> None:
    waiting = Waiting()
    async with shell(pki, waiting) as listener, talking(listener) as client:
        for _ in range(1_000):
            stream = client.ask("POST", "/x", ("content-length", "5"), ended=False)
            client.send(frames.frame(kind, flags, stream, payload))
        assert await client.end() == ErrorCode.ENHANCE_YOUR_CALM
        assert await lives(listener)
        waiting.may_end.set()


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(frames.frame(frames.PRIORITY, 0, 1, PRIORITY), id="priority"),
        pytest.param(frames.frame(frames.WINDOW_UPDATE, 0, 1, bytes((0, 0, 0, 1))), id="window"),
        pytest.param(frames.rst_stream(1, ErrorCode.CANCEL), id="reset"),
        pytest.param(frames.frame(0xBA, 0, 1, b"nobody knows"), id="unknown"),
    ],
)
async def test_what_is_late_or_advice_makes_no_difference(listener: Listening, flood: bytes) -> None:
    async with talking(listener) as client:
        assert (await client.answer(client.ask("GET", "/livez"))).status == 200
        client.send(flood * 20_000)
        assert (await client.answer(client.ask("GET", "/livez"))).status == 200


async def test_more_headers_than_may_be_are_refused(listener: Listening) -> None:
    async with talking(listener) as client:
        begin = client.block((":method", "GET"), (":scheme", "https"), (":path", "/livez"))
        client.answers[1], client.answers[3] = Answer(), Answer()
        flags = frames.END_HEADERS | frames.END_STREAM
        client.send(frames.frame(frames.HEADERS, flags, 1, begin + b"\x90" * 9_997))
        client.send(frames.frame(frames.HEADERS, flags, 3, begin + b"\x90" * 9_998))
        assert (await client.answer(1)).status == 200
        assert (await client.answer(3)).reset == ErrorCode.ENHANCE_YOUR_CALM


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


async def test_no_more_streams_than_was_said_are_answered_at_a_time(pki: Certificates) -> None:
    waiting = Waiting()
    async with shell(pki, waiting) as listener, talking(listener) as client:
        streams = [client.ask("POST", "/x", ended=False) for _ in range(101)]
        assert (await client.answer(streams[100])).reset == ErrorCode.REFUSED_STREAM
        assert client.settings[frames.MAX_CONCURRENT_STREAMS] == 100
        waiting.may_end.set()


async def test_cve_2023_44487_no_more_are_worked_for_than_there_may_be_streams(pki: Certificates) -> None:
    """What writes goes on when its client gives it up: who asks again and again must not have it go on any number of times."""
    waiting = Waiting()
    async with shell(pki, waiting) as listener, talking(listener) as client:
        streams = [client.ask("POST", "/x") for _ in range(100)]
        await waiting.many_wait.wait()
        client.send(*(frames.rst_stream(stream, ErrorCode.CANCEL) for stream in streams))
        for _ in range(10):
            refused = await client.answer(client.ask("POST", "/x"))
            assert refused.reset == ErrorCode.REFUSED_STREAM
        assert waiting.running == 100
        waiting.may_end.set()
        assert await lives(listener)


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(frames.settings_frame({}), id="settings"),
        pytest.param(frames.settings_frame({frames.INITIAL_WINDOW_SIZE: 1, frames.HEADER_TABLE_SIZE: 0}), id="settings-of-windows"),
        pytest.param(frames.frame(frames.DATA, 0, 1), id="empty-data"),
        pytest.param(frames.frame(frames.DATA, frames.PADDED, 1, bytes((200,)) + bytes(200)), id="padding-only"),
        pytest.param(frames.frame(frames.PRIORITY, 0, 1, bytes((0, 0, 0, 1, 0))), id="priority-of-itself"),
    ],
)
async def test_cve_2019_9515_to_9518_who_says_what_means_nothing_is_sent_away(pki: Certificates, flood: bytes) -> None:
    waiting = Waiting()
    async with shell(pki, waiting) as listener, talking(listener) as client:
        client.ask("POST", "/x", ended=False)
        client.send(flood * 1_000)
        assert await client.end() == ErrorCode.ENHANCE_YOUR_CALM
        assert await lives(listener)
        waiting.may_end.set()


async def test_cve_2019_9512_who_asks_without_reading_is_not_read_any_more(listener: Listening) -> None:
    async with talking(listener) as client:
        # The answers fill every buffer on their way back, until nothing is taken on the way there.
        for _ in range(10_000):
            client.send(frames.frame(frames.PING, 0, 0, bytes(8)) * 1_000)
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
