"""Heads of requests that become lines of HTTP/1.1."""

from __future__ import annotations

import pytest

from apiserver.http2 import heads
from apiserver.http2.heads import RequestHead


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        pytest.param(b"x-short", b"value", 1, id="short"),
        pytest.param(b"x-long", b"x" * 100_000, 0, id="a client could fill our memory"),
        pytest.param(b"authorization", b"Bearer secret", 0, id="a secret"),
    ],
)
def test_what_is_long_or_secret_is_not_remembered(name: bytes, value: bytes, kept: int) -> None:
    begin = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/x")]
    heads._remembered.cache_clear()
    head = RequestHead([*begin, (name, value)])
    assert b"\r\n" + name + b": " + value + b"\r\n" in head.http1(ended=True)
    known = heads._remembered.cache_info().currsize
    RequestHead(begin)
    assert known - 1 == kept  # the other one is the empty host
