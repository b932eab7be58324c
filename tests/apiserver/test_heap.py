"""What is free goes back to the system."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import re
from contextlib import suppress
from pathlib import Path

import pytest

from apiserver.access import standalone
from apiserver.app import build_app
from apiserver.certificates import Certificates
from apiserver.config import Config
from apiserver.connection import Connection
from apiserver.doorway import Doorway
from apiserver.heap import keep_trimmed
from apiserver.http2.connection import Http2Connection
from apiserver.http2.stream import Stream
from storage.memory import MemoryStore
from tests.apiserver.http2.talking import talking
from tests.apiserver.reading import GADGETS, Events, change, create
from tests.apiserver.running import Listening, listening


def resident_bytes() -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library cannot give memory back when it is asked")
async def test_memory_between_what_is_in_use_is_given_back() -> None:
    pieces = [bytes(8_000) for _ in range(10_000)]
    kept = pieces[::50]
    del pieces
    before = resident_bytes()
    trimming = asyncio.create_task(keep_trimmed(every_seconds=0.01))
    async with asyncio.timeout(60):
        while await asyncio.to_thread(resident_bytes) > before - 40_000_000:
            pass
    trimming.cancel()
    await asyncio.wait([trimming])
    assert len(kept) == 200


async def test_what_is_left_of_connections_is_no_work_for_the_collector(pki: Certificates, tmp_path: Path) -> None:
    """It looks at what has grown old once in an hour only: connections that have been lost are free at once, whatever was done on them."""
    app = build_app(Config(data_dir=tmp_path, kinds=("tests.apiserver.gadgets",)), MemoryStore(), standalone([pki.authority.certificate]))
    async with app.running():
        await app.wait_ready()
        async with listening(pki, app.handle, app=app) as listener:
            await use(listener)  # what is made once is made
            gc.collect()
            gc.disable()
            try:
                await use(listener)
                kept = [object()]
                with suppress(TimeoutError):
                    async with asyncio.timeout(10):
                        while kept:
                            await asyncio.sleep(0.05)
                            kept = [one for one in gc.get_objects() if isinstance(one, (Connection, Doorway, Http2Connection, Stream))]
            finally:
                gc.enable()
    assert not kept


async def use(listener: Listening) -> None:
    """Write, read, watch and be refused, over HTTP/1.1 and HTTP/2."""
    async with listener.client(listener.pki.admin) as client:
        await create(client, "used")
        await change(client, "used", {"spec": {"replicas": 7}})
    async with listener.client(listener.pki.admin) as client:
        async with client.get(GADGETS, params={"watch": "true"}) as watch:
            await Events(watch).next()
        async with client.get(f"{GADGETS}/nothing") as answer:
            assert answer.status == 404
        async with client.delete(f"{GADGETS}/used") as answer:
            assert answer.status == 200
            await answer.read()
    async with talking(listener) as http2:
        for path in (GADGETS, f"{GADGETS}/nothing"):
            await http2.answer(http2.ask("GET", path))
