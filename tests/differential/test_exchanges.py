"""What this server answers is what kube-apiserver answers, but for docs/differences.md."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.differential.differences import LISTED
from tests.differential.exchange import Step
from tests.differential.lockstep import Difference, Lockstep, Tally
from tests.differential.scenarios import ALL
from tests.differential.side import Side
from tests.differential.walks import walk

pytestmark = [pytest.mark.differential, pytest.mark.slow]

_DOCUMENT = Path(__file__).parents[2] / "docs" / "differences.md"
_AT_ONCE = 2
"""How many walks go on at the same time: what one waits for, the other uses."""


@pytest.mark.parametrize("name", ALL)
async def test_both_answer_the_same(name: str, sides: tuple[Side, Side], tally: Tally) -> None:
    namespace = f"s-{re.sub('[^a-z0-9]+', '-', name.lower())}"[:40].rstrip("-")
    difference = await _take(Lockstep(*sides, namespace, tally), ALL[name])
    assert difference is None, f"\n{difference}"


async def test_walks_that_nobody_wrote_are_answered_the_same(sides: tuple[Side, Side], tally: Tally, pytestconfig: pytest.Config) -> None:
    wanted, number = pytestconfig.getoption("exchanges"), pytestconfig.getoption("first_walk")
    found: list[str] = []
    # One must come out of each; walks end early only where the servers part ways.
    numbers = iter(range(number, number + wanted))

    async def go() -> None:
        for number in numbers:
            if tally.exchanges.total() >= wanted:
                return
            difference = await _take(Lockstep(*sides, f"w-{number}", tally), walk(number))
            if difference is not None:
                found.append(f"walk {number}: {difference}")

    await asyncio.gather(*(go() for _ in range(_AT_ONCE)))
    assert not found, "\n" + "\n".join(found[:10])


def test_what_is_listed_still_differs(tally: Tally, everything_ran: bool) -> None:
    if not everything_ran:
        pytest.skip("some scenarios were left out")
    gone = [listed.id for listed in LISTED.differences if not tally.explained[listed.id] and not listed.by_chance]
    assert not gone, f"to be taken out of docs/differences.md and differences.py: {gone}"


def test_the_document_lists_the_same_differences() -> None:
    documented = re.findall(r"^### `([a-z0-9-]+)`$", _DOCUMENT.read_text(), re.MULTILINE)
    assert sorted(documented) == sorted(listed.id for listed in LISTED.differences)


async def _take(lockstep: Lockstep, steps: Sequence[Step]) -> Difference | None:
    await lockstep.prepare()
    try:
        return await lockstep.run(steps)
    finally:
        await lockstep.clean()
