"""What the server holds and delivers under load, as bounds on memory and counts: never on times, which belong to the machine.

The server is a process of its own over SQLite. The short versions show that nothing grows where it must not; the slow ones are the cases as
they were reported.
"""

from __future__ import annotations

import json
import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from storage.history import RingLimits
from tests.bench.loadgen import Load, beside, run
from tests.bench.scenarios import TABLE
from tests.bench.servers import Server, Servers

HISTORY_MB = (RingLimits().size_bytes or 0) / 1e6
SLACK_MB = 48
"""What an allocator keeps, and the pages of SQLite."""
WATCHER_MB = 0.25
"""A connection itself, what it may have unsent (`WatchLimits.buffer_bytes`), and a piece on top."""
NAMESPACE = "default"


@contextmanager
def stocked(folder: Path, count: int, size_bytes: int) -> Iterator[Server]:
    """A server that holds so many pools of about that size."""
    with Servers(folder, ("sqlite",)).running() as servers:
        server = servers["sqlite"]
        made = run(server, Load("create", NAMESPACE, {"n": count, "c": 8, "d": "20m", "body": server.template, "pad": size_bytes - 1800}))
        assert (made["n"], made.get("errors")) == (count, None)
        yield server


@dataclass(frozen=True, slots=True)
class Watching:
    """How a crowd watches."""

    objects: int
    size_bytes: int
    watchers: int
    updates: int
    stuck: int = 0
    rate: int = 0

    def load(self) -> Load:
        flags: dict[str, Any] = {"objects": self.objects, "w": self.watchers, "events": self.updates, "stuck": self.stuck}
        return Load("watch", NAMESPACE, flags | {"rate": self.rate, "d": "20m"})

    def overwritten_mb(self) -> float:
        """What of the past may be kept: of each state the difference to the next, of some the whole."""
        return min(HISTORY_MB, self.updates * (1_000 + self.size_bytes / 16) / 1e6)

    def check(self, printed: dict[str, Any]) -> None:
        """Every update has reached every watcher that reads."""
        assert (printed["n"], printed.get("errors")) == (self.watchers * self.updates, None)


@pytest.mark.parametrize(
    "crowd",
    [
        pytest.param(Watching(20, 4_096, watchers=20, updates=300, stuck=5, rate=200), id="short"),
        pytest.param(Watching(1_000, 4_096, watchers=95, updates=60_000, stuck=5, rate=200), id="full", marks=pytest.mark.load),
    ],
)
def test_t115_watchers_that_never_read_take_nothing_from_the_others_and_no_memory(tmp_path: Path, crowd: Watching) -> None:
    with stocked(tmp_path, crowd.objects, crowd.size_bytes) as server:
        server.forget_peak()
        before = server.resident_mb()
        crowd.check(run(server, crowd.load()))
        assert server.resident_mb(peak=True) - before < crowd.overwritten_mb() + SLACK_MB + 10 * crowd.stuck


@pytest.mark.load
def test_t115_a_watcher_that_never_reads_is_cut(tmp_path: Path) -> None:
    # Five minutes of updates: the connections that take nothing are gone long before the end.
    crowd = Watching(1_000, 4_096, watchers=1, updates=30_000, stuck=5, rate=100)
    printed: dict[str, Any] = {}
    with stocked(tmp_path, crowd.objects, crowd.size_bytes) as server, beside(server, crowd.load(), printed):
        listening = server.sockets()
        until_written(server, 29_000)
        assert server.sockets() < listening + 1 + crowd.stuck
    crowd.check(printed)


def until_written(server: Server, revisions: int) -> None:
    """Return when the server has given so many revisions more."""
    address = f"{server.collection(NAMESPACE)}?limit=1"
    revision = int(json.loads(server.ask(address))["metadata"]["resourceVersion"]) + revisions
    while True:
        try:
            server.ask(f"{address}&resourceVersionMatch=NotOlderThan&resourceVersion={revision}")
        except urllib.error.HTTPError as error:
            # It waits for some seconds, then says that there is no such revision yet.
            if error.code != 504:
                raise
        else:
            return


def until_returned(server: Server, limit_mb: float) -> None:
    """Return when the server holds less memory than that: what has become free is given back to the system now and then."""
    deadline = time.monotonic() + 60
    while server.resident_mb() >= limit_mb:
        assert time.monotonic() < deadline, f"still {server.resident_mb():.0f} MB, not {limit_mb:.0f}"
        server.ask("/livez")


@pytest.mark.parametrize(
    "crowd",
    [
        pytest.param(Watching(500, 8_192, watchers=100, updates=100), id="short"),
        pytest.param(Watching(10_000, 8_192, watchers=1_000, updates=6_000, rate=50), id="full", marks=pytest.mark.load),
    ],
)
def test_t116_a_crowd_of_watchers_costs_little_memory_and_gives_it_back(tmp_path: Path, crowd: Watching) -> None:
    with stocked(tmp_path, crowd.objects, crowd.size_bytes) as server:
        before = server.resident_mb()
        for _ in range(2):  # what the first crowd has left behind serves the second
            server.forget_peak()
            crowd.check(run(server, crowd.load()))
            peak = server.resident_mb(peak=True)
            assert peak < 600
            assert peak - before < crowd.overwritten_mb() + SLACK_MB + WATCHER_MB * crowd.watchers
        until_returned(server, before + crowd.overwritten_mb() + SLACK_MB)


@pytest.mark.parametrize(
    ("count", "size_bytes"), [pytest.param(1_500, 4_096, id="short"), pytest.param(11_000, 4_096, id="full", marks=pytest.mark.load)]
)
def test_t117_parallel_lists_of_everything_are_complete_and_share_their_memory(tmp_path: Path, count: int, size_bytes: int) -> None:
    with stocked(tmp_path, count, size_bytes) as server:
        address = server.collection(NAMESPACE)
        whole = server.ask(address)
        assert len(json.loads(whole)["items"]) == count
        before = server.resident_mb()
        server.forget_peak()
        for accept in ("application/json", TABLE):
            expected = whole if accept != TABLE else server.ask(address, accept=accept)
            printed = run(server, Load("list", NAMESPACE, {"c": 20, "n": 40, "accept": accept}))
            assert (printed["n"], printed.get("errors")) == (40, None)
            # A Table has ages in it: its length may differ by some characters.
            assert printed["MB_in"] * 1e6 / 40 == pytest.approx(len(expected), rel=0.01)
        ten = quote(f"number in ({','.join(f'n{number}' for number in range(10))})")
        for query, found in (("resourceVersion=0", count), (f"labelSelector={ten}", 10), ("labelSelector=number%3Dnone", 0)):
            assert len(json.loads(server.ask(f"{address}?{query}"))["items"]) == found, query
        # Twenty lists at once share what one list needs.
        assert server.resident_mb(peak=True) - before < 4 * len(whole) / 1e6 + SLACK_MB
