"""The written exchanges: for each matter of the API's concepts some steps in a namespace of their own."""

from __future__ import annotations

from collections.abc import Sequence

from tests.differential.exchange import Step
from tests.differential.scenarios import applies, deletes, errors, forms, lists, matrix, metadata, patches, watches, writes

ALL: dict[str, Sequence[Step]] = {
    f"{module.__name__.rsplit('.', 1)[1]}: {name}": steps
    for module in (writes, patches, applies, deletes, metadata, lists, watches, forms, matrix, errors)
    for name, steps in module.SCENARIOS.items()
}
