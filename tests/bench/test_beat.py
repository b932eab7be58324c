"""The beat of the bench tells how long an event loop is held, and nothing that others do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.bench.beat import Beat

HELD_SECONDS = 0.05


def work() -> None:
    began = time.thread_time()
    while time.thread_time() - began < HELD_SECONDS:
        pass


@pytest.fixture
def beat(tmp_path: Path) -> Beat:
    return Beat(tmp_path / "beat")


@asynccontextmanager
async def watching(beat: Beat) -> AsyncIterator[None]:
    """As another process does it."""
    watched = beat.watching()
    await asyncio.to_thread(watched.__enter__)
    try:
        yield
    finally:
        watched.__exit__(None, None, None)


async def test_a_hold_is_told_to_whoever_watches(beat: Beat, tmp_path: Path) -> None:
    beat.begin()
    reader = Beat(tmp_path / "beat")
    for _ in range(2):
        work()
        async with watching(reader):
            await asyncio.sleep(0.01)
        assert reader.longest_seconds < HELD_SECONDS
        async with watching(reader):
            work()
            await asyncio.sleep(0.01)
        assert reader.longest_seconds >= HELD_SECONDS


async def test_what_a_thread_does_and_what_the_loop_waits_for_is_no_hold(beat: Beat) -> None:
    beat.begin()
    async with watching(beat):
        await asyncio.gather(asyncio.to_thread(work), asyncio.sleep(2 * HELD_SECONDS))
    assert beat.longest_seconds < HELD_SECONDS
