"""Compressed segments, and lists that are made of them."""

from __future__ import annotations

import gzip
import zlib

from hypothesis import given
from hypothesis import strategies as st

from apiserver.registry.deflated import deflate, gzip_member


@given(st.lists(st.binary(max_size=2000), max_size=12))
def test_any_sequence_of_segments_is_one_gzip_file(parts: list[bytes]) -> None:
    member = b"".join(gzip_member(deflate(part) for part in parts))
    assert gzip.decompress(member) == b"".join(parts)
    decompressor = zlib.decompressobj(16 + zlib.MAX_WBITS)
    assert decompressor.decompress(member) == b"".join(parts)
    assert decompressor.eof
    assert decompressor.unused_data == b""
