"""What an encoder of another make writes is read as it was, and what none may write ends the connection."""

from __future__ import annotations

import pytest
from hpack import Encoder
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.table import HeaderTable
from hypothesis import example, given
from hypothesis import strategies as st

from http2 import header_decoder, huffman
from http2.frames import ErrorCode, ProtocolError
from http2.header_decoder import HeaderDecoder
from http2.literals import literal
from http2.static_table import STATIC

_ENCODER = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)
Pair = tuple[bytes, bytes]

texts = st.binary(max_size=80)
pairs = st.tuples(st.sampled_from([name for name, _ in STATIC]) | texts, texts)


def _pair(name: bytes, value: bytes) -> Pair:
    return name, value


def _decoder(limit_bytes: int = 100_000) -> HeaderDecoder[Pair]:
    return HeaderDecoder(_pair, limit_bytes=limit_bytes)


def test_the_static_table_is_the_standard_s() -> None:
    assert STATIC == HeaderTable.STATIC_TABLE


@given(texts)
@example(bytes(range(256)))
def test_text_is_read_as_it_was_written(text: bytes) -> None:
    assert huffman.decode(_ENCODER.encode(text)) == text


ascii_texts = st.binary(max_size=400).map(lambda text: bytes(32 + byte % 60 for byte in text))
"""Without symbols whose codes are longer than those of deflate."""


def _read(code: bytes, limit_bytes: int | None) -> bytes | str:
    try:
        return huffman.decode(code, limit_bytes=limit_bytes)
    except ValueError as error:
        return str(error)


@given(ascii_texts | st.binary(max_size=400), st.integers(min_value=0), st.binary(max_size=5), st.none() | st.integers(0, 400))
@example(bytes(range(32, 92)) * 20, 0, b"", None)
@example(b"\\" * 40, 0, b"", None)
def test_text_is_read_the_same_by_zlib_and_without_it(text: bytes, flipped: int, behind: bytes, limit_bytes: int | None) -> None:
    code = bytearray(_ENCODER.encode(text))
    spoilt = bytearray(code + behind)
    if spoilt:
        spoilt[flipped // 8 % len(spoilt)] ^= 1 << flipped % 8
    for whole in (bytes(code), bytes(code[:-1]), bytes(spoilt)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(huffman, "_DEFLATED_BYTES", 1)
            inflated = _read(whole, limit_bytes)
            patch.setattr(huffman, "_DEFLATED_BYTES", 1 << 30)
            walked = _read(whole, limit_bytes)
        if limit_bytes is not None and isinstance(inflated, bytes) and len(inflated) > limit_bytes:
            assert isinstance(walked, str) or walked.startswith(inflated)
        else:
            assert inflated == walked


def test_only_text_with_longer_codes_is_not_for_zlib() -> None:
    for byte in range(256):
        text = bytes((byte,)) * 80
        found = huffman.inflated(_ENCODER.encode(text))
        assert found == (text if REQUEST_CODES_LENGTH[byte] <= 15 else None)


@given(st.lists(st.tuples(st.lists(pairs, max_size=20), st.booleans(), st.sampled_from([0, 100, 4096])), max_size=20))
def test_blocks_are_read_as_they_were_written(blocks: list[tuple[list[Pair], bool, int]]) -> None:
    encoder, decoder = Encoder(), _decoder()
    for fields, compressed, table_bytes in blocks:
        if encoder.header_table_size != table_bytes:
            encoder.header_table_size = table_bytes
        assert decoder.decode(encoder.encode(fields, huffman=compressed)) == fields


def test_fields_with_equal_text_are_made_once_and_taken_from_the_table() -> None:
    made = []

    def make(name: bytes, value: bytes) -> Pair:
        made.append(name)
        return name, value

    encoder, decoder = Encoder(), HeaderDecoder(make, limit_bytes=1_000)
    del made[:]
    for _ in range(3):
        assert decoder.decode(encoder.encode([(b"x-a", b"1"), (b":method", b"GET")])) == [(b"x-a", b"1"), (b":method", b"GET")]
    assert made == [b"x-a"]


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b"\x80", id="entry-0"),
        pytest.param(b"\xbe", id="entry-that-is-not-there"),
        pytest.param(b"\xff\x80\x80\x80\x80\x80\x01", id="number-too-large"),
        pytest.param(b"\xff\x80\x80\x80\x80\x80\x80\x80", id="number-without-end"),
        pytest.param(b"\xff", id="number-cut-off"),
        pytest.param(b"\x7e\x01a", id="name-that-is-not-there"),
        pytest.param(b"\x40\x01a\x05b", id="text-cut-off"),
        pytest.param(b"\x40\x01a", id="no-value"),
        pytest.param(b"\x40\x01a\x81\x00", id="code-cut-off"),
        pytest.param(b"\x40\x01a\x82\x1f\xff", id="padding-of-a-byte"),
        pytest.param(b"\x40\x01a\x84\xff\xff\xff\xff", id="code-of-the-end"),
        pytest.param(b"\x3f\xe2\x1f", id="table-too-large"),
        pytest.param(b"\x82\x20", id="table-resized-behind-a-field"),
        pytest.param(b"\x20" * 3, id="table-resized-thrice"),
    ],
)
def test_what_no_block_may_hold_is_refused(block: bytes) -> None:
    with pytest.raises(ProtocolError) as refused:
        _decoder().decode(block)
    assert refused.value.code is ErrorCode.COMPRESSION_ERROR


