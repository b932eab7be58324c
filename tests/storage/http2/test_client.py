"""A connection keeps the rules of HTTP/2 towards any server, and tells its streams truly whether the server may have acted."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from http2 import frames
from http2.frames import ErrorCode
from storage.http2.client import STREAM_WINDOW_BYTES, BrokenOffError
from storage.http2.header_blocks import encode_headers
from tests.storage.http2.peer import Listener, Peer, connected

BLOCK = encode_headers([(":method", "POST"), (":path", "/")])
ANSWER = encode_headers([(":status", "200")])


async def stream_of(peer: Peer) -> int:
    return (await peer.next_frame(frames.HEADERS))[2]


async def test_a_request_and_its_answer() -> None:
    async with connected() as (client, peer):
        listener = Listener()
        client.open(listener, BLOCK, b"question", end=True)
        assert await stream_of(peer) == 1
        assert (await peer.next_frame(frames.DATA))[1:] == (frames.END_STREAM, 1, b"question")
        padded = frames.frame(frames.DATA, frames.PADDED, 1, b"\x02swer\0\0")
        peer.send(frames.header_frames(1, ANSWER, end_stream=False), frames.frame(frames.DATA, 0, 1, b"an"), padded)
        peer.send(frames.header_frames(1, encode_headers([("end", "x")]), end_stream=True))
        await listener.end()
        assert listener.data == b"answer"
        assert [dict(headers) for headers in listener.headers] == [{":status": "200"}, {"end": "x"}]


async def test_data_keeps_to_both_windows_and_goes_on_when_they_open() -> None:
    async with connected({frames.INITIAL_WINDOW_SIZE: 10}) as (client, peer):
        await peer.next_frame(frames.SETTINGS)
        await peer.next_frame(frames.SETTINGS)  # ours are acknowledged
        listener, data = Listener(), b"0123456789" * 20_000
        client.open(listener, BLOCK, data, end=True)
        got = (await peer.next_frame(frames.DATA))[3]
        assert got == data[:10]
        peer.send(frames.settings_frame({frames.INITIAL_WINDOW_SIZE: 300_000}))
        while len(got) < frames.WINDOW_BYTES:
            payload = (await peer.next_frame(frames.DATA))[3]
            assert len(payload) <= frames.FRAME_BYTES
            got += payload
        assert len(got) == frames.WINDOW_BYTES
        peer.send(frames.window_update(0, 1_000_000))
        flags = 0
        while not flags & frames.END_STREAM:
            _, flags, _, payload = await peer.next_frame(frames.DATA)
            got += payload
        assert got == data


async def test_a_window_that_becomes_negative_is_waited_for() -> None:
    async with connected({frames.INITIAL_WINDOW_SIZE: 100}) as (client, peer):
        await peer.next_frame(frames.SETTINGS)
        await peer.next_frame(frames.SETTINGS)
        client.open(Listener(), BLOCK, b"x" * 150, end=True)
        assert len((await peer.next_frame(frames.DATA))[3]) == 100
        peer.send(frames.settings_frame({frames.INITIAL_WINDOW_SIZE: 50}), frames.window_update(1, 60))
        assert len((await peer.next_frame(frames.DATA))[3]) == 10
        peer.send(frames.window_update(1, 1000))
        assert (await peer.next_frame(frames.DATA))[1:] == (frames.END_STREAM, 1, b"x" * 40)


async def test_streams_above_the_peers_limit_wait_their_turn() -> None:
    async with connected({frames.MAX_CONCURRENT_STREAMS: 1}) as (client, peer):
        await peer.next_frame(frames.SETTINGS)
        await peer.next_frame(frames.SETTINGS)
        listeners = [Listener() for _ in range(3)]
        streams = [client.open(listener, BLOCK, b"x", end=True) for listener in listeners]
        assert [stream.id for stream in streams] == [1, 0, 0]
        client.cancel(streams[1])
        assert await stream_of(peer) == 1
        peer.send(frames.header_frames(1, ANSWER, end_stream=True))
        assert await stream_of(peer) == 3
        await listeners[0].end()
        assert streams[2].id == 3
        client.drain()
        peer.send(frames.header_frames(3, ANSWER, end_stream=True))
        await listeners[2].end()
        assert listeners[2].error is None
        await client.wait_closed()


async def test_a_goaway_lets_the_streams_that_it_covers_end_and_tells_the_others_that_nothing_was_done() -> None:
    async with connected() as (client, peer):
        first, second = Listener(), Listener()
        client.open(first, BLOCK, b"x", end=True)
        client.open(second, BLOCK, b"x", end=True)
        await stream_of(peer)
        await stream_of(peer)
        peer.send(frames.goaway(1, ErrorCode.NO_ERROR, "later"))
        await second.end()
        assert second.error is not None
        assert not second.error.sent
        with pytest.raises(BrokenOffError) as caught:
            client.open(Listener(), BLOCK, b"x", end=True)
        assert not caught.value.sent
        peer.send(frames.header_frames(1, ANSWER, end_stream=True))
        await first.end()
        assert first.error is None
        await client.wait_closed()


async def test_a_lost_connection_tells_what_was_sent_from_what_was_not() -> None:
    async with connected({frames.MAX_CONCURRENT_STREAMS: 1}) as (client, peer):
        await peer.next_frame(frames.SETTINGS)
        await peer.next_frame(frames.SETTINGS)
        sent, waiting = Listener(), Listener()
        client.open(sent, BLOCK, b"x", end=True)
        client.open(waiting, BLOCK, b"x", end=True)
        await stream_of(peer)
        peer.writer.transport.abort()
        await sent.end()
        assert sent.error is not None
        assert waiting.error is not None
        assert (sent.error.sent, waiting.error.sent) == (True, False)


@pytest.mark.parametrize(("code", "sent"), [(ErrorCode.REFUSED_STREAM, False), (ErrorCode.CANCEL, True)], ids=["refused", "cancelled"])
async def test_a_refused_stream_was_not_acted_on(code: ErrorCode, sent: bool) -> None:
    async with connected() as (client, peer):
        listener = Listener()
        client.open(listener, BLOCK, b"x", end=True)
        await stream_of(peer)
        peer.send(frames.rst_stream(1, code))
        await listener.end()
        assert listener.error is not None
        assert (listener.error.code, listener.error.sent) == (code, sent)


async def test_a_cancelled_stream_is_reset_and_what_comes_late_is_nothing() -> None:
    async with connected() as (client, peer):
        listener, other = Listener(), Listener()
        stream = client.open(listener, BLOCK, b"", end=False)
        await stream_of(peer)
        client.cancel(stream)
        client.cancel(stream)
        assert frames.uint((await peer.next_frame(frames.RST_STREAM))[3]) == ErrorCode.CANCEL
        peer.send(frames.header_frames(1, ANSWER, end_stream=False), frames.frame(frames.DATA, 0, 1, b"late"))
        client.open(other, BLOCK, b"x", end=True)
        peer.send(frames.header_frames(await stream_of(peer), ANSWER, end_stream=True))
        await other.end()
        assert not listener.headers


async def test_a_receiver_without_room_holds_the_peer_up_and_lets_it_go_on() -> None:
    async with connected() as (client, peer):
        slow, quick = Listener(room=False), Listener()
        stream = client.open(slow, BLOCK, b"", end=False)
        client.open(quick, BLOCK, b"", end=False)
        chunk = frames.frame(frames.DATA, 0, 1, b"x" * 16_384)
        peer.send(chunk * (STREAM_WINDOW_BYTES // 16_384))
        peer.send(frames.frame(frames.DATA, 0, 3, b"y" * 16_384) * (STREAM_WINDOW_BYTES // 32_768))
        # Only the quick one has a new window, which covers exactly what it got.
        assert (await peer.next_frame(frames.WINDOW_UPDATE))[2] == 0  # the greeting's
        _, _, stream_id, payload = await peer.next_frame(frames.WINDOW_UPDATE)
        assert (stream_id, frames.uint(payload)) == (3, STREAM_WINDOW_BYTES // 2)
        client.make_room(stream)
        _, _, stream_id, payload = await peer.next_frame(frames.WINDOW_UPDATE)
        assert (stream_id, frames.uint(payload)) == (1, STREAM_WINDOW_BYTES)
        slow.room = False
        peer.send(chunk * (STREAM_WINDOW_BYTES // 16_384 + 1))
        await slow.end()
        assert slow.error is not None


@pytest.mark.parametrize("count", [1, 250])
async def test_pings_are_answered(count: int) -> None:
    async with connected() as (_, peer):
        words = [b"%8d" % n for n in range(count)]
        peer.send(b"".join(frames.frame(frames.PING, 0, 0, word) for word in words))
        assert [(await peer.next_frame(frames.PING))[1:] for _ in words] == [(frames.ACK, 0, word) for word in words]


async def test_a_peer_that_is_silent_is_asked_and_then_left() -> None:
    async with connected(keepalive_seconds=0.05) as (client, peer):
        listener = Listener()
        client.open(listener, BLOCK, b"x", end=True)
        assert not (await peer.next_frame(frames.PING))[1] & frames.ACK
        await listener.end()
        assert listener.error is not None
        assert "no sign of life" in str(listener.error)
        assert listener.error.sent


async def test_a_peer_that_answers_is_asked_again_and_kept() -> None:
    async with connected(keepalive_seconds=0.05) as (client, peer):
        listener = Listener()
        client.open(listener, BLOCK, b"x", end=True)
        for _ in range(3):
            payload = (await peer.next_frame(frames.PING))[3]
            peer.send(frames.frame(frames.PING, frames.ACK, 0, payload))
        peer.send(frames.header_frames(1, ANSWER, end_stream=True))
        await listener.end()
        assert listener.error is None


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frames.frame(frames.DATA, 0, 9, b"x"), id="stream-never-opened"),
        pytest.param(frames.frame(frames.HEADERS, frames.END_HEADERS, 2, ANSWER), id="stream-of-the-peer"),
        pytest.param(frames.frame(frames.PUSH_PROMISE, frames.END_HEADERS, 1, b"\0\0\0\2"), id="push"),
        pytest.param(frames.frame(frames.HEADERS, frames.END_HEADERS, 1, b"\xff\xff\xff\xff\xff"), id="headers-unreadable"),
        pytest.param(frames.frame(frames.PING, 0, 0, b"short"), id="ping-too-short"),
        pytest.param(frames.window_update(0, frames.MAX_WINDOW_BYTES), id="window-too-large"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", id="another-protocol"),
    ],
)
async def test_a_peer_that_breaks_the_rules_is_left(sent: bytes) -> None:
    async with connected() as (client, peer):
        listener = Listener()
        client.open(listener, BLOCK, b"x", end=True)
        await stream_of(peer)
        peer.send(sent)
        await listener.end()
        assert listener.error is not None
        await peer.next_frame(frames.GOAWAY)
        await client.wait_closed()


async def test_what_is_written_in_one_turn_leaves_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected() as (client, peer):
        await peer.next_frame(frames.SETTINGS)
        transport = client._transport
        assert transport is not None
        writes: list[bytes] = []
        monkeypatch.setattr(client, "_transport", type("Wire", (), {"write": staticmethod(writes.append)})())
        for _ in range(5):
            client.open(Listener(), BLOCK, b"x", end=True)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        monkeypatch.setattr(client, "_transport", transport)
        assert len(writes) == 1


def test_it_runs_on_uvloop_whose_transports_are_none_of_asyncios() -> None:
    uvloop.run(test_a_request_and_its_answer())
