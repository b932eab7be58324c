"""The beat of the bench tells how long an event loop is held, and nothing that others do."""

from __future__ import annotations

import asyncio
import time
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


async def test_a_hold_is_told_to_whoever_reads_the_file(beat: Beat, tmp_path: Path) -> None:
    beat.begin()
    await asyncio.sleep(0.01)
    work()
    await asyncio.sleep(0.01)
    reader = Beat(tmp_path / "beat")
    assert reader.longest_seconds >= HELD_SECONDS
    reader.forget()
    assert beat.longest_seconds < HELD_SECONDS
    work()
    await asyncio.sleep(0.01)
    assert reader.longest_seconds >= HELD_SECONDS


async def test_what_a_thread_does_and_what_the_loop_waits_for_is_no_hold(beat: Beat) -> None:
    beat.begin()
    await asyncio.gather(asyncio.to_thread(work), asyncio.sleep(2 * HELD_SECONDS))
    assert beat.longest_seconds < HELD_SECONDS
