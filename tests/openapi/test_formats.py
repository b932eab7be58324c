"""String formats and Go's ways to print, against what Go itself says."""

from __future__ import annotations

from typing import Any

import pytest

from openapi import formats, gotext, rfc3339


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "date-time",
            ["2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20+01:00"],
            ["", "2014-12-15", "2014-12-15T25:30:20Z", "2014-12-15T19:30:20"],
        ),
        ("date", ["2020-02-29"], ["2021-02-29", "20-01-01", "2020-13-01"]),
        ("duration", ["1h30m", "22 ns", "3 days", "1.5s", "-5m"], ["", "h", "5"]),
        ("byte", ["aGk=", "aGVsbG8="], ["aGk", "a b="]),
        ("ipv4", ["10.0.0.1", "010.0.0.1", "::ffff:1.2.3.4"], ["10.0.0.256", "10.0.0", "::1"]),
        ("ipv6", ["::1", "fe80::1"], ["10.0.0.1", "fe80::1%eth0"]),
        ("cidr", ["10.0.0.0/8", "::/0"], ["10.0.0.0", "10.0.0.0/33", "x/8"]),
        ("mac", ["01:02:03:04:05:ab", "0102.0304.05ab"], ["01:02:03", "zz:02:03:04:05:06"]),
        ("hostname", ["example.com", "a", "日本.jp"], ["-a", "a..b", "a_b", "1.2.3.4", "x" * 64 + ".com"]),
        ("uri", ["http://example.com/x?y", "http://u@[::1]:80/", "/path", "urn:x:y"], ["path", "http://a b", "/%zz"]),
        ("email", ["a@example.com", "Name <a@example.com>", '"a b"@c'], ["a", "@x", "<a@b", "a.@b"]),
        (
            "uuid",
            ["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"],
            ["123", "g23e4567-e89b-12d3-a456-426614174000"],
        ),
        ("k8s-short-name", ["a-b"], ["A", "-a", "a" * 64, "a.b"]),
        ("k8s-long-name", ["a.b-c"], ["a..b", "A"]),
        ("password", [""], []),
    ],
)
def test_a_known_format_is_checked(name: str, good: list[str], bad: list[str]) -> None:
    check = formats.check_of(name)
    assert check is not None
    assert [text for text in good if not check(text)] == []
    assert [text for text in bad if check(text)] == []


@pytest.mark.parametrize("piece", ["1", "a", "a.", "a@", "-", "1h", "1 ", "1.", "http://a", "a:", "%", "<", '"', ":", "ab-"])
def test_a_hostile_text_is_judged_in_linear_time(piece: str) -> None:
    """Not timed: what is quadratic takes minutes here."""
    for name in ("email", "uri", "hostname", "duration", "k8s-long-name", "date-time", "mac", "byte", "uuid", "cidr", "ipv6"):
        check = formats.check_of(name)
        assert check is not None
        for text in (piece * (100_000 // len(piece)), piece * (100_000 // len(piece)) + "!"):
            check(text)


def test_an_unknown_format_is_ignored_and_an_unsupported_one_refused() -> None:
    assert formats.check_of("quantity") is None
    with pytest.raises(ValueError, match="creditcard"):
        formats.check_of("creditcard")


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain", '"plain"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("\n\t\x00\x7f", '"\\n\\t\\x00\\x7f"'),
        ("é 世", '"é 世"'),
        ("\u200b\u2028", '"\\u200b\\u2028"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_text_is_quoted_as_strconv_does(text: str, quoted: str) -> None:
    assert gotext.quote(text) == quoted


@pytest.mark.parametrize(
    ("value", "plain", "json"),
    [
        (0.0, "0", "0"),
        (-0.0, "-0", "-0"),
        (1.5, "1.5", "1.5"),
        (100000.0, "100000", "100000"),
        (1e6, "1e+06", "1000000"),
        (123456789.5, "1.234567895e+08", "123456789.5"),
        (1e20, "1e+20", "100000000000000000000"),
        (1e21, "1e+21", "1e+21"),
        (1.5e300, "1.5e+300", "1.5e+300"),
        (0.0001, "0.0001", "0.0001"),
        (0.00001, "1e-05", "0.00001"),
        (1e-6, "1e-06", "0.000001"),
        (1e-7, "1e-07", "1e-7"),
        (-2.5e-10, "-2.5e-10", "-2.5e-10"),
    ],
)
def test_floats_are_printed_as_go_prints_them(value: float, plain: str, json: str) -> None:
    assert (gotext.number(value), gotext.json_float(value)) == (plain, json)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("2020-02-29T23:59:59.999Z", "2020-02-29T23:59:59Z"),
        ("2020-01-01T00:30:00+01:00", "2019-12-31T23:30:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_times_become_canonical(text: str, canonical: str) -> None:
    assert rfc3339.canonical(text) == canonical


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
        ("2020-01-01", 'parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
        ("2020-01-01T00:00:00", 'parsing time "2020-01-01T00:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"'),
        ("2020-02-30T00:00:00Z", 'parsing time "2020-02-30T00:00:00Z": day out of range'),
        ("2020-01-01T24:00:00Z", 'parsing time "2020-01-01T24:00:00Z": hour out of range'),
        ("2020-01-01T00:00:00Zx", 'parsing time "2020-01-01T00:00:00Zx": extra text: "x"'),
        ("2020-01-01T00:00:00Z\n", 'parsing time "2020-01-01T00:00:00Z\n": extra text: "\n"'),
    ],
)
def test_a_wrong_time_is_told_in_go_words(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match="parsing time") as caught:
        rfc3339.canonical(text)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ({"b": ["x", 1], "a": {"c": None}}, "map[a:map[c:<nil>] b:[x 1]]"),
        ([], "[]"),
        (True, "true"),
        (2_000_000.0, "2e+06"),
        (3.5, "3.5"),
    ],
)
def test_values_are_printed_as_go_prints_them(value: Any, printed: str) -> None:
    assert gotext.text(value) == printed
