"""What either says of an object that lies in etcd and cannot be read, and how it is got rid of."""

from __future__ import annotations

import base64
from pathlib import Path

import aiohttp
import pytest

from tests.apiserver.process import serving
from tests.differential.conftest import Pair
from tests.differential.exchange import ALL_POOLS, POOLS, Request, send
from tests.differential.lockstep import Lockstep, Tally
from tests.differential.objects import create, delete, get, listed, merge, pool
from tests.differential.side import side

pytestmark = [pytest.mark.differential, pytest.mark.slow]

_UNSAFE = "ignoreStoreReadErrorWithClusterBreakingPotential"
_KEY = "/registry/clrk.apoxy.dev/workerpools/unreadable/broken"


def _deleted(name: str, identity: str = "admin", **options: object) -> Request:
    body = {"apiVersion": "v1", "kind": "DeleteOptions", _UNSAFE: True, **options}
    return send("unsafe delete", "DELETE", f"{POOLS}/{name}", body, identity=identity)


_BEFORE = [create(pool("broken")), create(pool("whole"))]
_WHILE: list[Request] = [
    get("broken"),
    listed(),
    listed(path=ALL_POOLS),
    merge("broken", {"spec": {"replicas": 2}}),
    create(pool("broken")),
    delete("broken"),
    get("whole"),
    merge("whole", {"spec": {"replicas": 2}}),
    create(pool("another")),
    _deleted("whole"),
    _deleted("nothing"),
    _deleted("broken", "alice"),
    _deleted("broken", preconditions={"uid": "x"}),
    send("unsafe delete", "DELETE", f"{POOLS}?{_UNSAFE}=true"),
    _deleted("broken", dryRun=["All"]),
    get("broken"),
    _deleted("broken"),
    _deleted("broken"),
    get("broken"),
    get("whole"),
]


async def test_both_say_the_same_of_what_cannot_be_read(pair: Pair, tally: Tally, tmp_path: Path) -> None:
    flags = (*pair.our_flags, f"--etcd-servers={pair.etcd_url}", "--etcd-prefix=/ours")
    with serving(tmp_path / "ours", *flags, quiet=False) as ours:
        async with side("kube-apiserver", pair.real_url, pair.contexts) as real, side("this server", ours.url, pair.contexts) as other:
            lockstep = Lockstep(real, other, "unreadable", tally)
            await lockstep.prepare()
            assert await lockstep.run(_BEFORE) is None
            for prefix in ("", "/ours"):
                await _overwrite(pair.etcd_url, prefix + _KEY, "no JSON")
            difference = await lockstep.run(_WHILE)
            assert difference is None, f"\n{difference}"
            await lockstep.clean()


async def _overwrite(etcd_url: str, key: str, value: str) -> None:
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in (("key", key), ("value", value))}
    async with aiohttp.ClientSession(etcd_url) as client, client.post("/v3/kv/put", json=encoded) as response:
        assert response.status == 200, await response.text()
