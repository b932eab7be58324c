"""gRPC calls over any server: messages however they are cut, and an end that says what happened."""

from __future__ import annotations

import asyncio
import gc

import pytest

from http2 import frames
from http2.frames import ErrorCode
from storage.etcd.calls import Call, CallError, StatusCode, StreamEnded
from storage.http2.header_blocks import encode_headers
from tests.storage.http2.peer import Peer, connected

BLOCK = encode_headers([(":method", "POST"), (":path", "/a.Service/Method")])


def message(content: bytes, *, compressed: int = 0) -> bytes:
    return bytes((compressed,)) + len(content).to_bytes(4, "big") + content


def data(stream_id: int, payload: bytes) -> bytes:
    parts = [payload[start : start + frames.FRAME_BYTES] for start in range(0, len(payload), frames.FRAME_BYTES)]
    return b"".join(frames.frame(frames.DATA, 0, stream_id, part) for part in parts)


def begin(stream_id: int, status: str = "200") -> bytes:
    return frames.header_frames(stream_id, encode_headers([(":status", status)]), end_stream=False)


def end(stream_id: int, *trailers: tuple[str, str]) -> bytes:
    return frames.header_frames(stream_id, encode_headers(trailers), end_stream=True)


OK = ("grpc-status", "0")


async def asked(peer: Peer) -> bytes:
    return (await peer.next_frame(frames.DATA))[3]


async def test_an_answer_larger_than_a_frame() -> None:
    async with connected() as (client, peer):
        answer = asyncio.create_task(Call(client, BLOCK, b"question").answer(10))
        assert await asked(peer) == message(b"question")
        content = b"0123456789" * 100_000
        peer.send(begin(1), data(1, message(content)), end(1, OK))
        assert await answer == content


def _calls() -> list[Call]:
    return [thing for thing in gc.get_objects() if isinstance(thing, Call)]


async def test_nothing_of_a_call_waits_for_the_garbage_collector() -> None:
    async with connected() as (client, peer):
        others = _calls()  # what other tests have left to the collector
        gc.disable()
        try:
            answer = asyncio.create_task(Call(client, BLOCK, b"question").answer(10))
            await asked(peer)
            peer.send(begin(1), data(1, message(b"answer")), end(1, OK))
            assert await answer == b"answer"
            del answer
            assert [call for call in _calls() if call not in others] == []
        finally:
            gc.enable()


async def test_messages_are_read_one_by_one_however_they_are_cut() -> None:
    async with connected() as (client, peer):
        call = Call(client, BLOCK, b"first", streaming=True)
        assert await asked(peer) == message(b"first")
        call.write(b"second")
        assert await asked(peer) == message(b"second")
        contents = [b"a", b"", b"x" * 40_000, b"bc"]
        sent = b"".join(map(message, contents))
        peer.send(begin(1))
        for start in range(0, len(sent), 7_001):
            peer.send(data(1, sent[start : start + 7_001]))
        peer.send(data(1, message(b"y") + message(b"z")), end(1, OK))
        async with asyncio.timeout(10):
            assert [await call.read() for _ in range(6)] == [*contents, b"y", b"z"]
            with pytest.raises(StreamEnded):
                await call.read()


@pytest.mark.parametrize(
    ("sent", "code", "details"),
    [
        pytest.param(
            begin(1) + end(1, ("grpc-status", "11"), ("grpc-message", "%C3%A9t%C3%A9 100%25")),
            StatusCode.OUT_OF_RANGE,
            "été 100%",
            id="status",
        ),
        pytest.param(end(1, (":status", "200"), ("grpc-status", "7")), StatusCode.PERMISSION_DENIED, "", id="trailers-only"),
        pytest.param(begin(1) + end(1, ("grpc-status", "99")), StatusCode.UNKNOWN, "", id="unknown-status"),
        pytest.param(begin(1, "503") + end(1, ("x", "y")), StatusCode.UNAVAILABLE, "503", id="http-status"),
        pytest.param(begin(1) + end(1, ("x", "y")), StatusCode.UNKNOWN, "200", id="no-status"),
        pytest.param(begin(1) + end(1, OK), StatusCode.INTERNAL, "0 messages", id="no-message"),
        pytest.param(begin(1) + data(1, message(b"a") * 2), StatusCode.INTERNAL, "several", id="two-messages"),
        pytest.param(begin(1) + data(1, message(b"a", compressed=1)), StatusCode.INTERNAL, "compressed", id="compressed"),
        pytest.param(begin(1) + data(1, b"\0\xff\xff\xff\xff"), StatusCode.RESOURCE_EXHAUSTED, "larger than max", id="too-large"),
        pytest.param(
            begin(1) + frames.frame(frames.DATA, frames.END_STREAM, 1, b""), StatusCode.INTERNAL, "without a status", id="cut-off"
        ),
        pytest.param(frames.rst_stream(1, ErrorCode.INTERNAL_ERROR), StatusCode.INTERNAL, "reset", id="reset"),
        pytest.param(frames.rst_stream(1, ErrorCode.ENHANCE_YOUR_CALM), StatusCode.RESOURCE_EXHAUSTED, "reset", id="calm"),
        pytest.param(frames.rst_stream(1, ErrorCode.REFUSED_STREAM), StatusCode.UNAVAILABLE, "reset", id="refused"),
        pytest.param(frames.goaway(0, ErrorCode.ENHANCE_YOUR_CALM, "pings"), StatusCode.UNAVAILABLE, "pings", id="goaway"),
    ],
)
async def test_each_end_that_is_no_answer_says_what_happened(sent: bytes, code: StatusCode, details: str) -> None:
    async with connected() as (client, peer):
        answer = asyncio.create_task(Call(client, BLOCK, b"question").answer(10))
        await asked(peer)
        peer.send(sent)
        with pytest.raises(CallError) as caught:
            await answer
        assert caught.value.code is code
        assert details in caught.value.details


async def test_a_call_without_an_answer_in_time_is_given_up_and_the_server_told() -> None:
    async with connected() as (client, peer):
        with pytest.raises(CallError) as caught:
            await Call(client, BLOCK, b"question").answer(0.01)
        assert caught.value.code is StatusCode.DEADLINE_EXCEEDED
        assert caught.value.sent
        assert frames.uint((await peer.next_frame(frames.RST_STREAM))[3]) == ErrorCode.CANCEL


async def test_a_cancelled_call_is_given_up_and_the_server_told() -> None:
    async with connected() as (client, peer):
        task = asyncio.create_task(Call(client, BLOCK, b"question").answer(10))
        await asked(peer)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert frames.uint((await peer.next_frame(frames.RST_STREAM))[3]) == ErrorCode.CANCEL


async def test_cutting_a_stream_wakes_its_reader() -> None:
    async with connected() as (client, peer):
        call = Call(client, BLOCK, b"first", streaming=True)
        reading = asyncio.create_task(call.read())
        await asked(peer)
        call.cancel()
        with pytest.raises(StreamEnded):
            await reading


async def test_what_has_come_before_a_cut_is_not_read_after_it() -> None:
    """It may be of another history."""
    async with connected() as (client, peer):
        call = Call(client, BLOCK, b"first", streaming=True)
        await asked(peer)
        peer.send(begin(1), data(1, message(b"a") + message(b"b")))
        assert await call.read() == b"a"
        call.cancel()
        with pytest.raises(StreamEnded):
            await call.read()
