"""JSON in and out, against what Go's own packages answer for the same bytes."""

from __future__ import annotations

import copy
import json
import math
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.meta import json_codec
from apiserver.meta.json_codec import DEPTH_LIMIT, JSONSyntaxError

quietly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "unexpected end of JSON input"),
        (" ", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ('{"a"', "unexpected end of JSON input"),
        ('{"a":1', "unexpected end of JSON input"),
        ('"abc', "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("NaN", "invalid character 'N' looking for beginning of value"),
        ("Infinity", "invalid character 'I' looking for beginning of value"),
        ("-Infinity", "invalid character 'I' in numeric literal"),
        ("\ufeff{}", "invalid character 'ï' looking for beginning of value"),
        ('{"a":1}x', "invalid character 'x' after top-level value"),
        ("[]]", "invalid character ']' after top-level value"),
        ("1 1", "invalid character '1' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":}', "invalid character '}' looking for beginning of value"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1 2]", "invalid character '2' after array element"),
        ('{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        ('{"a":1]', "invalid character ']' after object key:value pair"),
        ("nul", "invalid character ' ' in literal null (expecting 'l')"),
        ("tRue", "invalid character 'R' in literal true (expecting 'r')"),
        ("-", "invalid character ' ' in numeric literal"),
        ("1.", "invalid character ' ' after decimal point in numeric literal"),
        ("1e", "invalid character ' ' in exponent of numeric literal"),
        ("1e400", "json: cannot unmarshal number 1e400 into Go value of type float64"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\u12"', "invalid character '\"' in \\u hexadecimal character escape"),
    ],
)
def test_what_is_no_json_is_told_in_go_words(text: str, problem: str) -> None:
    with pytest.raises(JSONSyntaxError) as caught:
        json_codec.decode(text.encode())
    assert str(caught.value) == problem


@pytest.mark.parametrize("data", [b'"\xff"', b'{"a":"\xc3"}', '{"a":1}'.encode("utf-16"), '{"a":1}'.encode("utf-32-le")], ids=repr)
def test_what_is_not_utf_8_is_refused(data: bytes) -> None:
    with pytest.raises(JSONSyntaxError):
        json_codec.decode(data)


@pytest.mark.parametrize(
    ("text", "value", "written"),
    [
        ("9223372036854775807", 9223372036854775807, "9223372036854775807"),
        ("9007199254740993", 9007199254740993, "9007199254740993"),
        ("9223372036854775808", 9223372036854775808.0, "9223372036854776000"),
        ("-9223372036854775809", -9223372036854775809.0, "-9223372036854776000"),
        ("18446744073709551616", 18446744073709551616.0, "18446744073709552000"),
        ("1.0", 1.0, "1"),
        ("-0", 0, "0"),
        ("-0.0", -0.0, "-0"),
        ("1e20", 1e20, "100000000000000000000"),
        ("1e21", 1e21, "1e+21"),
        ("1e16", 1e16, "10000000000000000"),
        ("0.00001", 0.00001, "0.00001"),
        ("1e-7", 1e-7, "1e-7"),
        ('"\\ud800"', "\ufffd", '"\ufffd"'),
        ('"\\ud83d\\ude00\\udc00"', "😀\ufffd", '"😀\ufffd"'),
        ('"\\\\ud800"', "\\ud800", '"\\\\ud800"'),
        (
            '"<>&\\u2028\\u2029\\u0000\\u007f\\b\\f\\n\\r\\t\\\\ \\/ \\""',
            None,
            '"\\u003c\\u003e\\u0026\\u2028\\u2029\\u0000\x7f\\b\\f\\n\\r\\t\\\\ / \\""',
        ),
        ('{"b":1,"a":2,"A":3,"é":1,"a.b":1}', None, '{"A":3,"a":2,"a.b":1,"b":1,"é":1}'),
        ('[{"image":"v0.0.0e+1","n":2.0}]', None, '[{"image":"v0.0.0e+1","n":2}]'),
    ],
)
def test_values_are_read_and_written_as_go_does(text: str, value: Any, written: str) -> None:
    found = json_codec.decode(text.encode())
    if value is not None:
        assert (found, type(found)) == (value, type(value))
    assert json_codec.encode(found).decode() == written + "\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", []),
        ('"\\u0041"', []),
        ('{"a":{"b":1},"b":{"a":1}}', []),
        ('{"a":1,"a":2,"a":3}', ["a"]),
        ('{"a":{"b":1,"b":2},"c":[{"x":1,"x":2}],"a":1}', ["a.b", "c[0].x", "a"]),
        ('{"a.b":1,"a.b":2}', ["a.b"]),
        ('[[1,{"a":1,"a":2}]]', ["[0][1].a"]),
        ('{"a":"\\u0022","\\u0061":"\\u0022"}', ["a"]),
        ('{"a":[1,1],"A":1,"a ":2}', []),
    ],
)
def test_members_that_are_there_twice_are_found(text: str, expected: list[str]) -> None:
    data = text.encode()
    assert json_codec.duplicates(data, json_codec.decode(data)) == [f'duplicate field "{path}"' for path in expected]


def test_no_more_than_a_hundred_duplicates_are_told() -> None:
    data = b"{" + b",".join(b'"k%d":1,"k%d":2' % (n, n) for n in range(1000)) + b"}"
    assert len(json_codec.duplicates(data, json_codec.decode(data))) == 100


@pytest.mark.parametrize("data", [b"[" * (3 << 20), b'{"a":' * 600_000, b"[" * 100_000 + b"]" * 100_000], ids=["lists", "maps", "closed"])
def test_a_bottomless_document_is_refused_t027(data: bytes) -> None:
    with pytest.raises(JSONSyntaxError, match="exceeded max depth"):
        json_codec.decode(data)


def test_what_can_be_read_can_be_written() -> None:
    deepest = b"[" * DEPTH_LIMIT + b"]" * DEPTH_LIMIT
    assert json_codec.encode(json_codec.decode(deepest)) == deepest + b"\n"
    with pytest.raises(JSONSyntaxError, match="exceeded max depth"):
        json_codec.decode(b"[" + deepest + b"]")


def test_a_mistake_far_into_a_document_is_told_without_a_long_search() -> None:
    with pytest.raises(JSONSyntaxError, match="invalid character 'x' near byte 2000001"):
        json_codec.decode(b"[" + b"1," * 1_000_000 + b"x]")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-(2.0**53), 2.0**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=15,
)


@quietly
@given(value=json_values)
def test_what_is_written_reads_as_the_same_value(value: Any) -> None:
    data = json_codec.encode(value)
    assert json.loads(data) == value
    assert json_codec.decode(data) == value
    assert json_codec.duplicates(data, json_codec.decode(data)) == []


@quietly
@given(value=json_values, seed=st.integers(0, 2**32))
def test_a_mutilated_document_is_read_or_refused(value: Any, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(json.dumps(value).encode())
    for _ in range(chance.randrange(1, 4)):
        position = chance.randrange(len(data) + 1)
        data[position : position + chance.randrange(2)] = chance.choice(
            [b"", b"{", b"]", b'"', b"\\", b",", b"\xff", b"\\ud800", b"1e999", b"\0"]
        )
    try:
        found = json_codec.decode(bytes(data))
    except JSONSyntaxError:
        return
    json_codec.encode(copy.deepcopy(found))
    json_codec.duplicates(bytes(data), found)


def test_infinity_never_comes_out_of_a_document() -> None:
    assert not math.isinf(json_codec.decode(b"1e308"))
    with pytest.raises(JSONSyntaxError):
        json_codec.decode(b"[1e999999]")
