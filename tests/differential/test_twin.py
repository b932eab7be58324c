"""The definitions say of our kinds what our documents say."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver import kinds
from apiserver.meta.resource import ResourceKind
from tests.differential.twin import definition


@pytest.mark.parametrize("kind", kinds.load("apiserver.kinds"), ids=lambda kind: str(kind.kind))
def test_every_field_of_a_kind_is_in_its_definition(kind: ResourceKind) -> None:
    (version,) = definition(kind)["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert schema["required"] == list(kind.schema.required)
    for part in ("spec", "status"):
        assert list(schema["properties"][part]["properties"]) == list(kind.schema.properties[part].properties)
    assert [column["jsonPath"] for column in version["additionalPrinterColumns"]] == [column.json_path for column in kind.columns]
