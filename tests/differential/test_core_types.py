"""What tests/core compares our core types with is what kube-apiserver says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.core import make_core_reference
from tests.differential.side import Side

pytestmark = [pytest.mark.differential, pytest.mark.slow]

_REFERENCE = Path(make_core_reference.__file__).with_name("reference.json")


async def test_the_reference_of_core_types_is_that_of_the_real_server(sides: tuple[Side, Side]) -> None:
    answer = await sides[0].ask("GET", "/openapi/v3/api/v1", None, {"Accept": "application/json"}, "admin")
    assert make_core_reference.reference(answer.text) == json.loads(_REFERENCE.read_text())
