"""Of two servers' definitions of one type, the same words make one; another meaning stays two."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from openapi import v2, v2_protobuf
from openapi.adopted import adopted, shared_definitions
from openapi.document import Document
from tests.openapi.test_documents import BOTH

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
IDENTITY = "x-kubernetes-group-version-kind"


def document(shared_words: dict[str, Any] | None = None) -> Document:
    return v2.document(BOTH, title="t", version="v1", shared_words=shared_words or {})


def theirs() -> dict[str, Any]:
    """Our shared definitions in other words and another order, of more kinds."""
    definitions = shared_definitions(json.loads(document().content))
    told = json.loads(json.dumps(definitions).replace('"description": "', '"description": "In other words: '))
    for definition in told.values():
        if "required" in definition:
            definition["required"].reverse()
    told[f"{META}DeleteOptions"][IDENTITY].append({"group": "apps", "version": "v1", "kind": "DeleteOptions"})
    return dict(told)


def test_t010_what_is_shared_is_described_once() -> None:
    found = json.loads(document(theirs()).content)["definitions"]
    for name, definition in theirs().items():
        without_identity = {key: value for key, value in found[name].items() if key != IDENTITY}
        assert without_identity == {key: value for key, value in definition.items() if key != IDENTITY}, name


def test_each_server_names_its_own_kinds() -> None:
    before, after = (json.loads(one.content)["definitions"] for one in (document(), document(theirs())))
    for name, definition in before.items():
        assert after[name].get(IDENTITY) == definition.get(IDENTITY)


def test_kinds_are_described_by_the_server_that_has_them() -> None:
    whole = json.loads(document().content)
    [kind] = [name for name in whole["definitions"] if name.endswith(".Apple")]
    told = copy.deepcopy(whole)
    told["definitions"][kind]["description"] = "As it was before."
    assert kind not in shared_definitions(told)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda definition: definition["properties"].pop("uid"), id="a field less"),
        pytest.param(lambda definition: definition["properties"]["uid"].update(format="uuid"), id="a field with another format"),
        pytest.param(lambda definition: definition.update(required=["uid", "more"]), id="other fields required"),
    ],
)
def test_another_meaning_is_not_taken_over(change: Any) -> None:
    told = theirs()
    change(told[f"{META}Preconditions"])
    before, after = (json.loads(one.content)["definitions"] for one in (document(), document(told)))
    assert after[f"{META}Preconditions"] == before[f"{META}Preconditions"]
    assert after[f"{META}Status"] != before[f"{META}Status"]


def test_a_field_called_description_is_a_field() -> None:
    ours = {"a": {"type": "object", "properties": {"description": {"type": "string", "description": "ours"}}}}
    other = {"a": {"type": "object", "properties": {}}}
    assert adopted(ours, other) == ours


def test_the_same_words_give_the_same_bytes_and_can_be_sent_as_protobuf() -> None:
    assert document(theirs()) == document(theirs())
    assert v2_protobuf.encoded(document(theirs())).content != v2_protobuf.encoded(document()).content


@pytest.mark.parametrize(
    "of_others", [{}, {"definitions": None}, {"definitions": {f"{META}Status": 1}}], ids=["nothing", "null", "a number"]
)
def test_nothing_is_taken_from_what_is_no_document(of_others: dict[str, Any]) -> None:
    assert shared_definitions(of_others) == {}
