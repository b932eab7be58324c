"""Both servers over one etcd, each under its own prefix, and that etcd itself, past both."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.apiserver.process import serving
from tests.connector import Connector
from tests.differential.conftest import Pair
from tests.differential.lockstep import Lockstep, Tally
from tests.differential.side import side

OUR_PREFIX = "/ours"
"""What stands before each of our keys; kube-apiserver's have nothing there."""


@asynccontextmanager
async def over_one_etcd(pair: Pair, tally: Tally, folder: Path, namespace: str, *, quiet: bool = True) -> AsyncIterator[Lockstep]:
    """Kube-apiserver and a server of ours that keeps its objects in the same etcd, in a namespace that is there."""
    flags = (*pair.our_flags, f"--etcd-servers={pair.etcd_url}", f"--etcd-prefix={OUR_PREFIX}")
    with serving(folder / "over-etcd", *flags, quiet=quiet) as ours:
        async with side("kube-apiserver", pair.real_url, pair.contexts) as real, side("this server", ours.url, pair.contexts) as other:
            lockstep = Lockstep(real, other, namespace, tally)
            await lockstep.prepare()
            yield lockstep


async def call_etcd(etcd_url: str, method: str, *, key: str = "", value: str = "", **request: str) -> dict[str, Any]:
    """Have etcd do something with its keys (`range`, `put`, `compaction`), and return what it says."""
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in (("key", key), ("value", value)) if text}
    async with (
        aiohttp.ClientSession(etcd_url, connector=Connector()) as client,
        client.post(f"/v3/kv/{method}", json=encoded | request) as response,
    ):
        assert response.status == 200, await response.text()
        answer: dict[str, Any] = json.loads(await response.read())
        return answer
