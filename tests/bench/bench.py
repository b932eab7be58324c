"""One run: every scenario on every server, one server after the other, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from tests.bench.aggregation import through
from tests.bench.figures import Figures, Measured
from tests.bench.loadgen import Load, LoadError, run
from tests.bench.probe import probing
from tests.bench.scenarios import MAIN, Scenario, Sizes, Stock, Work
from tests.bench.servers import Server, Servers

_CALIBRATION: Final = 2_000_000


class Bench:
    """Servers that are up, and what has been put into them."""

    def __init__(self, servers: Servers, running: dict[str, Server], sizes: Sizes, *, tell: Callable[[str], None]) -> None:
        """`tell` is given a line for each scenario and server."""
        self._servers = servers
        self._running = running
        self._sizes = sizes
        self._tell = tell
        self._stocked: set[tuple[str, str]] = set()
        self._bare: dict[str, int] = {}

    def measure(self, scenarios: Iterable[Scenario], measured: Measured, *, after_each: Callable[[], None] = lambda: None) -> None:
        """Run the scenarios and add their figures to what was measured; `after_each` is called with every row that is there."""
        for scenario in scenarios:
            row = measured.figures.setdefault(scenario.name, {})
            for key, server in self._running.items():
                if key in scenario.servers:
                    row[key] = self._tried(scenario, server)
                    self._tell(f"{scenario.name:18} {server.title:22} {_line(row[key])}")
            after_each()

    def _tried(self, scenario: Scenario, server: Server) -> Figures:
        """The figures, or what went wrong: half an hour of others should not be lost with them."""
        try:
            server.revive()
            if not scenario.through_kube:
                return self._one(scenario, server, server)
            if self._servers.kube is None:
                return Figures(missing="not measured: kube-apiserver was not started")
            before = server.handshakes()
            with through(self._servers.kube, server) as proxied:
                figures = self._one(scenario, server, proxied)
            after = server.handshakes()
            if before is None or after is None:
                return figures
            return replace(figures, handshakes=(after - before) * 1000 / figures.operations)
        except (AssertionError, LookupError, OSError, RuntimeError, ValueError) as error:
            return Figures(errors={str(error) or repr(error): 1})

    def _one(self, scenario: Scenario, server: Server, reached: Server) -> Figures:
        """`reached` is the server at the address where it is to be asked."""
        stock = scenario.stock
        self._stock(server, stock)
        self._servers.make_namespace("heavy")
        work = Work(
            reached,
            self._sizes,
            stock,
            self._sizes.seconds if scenario.section == MAIN else self._sizes.brief_seconds,
            lambda size_bytes: self._pad(server, size_bytes),
        )
        server.forget_peak()
        beat = server.beat if scenario.watched else None
        with ExitStack() as beside:
            if beat is not None:
                beside.enter_context(beat.watching())
            probed = beside.enter_context(probing(server.url, server.client)) if scenario.probed else None
            figures = scenario.run(work)
        return replace(
            figures,
            resident_mb=server.resident_mb(peak=True),
            longest_wait_ms=probed.longest_wait_ms if probed is not None else None,
            longest_hold_ms=beat.longest_seconds * 1e3 if beat is not None else None,
        )

    def _stock(self, server: Server, stock: Stock) -> None:
        """Put the objects there that a scenario finds, once."""
        if (server.key, stock.namespace) in self._stocked:
            return
        self._servers.make_namespace(stock.namespace)
        pad = self._pad_of(server, stock)
        flags = {"n": stock.count, "c": 32, "d": "20m", "body": server.template, "pad": pad, "objects": stock.count}
        printed = run(server, Load("create", stock.namespace, flags))
        if printed["n"] != stock.count:
            # The next scenario that needs them makes them all.
            run(server, Load("delete", stock.namespace, {"n": stock.count, "c": 16}))
            raise LoadError(f"{server.title} has taken {printed['n']} of {stock.count} objects: {printed.get('errors')}")
        self._stocked.add((server.key, stock.namespace))

    def _pad_of(self, server: Server, stock: Stock) -> int:
        # sample-apiserver's objects stay as small as they are, as in the figures that are to be beaten, except where size is the matter.
        if server.key == "sample" and not stock.namespace.startswith("size-"):
            return 0
        return self._pad(server, stock.size_bytes)

    def _pad(self, server: Server, size_bytes: int) -> int:
        bare = self._bare.get(server.key)
        if bare is None:
            run(server, Load("create", "default", {"n": 1, "c": 1, "start": _CALIBRATION, "body": server.template}))
            address = f"{server.collection('default')}/load-{_CALIBRATION}"
            bare = self._bare[server.key] = len(server.ask(address))
            server.ask(address, method="DELETE")
        return max(0, size_bytes - bare)


def _line(figures: Figures) -> str:
    if figures.missing:
        return figures.missing
    shown = {
        "/s": figures.per_second,
        "µs": figures.cpu_us,
        "p99 ms": figures.p99_ms,
        "MB held": figures.resident_mb,
        "s": figures.seconds,
        "kB each": figures.kilobytes_each,
        "ms longest wait": figures.longest_wait_ms,
        "ms longest hold": figures.longest_hold_ms,
        "handshakes/1,000": figures.handshakes,
    }
    text = "  ".join(f"{value:,.4g} {unit}" for unit, value in shown.items() if value is not None)
    return text + (f"  ERRORS {json.dumps(dict(figures.errors))}" if figures.errors else "")
