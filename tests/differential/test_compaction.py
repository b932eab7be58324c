"""T061 and T056 (a) beside kube-apiserver: what either says of a past that the store has forgotten. Both keep their objects in one etcd."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.differential.conftest import Pair
from tests.differential.exchange import POOLS, Request, Step, Watch, filled
from tests.differential.lockstep import Tally
from tests.differential.objects import create, listed, merge, pool
from tests.differential.one_etcd import call_etcd, over_one_etcd
from tests.differential.side import Side

pytestmark = [pytest.mark.differential, pytest.mark.slow]

_NOTICED_SECONDS = 60.0
"""Both ask the store every fifteen seconds whether somebody has compacted it."""


async def test_both_say_the_same_of_what_is_forgotten(pair: Pair, tally: Tally, tmp_path: Path) -> None:
    async with over_one_etcd(pair, tally, tmp_path, "compaction") as lockstep:
        assert await lockstep.run(_BEFORE) is None
        await _compact(pair.etcd_url)
        async with asyncio.timeout(_NOTICED_SECONDS):
            await asyncio.gather(
                *(_noticed(each, filled(_PAST.path, memory)) for each, memory in zip(lockstep.sides, lockstep.memories, strict=True))
            )
        difference = await lockstep.run(_AFTER)
        await lockstep.clean()
    assert difference is None, f"\n{difference}"


_PAST = listed("?resourceVersion={{rv c0}}&resourceVersionMatch=Exact")
_GO_ON = listed("?limit=2&continue={{continue}}")
_BEFORE: list[Request] = [
    *[create(pool(f"c{number}")) for number in range(5)],
    _PAST,
    *[merge("c3", {"spec": {"replicas": replicas}}) for replicas in (2, 3, 4)],
    listed("?limit=1"),
    merge("c4", {"spec": {"replicas": 2}}),
]
_AFTER: list[Step] = [
    Watch("watch", f"{POOLS}?watch=true&resourceVersion={{{{rv c3 1}}}}"),
    _PAST,
    listed("?resourceVersion={{rv c0}}&limit=2"),
    listed("?resourceVersion={{rv c0}}&resourceVersionMatch=NotOlderThan", from_cache=True),
    _GO_ON,  # 410, with a token to go on inconsistently
    _GO_ON,
    _GO_ON,
]


async def _compact(etcd_url: str) -> None:
    """Forget everything before now, and say so as a kube-apiserver that compacts tells the others."""
    revision = (await call_etcd(etcd_url, "range", key="compact_rev_key"))["header"]["revision"]
    await call_etcd(etcd_url, "put", key="compact_rev_key", value=revision)
    await call_etcd(etcd_url, "compaction", revision=revision)


async def _noticed(side: Side, path: str) -> None:
    while (await side.ask("GET", path, None, {}, "admin")).status != 410:  # noqa: ASYNC110 - only asking tells
        await asyncio.sleep(0.5)
