"""YAML in and out, against what sigs.k8s.io/yaml answers for the same text."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.meta import yaml_codec
from apiserver.meta.yaml_codec import YAMLError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0o17", 15),
        ("017", 15),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0b11", 3),
        ("-1_0", -10),
        ("+1", 1),
        ("08", 8.0),
        ("0o8", "0o8"),
        ("12e03", 12000.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e400", "1e400"),
        ("1:30", "1:30"),
        ("_1", "_1"),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", 2.0**63),
        ("100000000000000000000", 1e20),
        ("yes", True),
        ("y", True),
        ("on", True),
        ("Off", False),
        ("tRue", "tRue"),
        ("~", None),
        ("", None),
        ("null", None),
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("!!int '1'", 1),
        ("!!float 1", 1.0),
        ("!!binary aGk=", "hi"),
        ("=", "="),
        ("|\n  x\n  y", "x\ny"),
    ],
)
def test_scalars_have_the_values_of_yaml_1_1(text: str, value: Any) -> None:
    found = yaml_codec.decode(f"a: {text}".encode())["a"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("key", "name"), [("1", "1"), ("true", "true"), ("1.5", "1.5"), ("2020-01-01", "2020-01-01"), ("? a\n", "a")])
def test_keys_become_strings(key: str, name: str) -> None:
    assert yaml_codec.decode(f"{key}: x".encode()) == {name: "x"}


def test_only_the_first_document_counts_and_none_is_null() -> None:
    assert yaml_codec.decode(b"--- \na: 1\n---\nb: 2") == {"a": 1}
    assert yaml_codec.decode(b"") is None


def test_aliases_and_merges_unfold_into_values_of_their_own() -> None:
    value = yaml_codec.decode(b"a: &x {b: {c: 1}}\nd: *x\ne:\n  <<: *x\n  f: 2")
    assert value == {"a": {"b": {"c": 1}}, "d": {"b": {"c": 1}}, "e": {"b": {"c": 1}, "f": 2}}
    value["d"]["b"]["c"] = 2
    assert value["a"] == {"b": {"c": 1}}


def test_keys_that_are_set_twice_are_told_and_the_last_one_counts() -> None:
    duplicates: list[str] = []
    assert yaml_codec.decode(b"a:\n  b: 1\n  b: 2\nc: 1\nc: 2", duplicates=duplicates) == {"a": {"b": 2}, "c": 2}
    assert duplicates == ['line 3: key "b" already set in map', 'line 5: key "c" already set in map']
    assert yaml_codec.strict_error(duplicates).startswith("yaml: unmarshal errors:\n  line 3: key")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1, 2", "yaml: line 1: did not find expected ',' or ']'"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("a: 1\n b: 2", "yaml: line 2: mapping values are not allowed in this context"),
        ("\ta: 1", "yaml: found character that cannot start any token"),
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("a: &a [*a]", "yaml: anchor 'a' value contains itself"),
        ("a: !!null x", "yaml: cannot decode !!str `x` as a !!null"),
        ("a: .nan", "json: unsupported value: NaN"),
        ("a: .inf", "json: unsupported value: +Inf"),
        ("<<: 1", "yaml: map merge requires map or sequence of maps as the value"),
    ],
)
def test_what_cannot_be_read_is_told_in_upstream_words(text: str, problem: str) -> None:
    with pytest.raises(YAMLError) as caught:
        yaml_codec.decode(text.encode())
    assert str(caught.value) == problem


@pytest.mark.parametrize("text", ["~: a", "{[a]: b}", "? {a: b}\n: c", "&k [x]: 1", "a: &k [x]\n*k : 1", "\xff\0", "a: \x01"])
def test_what_json_cannot_say_is_refused(text: str) -> None:
    with pytest.raises(YAMLError):
        yaml_codec.decode(text.encode())


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system [id]", "!!python/name:os.system x", "!foo {}", "!!set {a}", "!<x:y> z"])
def test_no_tag_makes_an_object_t027(tag: str) -> None:
    with pytest.raises(YAMLError, match="is not supported"):
        yaml_codec.decode(f"a: {tag}".encode())


def billion_laughs() -> bytes:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for name, inner in zip("bcdefghij", "abcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{','.join([f'*{inner}'] * 9)}]")
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (billion_laughs(), "excessive aliasing"),
        (b"[" * (3 << 20), "depth"),
        (b"{" * (3 << 20), "depth"),
        (b"- " * 1_000_000, "depth"),
        ("".join(" " * depth + "a:\n" for depth in range(1400)).encode(), "depth"),
        (b"[" + b"1," * 400_000 + b"1]", "more than 200000 nodes"),
        (b"a: &a " + b"[" * 200 + b"]" * 200 + b"\nb: " + b"[" * 100 + b"*a" + b"]" * 100, "depth"),
        (b"a" * (1 << 20) + b": 1", "not allowed"),
    ],
    ids=["aliases", "lists", "maps", "sequences", "indents", "long", "deep-by-alias", "long-key"],
)
def test_a_bomb_is_refused_t027(data: bytes, problem: str) -> None:
    with pytest.raises(YAMLError, match=problem):
        yaml_codec.decode(data)


def test_values_are_written_as_kubectl_shows_them() -> None:
    value: dict[str, Any] = {
        "apiVersion": "v1",
        "a10": [],
        "a9": {},
        "text": "1",
        "switch": "yes",
        "date": "2020-01-01",
        "colon": "x: y",
        "comment": "a #b",
        "lines": "multi\nline\n",
        "open": "multi\nline",
        "empty": "",
        "nothing": None,
        "list": [1, {"x": 1, "y": [1, 2]}, [3]],
        "lead": " x",
        "quote": "it's",
        "control": "\x01",
        "float": 1.5,
        "large": 1e21,
        "yes": True,
    }
    assert yaml_codec.encode(value).decode() == (
        "a9: {}\n"
        "a10: []\n"
        "apiVersion: v1\n"
        "colon: 'x: y'\n"
        "comment: 'a #b'\n"
        'control: "\\x01"\n'
        'date: "2020-01-01"\n'
        'empty: ""\n'
        "float: 1.5\n"
        "large: 1e+21\n"
        "lead: ' x'\n"
        "lines: |\n  multi\n  line\n"
        'list:\n- 1\n- x: 1\n  "y":\n  - 1\n  - 2\n- - 3\n'
        "nothing: null\n"
        "open: |-\n  multi\n  line\n"
        "quote: it's\n"
        'switch: "yes"\n'
        'text: "1"\n'
        '"yes": true\n'
    )


@pytest.mark.parametrize(("value", "text"), [("x", "x\n"), ([], "[]\n"), ({}, "{}\n"), (None, "null\n")])
def test_a_lone_value_is_written_without_marks(value: Any, text: str) -> None:
    assert yaml_codec.encode(value).decode() == text


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)
    | st.text(st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029\ufeff\r"), max_size=12)
    | st.sampled_from(["yes", "1", "0x1", "1_0", "~", "<<", "=", "2020-01-01", "- a", "a: b", "#", "'", '"', "\n", "a\n ", "---", "..."]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc<_-19 ", max_size=4) | st.just("<<"), inner, max_size=4),
    max_leaves=15,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=json_values)
def test_what_is_written_reads_as_the_same_value(value: Any) -> None:
    assert yaml_codec.decode(yaml_codec.encode(value)) == value


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.text("ab:-?[]{}&*!|>'\"%@#,~<\n 1", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(YAMLError):
        yaml_codec.decode(text.encode(), duplicates=[])
