"""T004: a server whose store is not there yet says the same of its resources as one that is ready."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from apiserver.certificates import prepare_certificates
from tests.apiserver.running import Listening
from tests.tools.etcd import Etcd, free_ports

GROUPS = ("/apis/clrk.apoxy.dev/v1alpha1", "/apis/worker.saved.sh/v1alpha1")
POOLS = f"{GROUPS[0]}/namespaces/default/workerpools"


async def discovered(client: aiohttp.ClientSession) -> list[list[str]]:
    """The names of what each group has."""
    names = []
    for path in GROUPS:
        async with client.get(path) as response:
            assert response.status == 200
            document: dict[str, Any] = await response.json()
        names.append([resource["name"] for resource in document["resources"]])
    return names


@pytest.mark.etcd
async def test_discovery_is_whole_from_the_first_connection_on_until_the_store_is_there(tmp_path: Path) -> None:
    """T004."""
    etcd = Etcd(tmp_path)
    (port,) = free_ports(1)
    data = tmp_path / "data"
    pki = prepare_certificates(data / "pki", ["localhost", "127.0.0.1"])
    reach = Listening(f"https://127.0.0.1:{port}", port, pki, None)  # type: ignore[arg-type]
    flags = ("serve", f"--data-dir={data}", f"--secure-port={port}", f"--etcd-servers={etcd.url}")
    server = await asyncio.create_subprocess_exec(sys.executable, "-m", "apiserver", *flags, stdout=PIPE, stderr=PIPE)
    assert server.stdout is not None
    ready = asyncio.create_task(server.stdout.readline())
    answers: list[list[list[str]]] = []
    try:
        async with asyncio.timeout(60), reach.client(pki.admin) as client:
            while not ready.done():
                try:
                    answers.append(await discovered(client))
                except aiohttp.ClientConnectorError:
                    assert not answers, "it was reached before"
                    await asyncio.sleep(0.01)
                    continue
                if len(answers) == 20:
                    async with client.get(POOLS) as response:
                        assert response.status in (500, 503, 504)
                    await asyncio.to_thread(etcd.start)
            answers.append(await discovered(client))
            async with client.get(POOLS) as response:
                assert response.status == 200
        assert {tuple(map(tuple, answer)) for answer in answers} == {
            (("workerpools", "workerpools/status", "workerpools/scale"), ("localworkers", "localworkers/status"))
        }
        assert b"Serving on " in ready.result()
    finally:
        ready.cancel()
        server.terminate()
        await server.communicate()
        etcd.stop()
