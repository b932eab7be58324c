"""T061 and T056 (a) beside kube-apiserver: what either says of a past that the store has forgotten. Both keep their objects in one etcd."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path

import aiohttp
import pytest

from tests.apiserver.process import serving
from tests.differential.conftest import Pair
from tests.differential.exchange import POOLS, Request, Step, Watch, filled
from tests.differential.lockstep import Lockstep, Tally
from tests.differential.objects import create, listed, merge, pool
from tests.differential.side import Side, side

pytestmark = [pytest.mark.differential, pytest.mark.slow]

_NOTICED_SECONDS = 60.0
"""Both ask the store every fifteen seconds whether somebody has compacted it."""


async def test_both_say_the_same_of_what_is_forgotten(pair: Pair, tally: Tally, tmp_path: Path) -> None:
    flags = (*pair.our_flags, f"--etcd-servers={pair.etcd_url}", "--etcd-prefix=/ours")
    with serving(tmp_path / "ours", *flags) as ours:
        async with side("kube-apiserver", pair.real_url, pair.contexts) as real, side("this server", ours.url, pair.contexts) as other:
            lockstep = Lockstep(real, other, "compaction", tally)
            await lockstep.prepare()
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
    async with aiohttp.ClientSession(etcd_url) as client:

        async def call(method: str, **request: str) -> dict[str, dict[str, str]]:
            async with client.post(f"/v3/kv/{method}", json=request) as response:
                assert response.status == 200, await response.text()
                answer: dict[str, dict[str, str]] = json.loads(await response.read())
                return answer

        revision = (await call("range", key=_encoded("compact_rev_key")))["header"]["revision"]
        await call("put", key=_encoded("compact_rev_key"), value=_encoded(revision))
        await call("compaction", revision=revision)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def _noticed(side: Side, path: str) -> None:
    while (await side.ask("GET", path, None, {}, "admin")).status != 410:  # noqa: ASYNC110 - only asking tells
        await asyncio.sleep(0.5)
