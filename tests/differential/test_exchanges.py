"""What this server answers is what kube-apiserver answers, but for docs/differences.md."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings

from tests.differential.differences import LISTED
from tests.differential.exchange import Step
from tests.differential.lockstep import Difference, Lockstep, Tally
from tests.differential.scenarios import ALL
from tests.differential.side import Side
from tests.differential.walks import walks

pytestmark = [pytest.mark.differential, pytest.mark.slow]

_DOCUMENT = Path(__file__).parents[2] / "docs" / "differences.md"
_AT_ONCE = 2
"""How many walks go on at the same time: what one waits for, the other uses."""
_WALKS_AT_ONCE = 20
"""How many walks hypothesis takes with one seed; whether there are enough is asked in between."""


@pytest.mark.parametrize("name", ALL)
async def test_both_answer_the_same(name: str, sides: tuple[Side, Side], tally: Tally) -> None:
    namespace = f"s-{re.sub('[^a-z0-9]+', '-', name.lower())}"[:40].rstrip("-")
    difference = await _take(Lockstep(*sides, namespace, tally), ALL[name])
    assert difference is None, f"\n{difference}"


async def test_walks_that_nobody_wrote_are_answered_the_same(sides: tuple[Side, Side], tally: Tally, pytestconfig: pytest.Config) -> None:
    wanted = pytestconfig.getoption("exchanges")
    before = len(tally.different)
    seeds = itertools.count(pytestconfig.getoption("first_walks"))
    loop = asyncio.get_running_loop()

    def go() -> None:
        """Take walks until there were enough; in a thread, since hypothesis awaits nothing."""
        while tally.exchanges.total() < wanted and len(tally.different) == before:
            _take_walks(next(seeds), lambda namespace, steps: _run_on(loop, _take(Lockstep(*sides, namespace, tally), steps)))

    await asyncio.gather(*(asyncio.to_thread(go) for _ in range(_AT_ONCE)))


def _run_on(loop: asyncio.AbstractEventLoop, taking: Coroutine[Any, Any, Difference | None]) -> Difference | None:
    """Wait, in a thread, for what another thread's loop does."""
    return asyncio.run_coroutine_threadsafe(taking, loop).result()


def _take_walks(number: int, take: Callable[[str, list[Step]], Difference | None]) -> None:
    """Take the walks of one seed, each in a namespace of its own; the shortest that is answered otherwise fails."""
    names = itertools.count()

    @seed(number)
    @settings(max_examples=_WALKS_AT_ONCE, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(walks())
    def answered_the_same(steps: list[Step]) -> None:
        difference = take(f"w-{number}-{next(names)}", steps)
        assert difference is None, f"walks {number}:\n{difference}"

    answered_the_same()


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
