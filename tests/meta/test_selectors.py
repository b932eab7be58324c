"""Label and field selectors: the grammar and its errors are what Go's parsers say of the same text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.meta.field_selectors import EVERY_FIELD, parse_field_selector
from apiserver.meta.selector_text import parse_label_selector
from apiserver.meta.selectors import EVERYTHING, SelectorError

KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
    "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        ("a", "a"),
        ("!a", "!a"),
        ("a==b", "a==b"),
        ("a!=b", "a!=b"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("a notin (c,b,b)", "a notin (b,c)"),
        ("a in ()", "a in ()"),
        ("a in (b,,c)", "a in (,b,c)"),
        ("a>1,a<5", "a>1,a<5"),
        ("b=2,a=1", "a=1,b=2"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin", "notin"),
        ("a=in", "a=in"),
        ("a.b/c=d", "a.b/c=d"),
        ("  a\t=\nb ,  c ", "a=b,c"),
        ("a\0", "a"),
        ("a,\0b", "a,b"),
    ],
)
def test_a_label_selector_prints_as_upstream_prints_it(text: str, printed: str) -> None:
    assert str(parse_label_selector(text)) == printed


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("x=a=b", "found '=', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (!)", "unable to parse requirement: found '!', expected: ',', ')' or identifier"),
        ("a<x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"),
        ("-a", f'unable to parse requirement: <nil>: Invalid value: "-a": name part {KEY_RULE}'),
        ("a=é", f'unable to parse requirement: values[0][a]: Invalid value: "é": {VALUE_RULE}'),
        ("/a=b", 'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty'),
    ],
)
def test_what_is_wrong_with_a_label_selector_is_told_in_upstream_words(text: str, problem: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(text)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("text", "matching", "failing"),
    [
        ("", [{}, {"a": "1"}], []),
        ("a", [{"a": ""}], [{}, {"b": ""}]),
        ("!a", [{}], [{"a": ""}]),
        ("a=1", [{"a": "1"}], [{}, {"a": "2"}]),
        ("a!=1", [{}, {"a": "2"}], [{"a": "1"}]),
        ("a in (1,2)", [{"a": "2"}], [{}, {"a": "3"}]),
        ("a notin (1,2)", [{}, {"a": "3"}], [{"a": "1"}]),
        ("a=", [{"a": ""}], [{}, {"a": "1"}]),
        ("a>1", [{"a": "2"}, {"a": "+3"}], [{}, {"a": "1"}, {"a": "x"}, {"a": "9" * 30}]),
        ("a<5,b", [{"a": "-4", "b": ""}], [{"a": "4"}, {"a": "5", "b": ""}]),
        ("a,b,c", [{"a": "", "b": "", "c": ""}], [{"a": "", "b": ""}]),
    ],
)
def test_a_label_selector_selects(text: str, matching: list[dict[str, str]], failing: list[dict[str, str]]) -> None:
    selector = parse_label_selector(text)
    assert all(selector.matches(labels) for labels in matching)
    assert not any(selector.matches(labels) for labels in failing)


def test_selectors_that_mean_the_same_are_equal() -> None:
    one = parse_label_selector("a=1,b notin (x),c in (1,2),c in (2,1)")
    other = parse_label_selector("c in (2,1), b!=x ,a in (1)")
    assert one == other
    assert hash(one) == hash(other)
    assert one.key == other.key
    assert one != parse_label_selector("a=1")
    assert parse_label_selector("") is EVERYTHING
    assert EVERYTHING.empty


@pytest.mark.parametrize(
    ("text", "printed", "name"),
    [
        ("", "", None),
        (",", "", None),
        ("metadata.name=x", "metadata.name=x", "x"),
        ("metadata.name==x", "metadata.name=x", "x"),
        ("metadata.name!=x", "metadata.name!=x", None),
        ("metadata.name!=x,metadata.name=y", "metadata.name!=x,metadata.name=y", "y"),
        ("b=1,a=2", "a=2,b=1", None),
        ("a=b,,c=d", "a=b,c=d", None),
        ("a=b\\,c", "a=b\\,c", None),
        ("a=\\\\", "a=\\\\", None),
        ("a\\,b=c", "a\\,b=c", None),
        ("!=", "", None),
    ],
)
def test_a_field_selector_prints_as_upstream_prints_it(text: str, printed: str, name: str | None) -> None:
    selector = parse_field_selector(text)
    assert (str(selector), selector.required("metadata.name")) == (printed, name)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a=b\\x", "invalid field selector: invalid escape sequence: \\x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_what_is_wrong_with_a_field_selector_is_told_in_upstream_words(text: str, problem: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_field_selector(text)
    assert str(caught.value) == problem


def test_only_selectable_fields_may_be_asked_for_t064() -> None:
    parse_field_selector("metadata.name=x,metadata.namespace!=y,spec.mode=a").check(["spec.mode"])
    for field in ("spec.replicas", "metadata.uid"):
        with pytest.raises(SelectorError, match=f"^field label not supported: {field}$"):
            parse_field_selector(f"metadata.name=x,{field}=1").check(["spec.mode"])


def test_a_field_selector_selects_and_an_unset_field_is_empty() -> None:
    fields = {"metadata.name": "x", "spec.mode": "a,b"}
    for text, expected in (
        ("metadata.name=x", True),
        ("metadata.name=y", False),
        ("metadata.name!=y,spec.mode=a\\,b", True),
        ("spec.other=", True),
        ("spec.other!=", False),
    ):
        assert parse_field_selector(text).matches(lambda name: fields.get(name, "")) is expected
    assert EVERY_FIELD.matches(lambda name: "")


words = st.text("abAB01-_.", min_size=1, max_size=6).filter(lambda word: word[0].isalnum() and word[-1].isalnum())
values = st.sets(words, min_size=1, max_size=3).map(lambda found: ",".join(sorted(found)))
terms = st.one_of(
    words,
    words.map("!{}".format),
    st.tuples(words, st.sampled_from(["=", "==", "!="]), words).map("".join),
    st.tuples(words, st.sampled_from(["in", "notin"]), values).map(lambda term: f"{term[0]} {term[1]} ({term[2]})"),
    st.tuples(words, st.sampled_from("<>"), st.integers(0, 2**63 - 1)).map(lambda term: f"{term[0]}{term[1]}{term[2]}"),
)


@given(text=st.lists(terms, max_size=4).map(",".join))
def test_a_printed_label_selector_reads_as_the_same_one(text: str) -> None:
    selector = parse_label_selector(text)
    assert parse_label_selector(str(selector)) == selector


@given(
    found=st.lists(terms, min_size=1, max_size=6),
    labels=st.dictionaries(words | st.integers(-3, 3).map(str), words | st.integers(-3, 3).map(str)),
)
def test_terms_hold_together_when_each_of_them_does(found: list[str], labels: dict[str, str]) -> None:
    together = parse_label_selector(",".join(found)).matches(labels)
    assert together is all(parse_label_selector(term).matches(labels) for term in found)


@given(
    found=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["=", "!="]), st.sampled_from(["", "x", "y"])), min_size=1, max_size=4),
    fields=st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")),
)
def test_terms_of_fields_hold_together_when_each_of_them_does(found: list[tuple[str, str, str]], fields: dict[str, str]) -> None:
    def get(name: str) -> str:
        return fields.get(name, "")

    written = ["".join(term) for term in found]
    assert parse_field_selector(",".join(written)).matches(get) is all(parse_field_selector(term).matches(get) for term in written)


@pytest.mark.parametrize("parse", [parse_label_selector, parse_field_selector])
def test_a_selector_of_thousands_of_terms_is_read_and_a_longer_one_refused(parse: Callable[[str], object]) -> None:
    longest = ",".join(f"metadata.name!=x{number}" for number in range(4097))
    parse(longest)
    with pytest.raises(SelectorError, match=r"^the selector is too long: it has more than 4096 commas$"):
        parse(f"{longest},")


@given(text=st.text("ab=!<>(), in\0\\-", max_size=20), labels=st.dictionaries(words, words))
def test_any_text_is_read_or_refused(text: str, labels: dict[str, str]) -> None:
    for parse in (parse_label_selector, parse_field_selector):
        try:
            selector = parse(text)
        except SelectorError:
            continue
        assert str(parse(str(selector))) == str(selector)
    try:
        assert parse_label_selector(text).matches(labels) in (True, False)
    except SelectorError:
        return
