"""What was acknowledged is there after the process was killed, whenever that was."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from storage.errors import Compacted
from storage.sqlite import SqliteStore
from tests.storage.following import PODS, following
from tests.storage.sqlite.crash_template import DELETE_EACH, WRITERS

ROUNDS = 100
Ledger = dict[int, list[tuple[int, int]]]


async def run_until_killed(template: Process, prefix: str, *, compacting: bool, acknowledged: int) -> Ledger:
    """Let a writer run for so many acknowledgements, kill it, and return all it has acknowledged."""
    assert template.stdin is not None
    assert template.stdout is not None
    template.stdin.write(f"{prefix} {'compacting' if compacting else 'keeping'}\n".encode())
    pid, ledger, lines = 0, {writer: list[tuple[int, int]]() for writer in range(WRITERS)}, 0
    while True:
        words = (await template.stdout.readline()).split()
        if words[0] == b"pid":
            pid = int(words[1])
        elif words[0] == b"gone":
            assert int(words[1]) == -signal.SIGKILL
            return ledger
        else:
            ledger[int(words[0])].append((int(words[1]), int(words[2])))
            lines += 1
            if lines == acknowledged:
                os.kill(pid, signal.SIGKILL)


def value_after(count: int) -> int | None:
    """Return which count is stored after so many writes of one writer; None when it has deleted its key."""
    return None if count % DELETE_EACH == 0 else count


async def check_round(store: SqliteStore, prefix: str, ledger: Ledger) -> dict[str, int]:
    """Compare what is there with the ledger; return what is there."""
    revisions = [revision for writes in ledger.values() for _, revision in writes]
    assert len(set(revisions)) == len(revisions)
    current = await store.current_revision()
    assert current >= max(revisions)
    there = {item.key: item for item in (await store.list(prefix)).items}
    for writer, writes in ledger.items():
        count, revision = writes[-1] if writes else (0, 0)
        item = there.get(f"{prefix}{writer}")
        found = None if item is None else int(item.value.split()[0])
        # The write after the last acknowledged one may have happened: nobody was told.
        if count and found == value_after(count):
            assert item is None or item.revision == revision
        else:
            assert found == value_after(count + 1) or (found is None and not count)
            assert item is None or item.revision > revision
    try:
        async with following(store, prefix, after_revision=min(revisions) - 1) as watch:
            events = {event.revision: event.key for event in await watch.until_revision(current)}
    except Compacted:
        pass
    else:
        for writer, writes in ledger.items():
            assert all(events[revision] == f"{prefix}{writer}" for _, revision in writes)
    return {key: item.revision for key, item in there.items()}


async def test_t101_every_acknowledged_write_survives_a_hundred_kills(tmp_path: Path) -> None:
    """CASES T101; also etcd 13766 and 17780: the next revision is above all that were given, compaction or not."""
    path = tmp_path / "store.db"
    arguments = ("-m", "tests.storage.sqlite.crash_template", str(path))
    template = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=PIPE, stdout=PIPE)
    survivors: dict[str, int] = {}
    rounds_that_wrote = 0
    for round_ in range(ROUNDS):
        prefix = f"{PODS}round{round_}/"
        acknowledged = random.randrange(1, 200)
        ledger = await run_until_killed(template, prefix, compacting=round_ % 2 == 1, acknowledged=acknowledged)
        rounds_that_wrote += 1
        store = await SqliteStore.open(path)
        survivors |= await check_round(store, prefix, ledger)
        after = await store.create(f"{PODS}after/{round_}", b"after")
        assert after.revision > max(revision for writes in ledger.values() for _, revision in writes)
        survivors[after.key] = after.revision
        await store.close()
    assert template.stdin is not None
    template.stdin.close()
    await template.wait()
    assert rounds_that_wrote == ROUNDS
    store = await SqliteStore.open(path)
    assert {item.key: item.revision for item in (await store.list(PODS)).items} == survivors
    await store.close()
