"""What is measured, as data: each scenario has a name, a title, the objects that it needs, and a function that does it to one server."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from tests.bench.figures import Figures
from tests.bench.loadgen import Load, beside, figures, run
from tests.bench.servers import Server

METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a run is."""

    stock: int = 10_000
    big: int = 100_000
    thousand: int = 1_000
    heavy: int = 300
    """Objects of 100 KB."""
    seconds: float = 6.0
    """How long what has no end of its own is done, in the table of aims."""
    brief_seconds: float = 3.5
    """And elsewhere."""
    clients: tuple[int, int, int, int] = (1, 16, 64, 256)
    creates: int = 5_000
    watchers: int = 500
    watch_updates: int = 200
    many_watchers: int = 1_000
    many_updates: int = 500
    idle_watchers: int = 10_000
    informers: int = 500
    growing_watchers: tuple[int, ...] = (10, 100, 1_000, 10_000)
    growing_updates: int = 20
    page: int = 500
    megabyte: int = 1_000_000


FULL: Final = Sizes()
QUICK: Final = Sizes(
    stock=300,
    big=600,
    thousand=100,
    heavy=10,
    seconds=0.4,
    brief_seconds=0.4,
    clients=(1, 2, 4, 8),
    creates=60,
    watchers=10,
    watch_updates=10,
    many_watchers=20,
    many_updates=20,
    idle_watchers=20,
    informers=10,
    growing_watchers=(2, 4),
    growing_updates=5,
    page=50,
    megabyte=200_000,
)


