"""What one end writes the other reads; what is cut off is no frame."""

from __future__ import annotations

import pytest
from hpack import Decoder

from http2 import frames
from http2.frames import ErrorCode, ProtocolError
from http2.literals import literal


@pytest.mark.parametrize("size", [0, 1, 255, 256, 16_384])
def test_a_head_says_what_follows_it(size: int) -> None:
    head = frames.frame_head(frames.DATA, frames.END_STREAM, 2**31 - 1, size)
    assert frames.head_of(b"before" + head, 6) == (frames.DATA, frames.END_STREAM, 2**31 - 1, size)
    assert frames.frame(frames.DATA, frames.END_STREAM, 2**31 - 1, bytes(size)) == head + bytes(size)


def test_the_reserved_bit_is_no_part_of_a_number() -> None:
    assert frames.head_of(frames.frame_head(frames.DATA, 0, 1 << 31 | 5, 0), 0)[2] == 5
    assert frames.uint(b"\x80\0\0\x07") == 7


def test_settings_and_endings_are_read_as_they_were_written() -> None:
    said = {frames.HEADER_TABLE_SIZE: 0, frames.INITIAL_WINDOW_SIZE: 2**31 - 1}
    assert dict(frames.settings_of(frames.settings_frame(said)[9:])) == said
    ending = frames.goaway(7, ErrorCode.ENHANCE_YOUR_CALM, "enough")[9:]
    assert (frames.uint(ending), frames.uint(ending, 4), ending[8:]) == (7, ErrorCode.ENHANCE_YOUR_CALM, b"enough")
    assert frames.uint(frames.rst_stream(3, ErrorCode.CANCEL)[9:]) == ErrorCode.CANCEL


@pytest.mark.parametrize(("padded", "content"), [(b"\x01data\0", b"data"), (b"\0data", b"data"), (b"\x02\0\0", b"")])
def test_padding_is_taken_off(padded: bytes, content: bytes) -> None:
    assert frames.without_padding(padded) == content


@pytest.mark.parametrize("padded", [b"", b"\x01", b"\x05data"])
def test_more_padding_than_payload_is_refused(padded: bytes) -> None:
    with pytest.raises(ProtocolError):
        frames.without_padding(padded)


@pytest.mark.parametrize("size", [0, 126, 127, 128, 254, 255, 20_000])
def test_text_of_any_length_is_read_by_any_decoder(size: int) -> None:
    block = b"\0" + literal(b"name") + literal(b"x" * size)
    assert Decoder().decode(block, raw=True) == [(b"name", b"x" * size)]


def test_numbers_and_settings_that_are_cut_off_are_refused() -> None:
    with pytest.raises(ProtocolError):
        frames.uint(b"\0\0\0")
    with pytest.raises(ProtocolError):
        frames.settings_of(b"\0" * 7)
