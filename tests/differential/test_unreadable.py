"""What either says of an object that lies in etcd and cannot be read, and how it is got rid of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.conftest import Pair, paired
from tests.differential.exchange import ALL_POOLS, POOLS, Request, send
from tests.differential.lockstep import Tally
from tests.differential.objects import create, delete, get, listed, merge, pool
from tests.differential.one_etcd import OUR_PREFIX, call_etcd, over_one_etcd

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


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """A kube-apiserver of its own: once it has met what it cannot read, it lists anew, and has forgotten the past that others ask for."""
    with paired(tmp_path) as pair:
        yield pair


async def test_both_say_the_same_of_what_cannot_be_read(pair: Pair, tally: Tally, tmp_path: Path) -> None:
    async with over_one_etcd(pair, tally, tmp_path, "unreadable", quiet=False) as lockstep:
        assert await lockstep.run(_BEFORE) is None
        for prefix in ("", OUR_PREFIX):
            await call_etcd(pair.etcd_url, "put", key=prefix + _KEY, value="no JSON")
        difference = await lockstep.run(_WHILE)
        assert difference is None, f"\n{difference}"
        await lockstep.clean()