@dataclass(frozen=True, slots=True)
class Stock:
    """Objects that a scenario finds: as many, as large (as clients get them), in a namespace of their own."""

    namespace: str
    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Work:
    """What a scenario gets: a server, the sizes, the objects that are there, and what its template must be padded with."""

    server: Server
    sizes: Sizes
    stock: Stock
    seconds: float
    """How long what has no end of its own is done."""
    pad: Callable[[int], int]
    """From the size of an object as clients get it to the length of the padding that makes it so large."""

    def load(self, mode: str, **flags: Any) -> dict[str, Any]:
        """Run loadgen over the stock, for as long as the sizes say unless the flags do."""
        return run(self.server, Load(mode, self.stock.namespace, {"d": f"{self.seconds}s", **flags}))


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the table."""

    name: str
    title: str
    section: str
    stock: Stock
    run: Callable[[Work], Figures]
    aim: str = ""
    aim_cpu_us: float | None = None
    servers: frozenset[str] = frozenset(("crd", "sample", "sqlite", "etcd"))
    probed: bool = True
    """Whether a probe runs beside it: not where its own requests would count, or the server is not always there."""
    watched: bool = True
    """Whether it is watched how long event loops are held: not while servers start, who hold up nobody."""
    through_kube: bool = False
    """Whether the server is reached through kube-apiserver."""


MAIN: Final = "The table of aims"
CLIENTS: Final = "Clients"
SIZES: Final = "Object sizes"
LISTS: Final = "Lists"
HUNDRED: Final = "Many objects"
WATCHES: Final = "Watchers"
MIXED: Final = "Mixed load"
PROCESSES: Final = "One process and several"
COMPILED: Final = "Plain and compiled"
SECTIONS: Final = (MAIN, COMPILED, CLIENTS, SIZES, LISTS, HUNDRED, WATCHES, MIXED, PROCESSES)

_FREE: Final = 1_000_000
"""Numbers from here on are free in every namespace."""


def scenarios(sizes: Sizes) -> tuple[Scenario, ...]:
    """All scenarios, in the order in which they are run."""
    stock = Stock("stock", sizes.stock, 2_400)
    return (
        *_headline(sizes, stock),
        *_compiled(sizes, stock),
        *_clients(sizes, stock),
        *_object_sizes(sizes),
        *_lists(sizes, stock),
        *_watches(sizes, stock),
        *_processes(sizes, stock),
        *_many(sizes),
    )


def _headline(sizes: Sizes, stock: Stock) -> tuple[Scenario, ...]:
    def row(name: str, title: str, do: Callable[[Work], Figures], aim: str = "", cpu: float | None = None, **more: Any) -> Scenario:
        return Scenario(name, title, MAIN, stock, do, aim, cpu, **more)

    everybody = frozenset(("crd", "sample", "etcd"))
    count = f"{sizes.stock:,}"
    clients = sizes.clients[2]
    behind: dict[str, Any] = {"servers": frozenset(("sample", "sqlite", "etcd")), "probed": False, "through_kube": True}
    return (
        row("create-etcd", "create, 32 clients, etcd", _create, "≥ 2,000/s, ≤ 450 µs", 450, servers=everybody, probed=False),
        row(
            "create-sqlite",
            "create, 32 clients, embedded",
            _create,
            "≥ 2,500/s, ≤ 350 µs",
            350,
            servers=frozenset(("sqlite",)),
            probed=False,
        ),
        row("get", f"GET, {clients} clients", _get(clients), "≥ 8,000/s, ≤ 130 µs", 130, probed=False),
        row("list", f"LIST {count}, 2 clients", _list(clients=2), "≥ 12/s, ≤ 75 ms", 75_000),
        row("list-gzip", "the same, gzip", _list(clients=2, gzip=True), "≥ 100/s, ≤ 10 ms", 10_000),
        row(
            "list-page",
            f"LIST limit={sizes.page}, 4 clients",
            _list(f"limit={sizes.page}", sizes.page, clients=4),
            "≥ 250/s, ≤ 4 ms",
            4_000,
        ),
        row("patch-etcd", "merge patch, 16 clients, etcd", _patch, "≥ 1,900/s, ≤ 500 µs", 500, servers=everybody, probed=False),
        row("patch-sqlite", "merge patch, 16 clients, embedded", _patch, servers=frozenset(("sqlite",)), probed=False),
        row("apply", "server-side apply that changes nothing, 16 clients", _apply, "≤ 940 µs", 940, probed=False),
        row(
            "watch",
            f"watch, {sizes.watchers:,} watchers × {sizes.watch_updates:,} updates",
            _watch(sizes.watchers, sizes.watch_updates),
            "≥ 60,000/s, ≤ 15 µs",
            15,
        ),
        row("memory", f"memory with {count} objects, under this load", _memory, "≤ 200 MB"),
        row("start", f"start until /readyz, {count} objects", _start, "≤ 1 s", probed=False, watched=False),
        row("aggregated-16", "GET through kube-apiserver, 16 in flight", _get(16), "≥ 2,300/s, ≤ 200 µs", 200, **behind),
        row("aggregated-64", "the same, 64 in flight", _get(64), "≥ 1,700/s, ≤ 300 µs", 300, **behind),
    )


def _compiled(sizes: Sizes, stock: Stock) -> tuple[Scenario, ...]:
    ours = frozenset(("sqlite", "etcd", "sqlite-compiled", "etcd-compiled"))

    def row(name: str, title: str, do: Callable[[Work], Figures], **more: Any) -> Scenario:
        return Scenario(f"compiled-{name}", title, COMPILED, stock, do, servers=ours, probed=False, **more)

    return (
        row("create", "create, 32 clients", _create),
        row("patch", "merge patch, 16 clients", _patch),
        row("apply", "server-side apply that changes nothing, 16 clients", _apply),
        row("get", f"GET, {sizes.clients[2]} clients", _get(sizes.clients[2])),
        row("start", f"start until /readyz, {sizes.stock:,} objects", _start, watched=False),
        row("aggregated", "GET through kube-apiserver, 16 in flight", _get(16), through_kube=True),
    )


def _clients(sizes: Sizes, stock: Stock) -> tuple[Scenario, ...]:
    return tuple(
        Scenario(f"{verb}-{clients}", f"{title}, {clients} client{'s' * (clients > 1)}", CLIENTS, stock, do, probed=False)
        for verb, title, make in (("get", "GET", _get), ("create", "create", _create_with))
        for clients in sizes.clients
        for do in (make(clients),)
    )


def _object_sizes(sizes: Sizes) -> tuple[Scenario, ...]:
    rows: list[Scenario] = []
    for label, size in (("1 KB", 1_024), ("2.4 KB", 2_400), ("10 KB", 10_240), ("100 KB", 102_400)):
        # The smallest object of ours with its managed fields is larger than 1 KB: then it is as small as it gets.
        stock = Stock(f"size-{size}", sizes.thousand if size < 100_000 else sizes.heavy, size)
        for verb, title, do in (
            ("get", f"GET, {label}, 16 clients", _get(16)),
            ("list", f"LIST {stock.count:,} × {label}, 2 clients", _list(clients=2)),
            ("create", f"create, {label}, 16 clients", _create_with(16, size)),
            ("patch", f"merge patch, {label}, 16 clients", _patch),
        ):
            rows.append(Scenario(f"{verb}-{size}", title, SIZES, stock, do, probed=verb == "list"))
    return tuple(rows)


def _lists(sizes: Sizes, stock: Stock) -> tuple[Scenario, ...]:
    tenth = sizes.stock // 10
    return (
        Scenario("select-nothing", "label selector that matches nothing", LISTS, stock, _list("labelSelector=tenth%3Dno", 0)),
        Scenario("select-one", "label selector that matches one", LISTS, stock, _list("labelSelector=number%3Dn7", 1)),
        Scenario("select-tenth", "label selector that matches a tenth", LISTS, stock, _list("labelSelector=tenth%3Dt3", tenth)),
        Scenario("list-metadata", "metadata only", LISTS, stock, _list(clients=2, accept=METADATA_LIST)),
        Scenario("list-table", "as a Table", LISTS, stock, _list(clients=2, accept=TABLE)),
        Scenario("list-table-gzip", "as a Table, gzip", LISTS, stock, _list(clients=2, accept=TABLE, gzip=True)),
        Scenario("pages", f"all, in pages of {sizes.page}; a page", LISTS, stock, _pages),
    )


def _watches(sizes: Sizes, stock: Stock) -> tuple[Scenario, ...]:
    thousand = Stock("thousand", sizes.thousand, 2_400)
    many, updates = sizes.many_watchers, sizes.many_updates

    def row(name: str, title: str, do: Callable[[Work], Figures]) -> Scenario:
        return Scenario(name, title, WATCHES, thousand, do)

    growing = (
        row(f"watch-{count}", f"{count:,} watchers × {sizes.growing_updates} updates", _watch(count, sizes.growing_updates))
        for count in sizes.growing_watchers
    )
    return (
        row("informers", f"{sizes.informers} informers at once begin with {sizes.thousand:,} objects; one", _informers),
        row("idle", f"{sizes.idle_watchers:,} idle watchers", _idle),
        row("watch-rate-100", f"{many:,} watchers, 100 updates/s", _watch(many, updates, rate=100)),
        row("watch-rate-1000", f"{many:,} watchers, 1,000 updates/s", _watch(many, updates, rate=1_000, writers=16)),
        row("watch-stuck", "the same with 100/s, and one that never reads", _watch(many, updates, rate=100, stuck=1)),
        *growing,
        Scenario("mixed", "GET, 8 clients, beside full LISTs and writes of 1 MB", MIXED, stock, _mixed),
        Scenario("mixed-alone", "the same GETs alone", MIXED, stock, _get(8, rate=400), probed=False),
    )


def _processes(sizes: Sizes, stock: Stock) -> tuple[Scenario, ...]:
    def row(name: str, title: str, do: Callable[[Work], Figures]) -> Scenario:
        return Scenario(f"processes-{name}", title, PROCESSES, stock, do, servers=frozenset(("etcd", "workers")), probed=False)

    clients = sizes.clients[2]
    return (
        row("get", f"GET, {clients} clients", _get(clients)),
        row("list", f"LIST {sizes.stock:,}, 4 clients", _list(clients=4)),
        row("create", f"create, {clients} clients", _create_with(clients)),
        row("patch", "merge patch, 16 clients", _patch),
        row("watch", f"{sizes.watchers:,} watchers × {sizes.watch_updates:,} updates", _watch(sizes.watchers, sizes.watch_updates)),
        row("memory", f"memory with {sizes.stock:,} objects, under load", _memory),
    )


def _many(sizes: Sizes) -> tuple[Scenario, ...]:
    big = Stock("big", sizes.big, 2_400)
    count = f"{sizes.big:,}"

    def row(name: str, title: str, do: Callable[[Work], Figures], **more: Any) -> Scenario:
        # sample-apiserver's small objects say little here, and take minutes to make.
        return Scenario(name, title, HUNDRED, big, do, servers=frozenset(("crd", "sqlite", "etcd")), **more)

    return (
        row("big-get", f"GET among {count}, 16 clients", _get(16), probed=False),
        row("big-list", f"LIST {count}, 1 client", _list(clients=1)),
        row("big-gzip", f"LIST {count}, gzip, 1 client", _list(clients=1, gzip=True)),
        row("big-page", f"LIST limit={sizes.page} of {count}, 4 clients", _list(f"limit={sizes.page}", sizes.page, clients=4)),
        row("big-nothing", f"label selector that matches nothing of {count}", _list("labelSelector=tenth%3Dno", 0)),
        row("big-patch", f"merge patch among {count}, 16 clients", _patch, probed=False),
        row("big-memory", f"memory with {count} more objects", _memory),
        row("big-start", f"start until /readyz, {count} more objects", _start, probed=False, watched=False),
    )


# What is done


def _get(clients: int, *, rate: float = 0) -> Callable[[Work], Figures]:
    def do(work: Work) -> Figures:
        return figures(work.load("get", c=clients, objects=work.stock.count, rate=rate))

    return do


def _create(work: Work) -> Figures:
    return _create_with(32)(work)


def _create_with(clients: int, size_bytes: int = 2_400) -> Callable[[Work], Figures]:
    def do(work: Work) -> Figures:
        server, pad = work.server, work.pad(size_bytes)
        printed = work.load("create", c=clients, body=server.template, pad=pad, start=_FREE)
        # What was made is taken away again: the next scenario finds what its title says.
        run(server, Load("delete", work.stock.namespace, {"n": printed["n"], "c": 16, "start": _FREE}))
        return figures(printed)

    return do


def _apply(work: Work) -> Figures:
    """The same manifest again and again: the first one of each object makes its owner known, all others change nothing."""
    flags = {"c": 16, "objects": min(100, work.stock.count), "patch": work.server.applied, "query": "fieldManager=loadgen&force=true"}
    return figures(work.load("update", **flags, **{"content-type": "application/apply-patch+yaml"}))


def _patch(work: Work) -> Figures:
    return figures(work.load("update", c=16, objects=work.stock.count, patch=work.server.patch, start=_number()))


def _number() -> int:
    """Where the numbers begin that patches write: nowhere near those of the patches before, which would change nothing."""
    return random.randrange(_FREE, 2**31 - _FREE)


def _list(
    query: str = "", expected: int | None = None, *, clients: int = 2, accept: str = "", gzip: bool = False
) -> Callable[[Work], Figures]:
    def do(work: Work) -> Figures:
        _check_list(work, query, work.stock.count if expected is None else expected, accept or "application/json")
        flags: dict[str, Any] = {"query": query, "c": clients, "gzip": str(gzip).lower()}
        return figures(work.load("list", **flags, **({"accept": accept} if accept else {})))

    return do


def _check_list(work: Work, query: str, expected: int, accept: str) -> None:
    address = f"{work.server.collection(work.stock.namespace)}?{query}"
    listed = json.loads(work.server.ask(address, accept=accept))
    found = len(listed["rows" if "as=Table" in accept else "items"])
    if found != expected:
        raise AssertionError(f"{work.server.title} lists {found} objects for ?{query}, not {expected}")


def _pages(work: Work) -> Figures:
    return figures(work.load("list", query=f"limit={work.sizes.page}", walk="true", c=2))


def _watch(watchers: int, updates: int, **more: Any) -> Callable[[Work], Figures]:
    def do(work: Work) -> Figures:
        printed = work.load("watch", w=watchers, events=updates, objects=work.stock.count, d="180s", **more)
        return _without_opening(printed)

    return do


def _without_opening(printed: Mapping[str, Any]) -> Figures:
    return figures(dict(printed), per_second=printed.get("delivered_per_s"), cpu_us=printed.get("delivery_cpu_us"), etcd_us=None)


def _informers(work: Work) -> Figures:
    return figures(work.load("informers", w=work.sizes.informers, objects=work.stock.count, d="600s"))


def _idle(work: Work) -> Figures:
    printed = work.load("idle", w=work.sizes.idle_watchers, d="300s")
    return figures(printed, per_second=None, p50_ms=None, p99_ms=None, etcd_us=None, kilobytes_each=printed["kB_per_watcher"])


def _mixed(work: Work) -> Figures:
    server, seconds = work.server, f"{work.seconds}s"
    run(server, Load("create", "heavy", {"n": 4, "c": 1, "body": server.template, "start": 0}))
    lists, writes = (
        Load("list", work.stock.namespace, {"c": 1, "d": seconds}),
        Load("update", "heavy", {"c": 1, "rate": 2, "objects": 4, "patch": server.big_patch, "pad": work.sizes.megabyte, "d": seconds}),
    )
    beside_lists: dict[str, Any] = {}
    beside_writes: dict[str, Any] = {}
    with beside(server, lists, beside_lists), beside(server, writes, beside_writes):
        printed = work.load("get", c=8, rate=400, objects=work.stock.count)
    run(server, Load("delete", "heavy", {"n": 4, "c": 1}))
    errors = {**printed.get("errors", {}), **beside_lists.get("errors", {}), **beside_writes.get("errors", {})}
    return figures(printed, cpu_us=None, etcd_us=None, errors=errors)


def _memory(work: Work) -> Figures:
    lists, patches = (
        Load("list", work.stock.namespace, {"c": 2}),
        Load("update", work.stock.namespace, {"c": 4, "patch": work.server.patch, "start": _number()}),
    )
    seconds, objects = f"{work.seconds}s", work.stock.count
    printed: dict[str, Any] = {}
    with ExitStack() as stack:
        for load in (lists, patches):
            stack.enter_context(beside(work.server, Load(load.mode, load.namespace, load.flags | {"d": seconds, "objects": objects}), {}))
        printed = work.load("get", c=8, objects=objects)
    return Figures(resident_mb=work.server.resident_mb(peak=True), operations=printed["n"], errors=printed.get("errors", {}))


def _start(work: Work) -> Figures:
    work.server.stop()
    seconds = work.server.start()
    cpu_us = work.server.cpu_seconds() * 1e6
    # kube-apiserver is ready before the caches of custom resources are: it answers 429 for a moment. The next scenario should not see that.
    work.server.wait_served(work.stock.namespace)
    return Figures(seconds=seconds, cpu_us=cpu_us, operations=1)
