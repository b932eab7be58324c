"""JSON patch as kube-apiserver's library does it."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.apply.json_patch import MAX_COPIED_BYTES, PatchError, apply


def document() -> dict[str, Any]:
    return {"a": {"b/c": 1, "list": [1, 2, 3], "m~n": "x"}, "n": None}


@pytest.mark.parametrize(
    ("operation", "at", "result"),
    [
        pytest.param({"op": "add", "path": "/a/new", "value": {"x": 1}}, "a.new", {"x": 1}, id="add"),
        pytest.param({"op": "add", "path": "/a/new"}, "a.new", None, id="add-nothing-is-null"),
        pytest.param({"op": "add", "path": "/a/list/1", "value": 9}, "a.list", [1, 9, 2, 3], id="insert"),
        pytest.param({"op": "add", "path": "/a/list/3", "value": 9}, "a.list", [1, 2, 3, 9], id="insert-at-the-end"),
        pytest.param({"op": "add", "path": "/a/list/-", "value": 9}, "a.list", [1, 2, 3, 9], id="append"),
        pytest.param({"op": "remove", "path": "/a/list/-1"}, "a.list", [1, 2], id="negative-index"),
        pytest.param({"op": "replace", "path": "/a/b~1c", "value": 2}, "a.b/c", 2, id="escaped-slash"),
        pytest.param({"op": "replace", "path": "/a/m~0n", "value": 2}, "a.m~n", 2, id="escaped-tilde"),
        pytest.param({"op": "replace", "path": "/a/absent", "value": 2}, "a.absent", 2, id="replace-adds-to-an-object"),
        pytest.param({"op": "move", "from": "/a/b~1c", "path": "/a/moved"}, "a.moved", 1, id="move"),
        pytest.param({"op": "copy", "from": "/a/list", "path": "/n"}, "n", [1, 2, 3], id="copy"),
        pytest.param({"op": "test", "path": "/a/list", "value": [1, 2, 3]}, "n", None, id="test"),
        pytest.param({"op": "test", "path": "/absent", "value": None}, "n", None, id="test-absent-is-null"),
        pytest.param({"op": "add", "path": "x/n", "value": 5}, "n", 5, id="pointer-without-a-slash"),
    ],
)
def test_an_operation_does_what_upstream_does(operation: dict[str, Any], at: str, result: Any) -> None:
    value = apply(document(), [operation])
    for step in at.split("."):
        value = value[step]
    assert value == result


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "test", "path": "/a/b~1c", "value": 2}, id="other-value"),
        pytest.param({"op": "test", "path": "/a/b~1c", "value": True}, id="true-is-not-one"),
        pytest.param({"op": "test", "path": "/a/b~1c", "value": 1.0}, id="a-float-is-no-integer"),
        pytest.param({"op": "remove", "path": "/a/absent"}, id="remove-absent"),
        pytest.param({"op": "remove", "path": "/a/list/3"}, id="index-too-large"),
        pytest.param({"op": "add", "path": "/a/list/4", "value": 1}, id="insert-beyond-the-end"),
        pytest.param({"op": "add", "path": "/a/list/x", "value": 1}, id="no-index"),
        pytest.param({"op": "add", "path": "/absent/x", "value": 1}, id="no-parent"),
        pytest.param({"op": "add", "path": "", "value": {}}, id="add-the-root"),
        pytest.param({"op": "replace", "path": "", "value": 1}, id="replace-the-root-by-a-scalar"),
        pytest.param({"op": "move", "from": "/absent", "path": "/x"}, id="move-absent"),
        pytest.param({"op": "copy", "path": "/x"}, id="copy-from-nowhere"),
        pytest.param({"op": "add", "value": 1}, id="no-path"),
        pytest.param({"op": "frob", "path": "/x"}, id="unknown-operation"),
        pytest.param(None, id="null"),
    ],
)
def test_what_cannot_be_done_is_an_error(operation: dict[str, Any] | None) -> None:
    with pytest.raises(PatchError):
        apply(document(), [operation])


def test_operations_can_be_applied_again() -> None:
    operations: list[dict[str, Any] | None] = [{"op": "add", "path": "/x", "value": {"y": []}}, {"op": "add", "path": "/x/y/-", "value": 1}]
    assert apply(document(), operations)["x"] == apply(document(), operations)["x"] == {"y": [1]}


def test_copies_are_bounded() -> None:
    value = {"big": "x" * (MAX_COPIED_BYTES // 2), "list": []}
    copy = {"op": "copy", "from": "/big", "path": "/list/-"}
    with pytest.raises(PatchError, match="accumulated size"):
        apply(value, [copy, copy, copy])
