"""Heads of requests become what a connection of HTTP/1.1 would read; heads of responses become fields."""

from __future__ import annotations

import pytest
from hpack import Decoder
from multidict import CIMultiDict

from apiserver.http2 import heads
from apiserver.http2.heads import BadHead, RequestHead, make_field, response_block

Pair = tuple[bytes, bytes]

BEGIN = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/x?y=%20")]


def head(*fields: Pair) -> RequestHead:
    return RequestHead([make_field(*field) for field in fields], ended=False)


def decoded(block: bytes) -> list[Pair]:
    return [(name, value) for name, value in Decoder().decode(block, raw=True)]


def test_a_head_is_what_it_would_be_over_http_1_1() -> None:
    message = head(*BEGIN, (b":authority", b"a:1"), (b"host", b"b"), (b"x-name", "ä".encode()), (b"x-name", b"\xff")).message
    assert (message.method, message.path, message.version) == ("GET", "/x?y=%20", (1, 1))
    assert list(message.headers.items()) == [("host", "a:1"), ("x-name", "ä"), ("x-name", "\udcff")]
    assert message.headers["X-Name"] == "ä"


def test_without_an_authority_the_host_is_told_by_its_header() -> None:
    assert head(*BEGIN, (b"host", b"b")).message.headers["Host"] == "b"


def test_a_length_may_be_told_twice_but_not_two() -> None:
    length = (b"content-length", b"5")
    assert head(*BEGIN, length, length).length_bytes == 5
    assert head(*BEGIN, length, length).message.headers.getall("content-length") == ["5"]
    with pytest.raises(BadHead):
        head(*BEGIN, length, (b"content-length", b"6"))


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(BEGIN[1:], id="no-method"),
        pytest.param([*BEGIN, BEGIN[0]], id="two-methods"),
        pytest.param([*BEGIN[:2], (b"x", b"1"), BEGIN[2]], id="path-behind-a-header"),
        pytest.param([*BEGIN[:2], (b"host", b"1"), BEGIN[2]], id="path-behind-the-host"),
        pytest.param([*BEGIN[:2], (b":path", b"x")], id="path-without-a-root"),
        pytest.param([*BEGIN[:2], (b":path", b"https://localhost/x")], id="absolute-path"),
        pytest.param([*BEGIN, (b":authority", b"a\r\nx: 1")], id="authority-that-ends-its-line"),
        pytest.param([*BEGIN, (b"x", b" 1")], id="space-before-a-value"),
        pytest.param([*BEGIN, (b"x", b"1\x7f")], id="control-character"),
    ],
)
def test_what_is_no_head_is_refused(fields: list[Pair]) -> None:
    with pytest.raises(BadHead):
        head(*fields)


def test_what_only_a_connection_of_http_1_1_has_is_not_sent() -> None:
    headers = CIMultiDict({"Content-Type": "text/plain", "Connection": "close", "Transfer-Encoding": "chunked", "Audit-Id": "a" * 200})
    expected = [(b":status", b"299"), (b"content-type", b"text/plain"), (b"audit-id", b"a" * 200)]
    for _ in range(2):
        assert decoded(response_block(299, headers)) == expected
    assert decoded(response_block(404, CIMultiDict())) == [(b":status", b"404")]


def test_nothing_in_a_header_of_ours_becomes_another_one() -> None:
    with pytest.raises(ValueError, match="x-name"):
        response_block(200, CIMultiDict({"X-Name": "a\r\nb: 1"}))


def test_what_does_not_come_again_is_not_remembered() -> None:
    heads._remembered.cache_clear()
    response_block(200, CIMultiDict({"Audit-Id": "1", "Cache-Control": "no-cache"}))
    assert heads._remembered.cache_info().currsize == 1
