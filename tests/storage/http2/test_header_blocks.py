"""Header blocks are written so that any decoder reads them, and read so that none depends on another."""

from __future__ import annotations

import pytest
from hpack import Decoder, Encoder
from hypothesis import given
from hypothesis import strategies as st

from http2.frames import ProtocolError
from storage.http2.header_blocks import HeaderReader, encode_headers

NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20)
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=400)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=8))
def test_any_decoder_reads_what_is_written_and_keeps_nothing_of_it(headers: list[tuple[str, str]]) -> None:
    decoder = Decoder()
    read = [(str(name), str(value)) for name, value in decoder.decode(encode_headers([(":method", "POST"), *headers]))]
    assert read == [(":method", "POST"), *headers]
    assert not decoder.header_table.dynamic_entries


def test_blocks_from_before_and_after_the_table_is_forgotten_are_read() -> None:
    """The peer may use its table until it has seen our settings."""
    encoder, reader = Encoder(), HeaderReader()
    headers = {":status": "200", "content-type": "application/grpc", "grpc-message": "a b"}
    first = encoder.encode(list(headers.items()))
    assert reader.decode(first) == headers
    assert reader.decode(encoder.encode(list(headers.items()))) == headers
    encoder.header_table_size = 0
    reader.forget_tables()
    assert reader.decode(encoder.encode(list(headers.items()))) == headers
    again = encoder.encode(list(headers.items()))
    assert reader.decode(again) == headers
    assert reader.decode(again) is reader.decode(bytes(again))


def test_what_cannot_be_read_ends_the_connection() -> None:
    reader = HeaderReader()
    for block in (b"\xff\xff\xff\xff\xff", b"\x10\x05ab", b"\xbf"):
        with pytest.raises(ProtocolError):
            reader.decode(block)


def test_known_blocks_are_bounded() -> None:
    reader, encoder = HeaderReader(), Encoder()
    encoder.header_table_size = 0
    reader.decode(encoder.encode([(":status", "200")]))
    reader.forget_tables()
    for number in range(1000):
        assert reader.decode(encoder.encode([("grpc-message", str(number))]))["grpc-message"] == str(number)
    assert len(reader._known) <= 256
