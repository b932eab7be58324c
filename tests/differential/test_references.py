"""What quick tests compare our types and documents with is what kube-apiserver says of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.core import make_core_reference
from tests.differential.side import Side
from tests.openapi import make_document_reference

pytestmark = [pytest.mark.differential, pytest.mark.slow]

_PUBLISHED_SECONDS = 60.0
"""Documents follow definitions by themselves, a moment later."""


async def _document(side: Side, name: str) -> str:
    answer = await side.ask("GET", f"/openapi/{name}", None, {"Accept": "application/json"}, "admin")
    assert answer.status == 200, answer
    return answer.text


async def test_the_reference_of_core_types_is_that_of_the_real_server(sides: tuple[Side, Side]) -> None:
    expected = json.loads(Path(make_core_reference.__file__).with_name("reference.json").read_text())
    assert make_core_reference.reference(await _document(sides[0], "v3/api/v1")) == expected


async def test_the_reference_of_documents_is_that_of_the_real_server(sides: tuple[Side, Side]) -> None:
    expected = json.loads(Path(make_document_reference.__file__).with_name("reference.json").read_text())
    async with asyncio.timeout(_PUBLISHED_SECONDS):
        v2 = await _document(sides[0], "v2")
        while not all(f"/apis/{group}/" in v2 for group in make_document_reference.GROUPS):
            await asyncio.sleep(0.5)
            v2 = await _document(sides[0], "v2")
    v3 = {name: await _document(sides[0], f"v3/{name}") for name in make_document_reference.DOCUMENTS}
    assert make_document_reference.reference(v2, v3) == expected
