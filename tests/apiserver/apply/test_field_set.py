"""Sets of fields against the plain idea of a set of paths."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.apply import field_set, path_element
from apiserver.apply.field_set import LEAF, SELF, FieldSet, FieldSetError, Path

ELEMENTS = ("f:a", "f:b", 'k:{"name":"x"}', 'v:"y"', "i:0")
PATHS = st.lists(st.sampled_from(ELEMENTS), min_size=1, max_size=4).map(tuple)
MODELS = st.frozensets(PATHS, max_size=8)


def made(model: frozenset[Path]) -> FieldSet:
    result = LEAF
    for path in model:
        result = field_set.union(result, field_set.of_path(path))
    return result


def model_of(fields: FieldSet) -> frozenset[Path]:
    return frozenset(field_set.paths(fields))


def is_canonical(fields: FieldSet, *, root: bool = True) -> bool:
    if not root and len(fields) == 1 and SELF in fields:
        return False
    return all(inner == LEAF if element == SELF else is_canonical(inner, root=False) for element, inner in fields.items())


@given(MODELS)
def test_a_set_is_the_paths_that_were_put_into_it(model: frozenset[Path]) -> None:
    fields = made(model)
    assert model_of(fields) == model
    assert is_canonical(fields)
    assert field_set.canonical(fields) == fields
    for path in model:
        assert field_set.has(fields, path)
        assert not field_set.has(fields, (*path, "f:beyond"))


@given(MODELS, MODELS)
def test_union_difference_and_intersection_are_those_of_sets(one: frozenset[Path], other: frozenset[Path]) -> None:
    mine, theirs = made(one), made(other)
    for operation, wanted in (
        (field_set.union, one | other),
        (field_set.difference, one - other),
        (field_set.intersection, one & other),
        (field_set.recursive_difference, {path for path in one if not any(path[:size] in other for size in range(1, len(path) + 1))}),
    ):
        result = operation(mine, theirs)
        assert model_of(result) == wanted
        assert is_canonical(result)
        assert result == made(frozenset(wanted))
    assert (mine, theirs) == (made(one), made(other))


@given(MODELS, MODELS)
def test_a_difference_that_takes_nothing_is_the_set_itself(one: frozenset[Path], other: frozenset[Path]) -> None:
    mine = made(one)
    if not one & other:
        assert field_set.difference(mine, made(other)) is mine


@given(MODELS, MODELS)
def test_a_union_that_adds_nothing_is_the_set_itself(one: frozenset[Path], other: frozenset[Path]) -> None:
    mine = made(one | other)
    if mine:
        assert field_set.union(mine, made(other)) is mine


def test_paths_come_in_the_order_of_upstream() -> None:
    below = ('k:{"n":"10"}', 'k:{"n":"9"}', "v:10", "v:9", "v:true", 'v:"x"', "i:10", "i:9")
    fields = {"f:b": {SELF: LEAF, "f:c": LEAF}, "f:a": {**dict.fromkeys(below, LEAF), 'k:{"n":"10"}': {"f:v": LEAF}}}
    texts = list(map(field_set.path_text, field_set.paths(fields)))
    assert texts == [
        ".b",
        '.a[n="9"]',
        ".a[=9]",
        ".a[=10]",
        '.a[="x"]',
        ".a[=true]",
        ".a[9]",
        ".a[10]",
        '.a[n="10"].v',
        ".b.c",
    ]


def test_keys_are_written_as_go_writes_them() -> None:
    assert path_element.key_element({"protocol": "TCP", "port": 80}) == 'k:{"port":80,"protocol":"TCP"}'
    assert path_element.key_element({"name": 'a"<b>&\\'}) == 'k:{"name":"a\\"\\u003cb\\u003e\\u0026\\\\"}'
    assert path_element.value_element(1.5) == "v:1.5"
    assert path_element.value_element(True) == "v:true"
    assert field_set.path_text(("f:spec", 'k:{"port":80,"protocol":"TCP"}', 'v:"q\\""')) == '.spec[port=80,protocol="TCP"][="q\\""]'


def test_what_a_client_wrote_is_brought_into_form() -> None:
    """As a kube-apiserver 1.37 answers it."""
    odd = {".": {"a": 1}, "f:template": {".": {}}, 'k:{"b":1, "a":2}': {}, "v: 1.0": {}, "i:007": {}, "z:later": {}}
    told = {SELF: LEAF, "f:template": LEAF, 'k:{"a":2,"b":1}': LEAF, "v:1": LEAF, "i:7": LEAF}
    assert field_set.canonical({"f:spec": odd, "f:x": None}) == {"f:spec": told, "f:x": LEAF}


@pytest.mark.parametrize("fields", [{"x": {}}, {"f:spec": []}, {"f:spec": "a"}, [], {"v:{": {}}, {"k:1": {}}, {"i:x": {}}])
def test_what_is_no_set_is_refused(fields: Any) -> None:
    with pytest.raises(FieldSetError):
        field_set.canonical(fields)
