"""What is free goes back to the system."""

from __future__ import annotations

import asyncio
import ctypes
import re
from pathlib import Path

import pytest

from apiserver.heap import keep_trimmed


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
