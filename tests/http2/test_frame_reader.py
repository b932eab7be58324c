"""Bytes become frames however they are cut, and what no peer may send is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from http2 import frames
from http2.frame_reader import Frame, FrameReader
from http2.frames import ProtocolError


def _reader() -> FrameReader:
    return FrameReader(header_block_bytes=32_768)


@given(st.lists(st.integers(min_value=1, max_value=200), max_size=40))
def test_frames_are_the_same_however_they_are_cut(sizes: list[int]) -> None:
    block = b"h" * 40_000
    sent = b"".join(
        [
            frames.settings_frame({frames.HEADER_TABLE_SIZE: 0}),
            frames.header_frames(1, block[:30_000], end_stream=True),
            frames.frame(frames.DATA, frames.END_STREAM, 1, b"d" * 16_384),
            frames.window_update(0, 77),
        ]
    )
    reader, whole, start = _reader(), _reader(), 0
    got: list[Frame] = []
    for size in sizes:
        got += reader.feed(sent[start : start + size])
        start += size
    got += reader.feed(sent[start:])
    assert got == list(whole.feed(sent))
    assert [kind for kind, *_ in got] == [frames.SETTINGS, frames.HEADERS, frames.DATA, frames.WINDOW_UPDATE]
    assert got[1][3] == block[:30_000]
    assert got[1][1] & frames.END_STREAM
    assert frames.uint(got[3][3]) == 77


def test_padding_and_priority_of_headers_are_taken_off() -> None:
    flags = frames.PADDED | frames.PRIORITIZED | frames.END_HEADERS
    sent = frames.frame(frames.HEADERS, flags, 1, b"\x03" + b"prior" + b"block" + b"\0\0\0")
    assert [payload for *_, payload in _reader().feed(sent)] == [b"block"]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frames.frame(frames.DATA, 0, 1, b"x" * 16_385), id="frame-too-large"),
        pytest.param(frames.frame(frames.HEADERS, frames.PADDED | frames.END_HEADERS, 1, b"\x09x"), id="all-padding"),
        pytest.param(frames.frame(frames.HEADERS, frames.PADDED | frames.END_HEADERS, 1, b""), id="padding-without-length"),
        pytest.param(frames.frame(frames.HEADERS, frames.PRIORITIZED | frames.END_HEADERS, 1, b"prio"), id="half-a-priority"),
        pytest.param(frames.frame(frames.HEADERS, frames.PRIORITIZED | frames.END_HEADERS, 1, b"\0\0\0\x01\0"), id="depends-on-itself"),
        pytest.param(frames.frame(frames.CONTINUATION, frames.END_HEADERS, 1, b"x"), id="continuation-of-nothing"),
        pytest.param(frames.frame(frames.HEADERS, 0, 1, b"x") + frames.frame(frames.PING, 0, 0, b"12345678"), id="block-interrupted"),
        pytest.param(
            frames.frame(frames.HEADERS, 0, 1, b"x") + frames.frame(frames.CONTINUATION, 0, 3, b"x"), id="block-of-another-stream"
        ),
        pytest.param(
            frames.frame(frames.HEADERS, 0, 1, b"x") + frames.frame(frames.CONTINUATION, 0, 1, b"") * 100, id="empty-continuations"
        ),
        pytest.param(
            frames.frame(frames.HEADERS, 0, 1, b"x" * 16_384) + frames.frame(frames.CONTINUATION, 0, 1, b"x" * 16_384) * 2,
            id="endless-block",
        ),
    ],
)
def test_what_no_peer_may_send_is_refused(sent: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(_reader().feed(sent))