def test_a_small_block_does_not_unfold_to_a_large_one() -> None:
    decoder = _decoder(limit_bytes=20_000)
    entry = b"\x40" + literal(b"x") + literal(b"y" * 4_000)
    assert len(decoder.decode(entry + b"\xbe" * 3)) == 4
    with pytest.raises(ProtocolError) as refused:
        decoder.decode(b"\xbe" * 5)
    assert refused.value.code is ErrorCode.ENHANCE_YOUR_CALM
    with pytest.raises(ProtocolError):
        _decoder(limit_bytes=20_000).decode(b"\x00\x00\x00" * 700)  # nothing counts, too


def test_text_that_becomes_too_long_is_not_read_to_its_end() -> None:
    code = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH).encode(b"a" * 100_000)
    spoilt = code + b"\xff" * 4
    with pytest.raises(ValueError, match="cut off"):
        huffman.decode(spoilt)
    assert len(huffman.decode(spoilt, limit_bytes=1_000)) > 1_000


def test_a_table_that_the_other_end_has_given_up_stays_empty() -> None:
    encoder, decoder = Encoder(), _decoder()
    fields = [(b"x-a", b"1"), (b":method", b"GET")]
    decoder.decode(encoder.encode(fields))
    decoder.forget_table()
    encoder.header_table_size = 0
    for _ in range(2):
        assert decoder.decode(encoder.encode(fields)) == fields
        assert not decoder._table
    with pytest.raises(ProtocolError):
        decoder.decode(b"\x21")


def test_the_table_holds_no_more_than_it_may() -> None:
    decoder = _decoder()
    for number in range(1_000):
        decoder.decode(b"\x40" + literal(b"%d" % number) + literal(b"v" * (number % 300)))
        assert sum(size for size, _, _ in decoder._table) == decoder._table_bytes <= 4_096
    decoder.decode(b"\x40" + literal(b"x") + literal(b"v" * 5_000))
    assert not decoder._table


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        pytest.param(b"x-short", b"value", 1, id="short"),
        pytest.param(b"x-long", b"x" * 100_000, 0, id="a client could fill our memory"),
        pytest.param(b"authorization", b"Bearer secret", 0, id="a secret"),
    ],
)
def test_text_that_is_long_or_secret_is_not_remembered(name: bytes, value: bytes, kept: int) -> None:
    code = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH).encode(value)
    size = literal(b"x" * len(code))[: -len(code)]
    header_decoder._decoded.cache_clear()
    field = b"\x00" + literal(name) + bytes((size[0] | 0x80,)) + size[1:] + code
    assert _decoder(limit_bytes=1_000_000).decode(field) == [(name, value)]
    assert header_decoder._decoded.cache_info().currsize == kept


def test_what_takes_long_to_read_is_refused_before_it_has_been_read() -> None:
    """A mebibyte of control characters would take a tenth of a second, in one piece or in many."""
    slow = _ENCODER.encode(b"\x01" * 1_000)
    value = bytearray(literal(slow))
    value[0] |= 0x80
    field = b"\x00" + literal(b"x") + bytes(value)
    decoder = _decoder(limit_bytes=1_000_000)
    some = header_decoder._SLOW_BYTES // len(slow)
    for _ in range(2):
        assert decoder.decode(field * some) == [(b"x", b"\x01" * 1_000)] * some
    with pytest.raises(ProtocolError) as caught:
        decoder.decode(field * (some + 1))
    assert caught.value.code == ErrorCode.ENHANCE_YOUR_CALM
