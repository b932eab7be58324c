"""The two servers of the session, and the account of what was exchanged with them.

`--exchanges N`: go on walking until N exchanges have been made (default 4,500; the written ones are 3,700 of them).
`--first-walks N`: begin with the walks of this seed.
"""

from __future__ import annotations

import json
import ssl
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from apiserver import kinds
from tests.apiserver.process import serving
from tests.controlplane.control_plane import ControlPlane
from tests.differential.exchange import AGGREGATED_DISCOVERY
from tests.differential.lockstep import Tally
from tests.differential.of_ours import OUR_GROUPS
from tests.differential.scenarios import ALL
from tests.differential.side import Side, side
from tests.differential.twin import definition

EXCHANGES = 4500
_DISCOVERED_SECONDS = 120
_TALLY = pytest.StashKey[Tally]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exchanges", type=int, default=EXCHANGES, help="how many exchanges the differential suite makes")
    parser.addoption("--first-walks", type=int, default=0, help="the seed of its first generated walks")


@dataclass(frozen=True, slots=True)
class Pair:
    """Where the two servers are, and how each identity reaches them."""

    real_url: str
    our_url: str
    contexts: dict[str, ssl.SSLContext]
    etcd_url: str
    """kube-apiserver's store."""
    our_flags: tuple[str, ...]
    """With which another server of ours is reached by the same clients."""
    kubeconfig: Path
    """With which it asks kube-apiserver."""


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The two servers of most tests."""
    with paired(tmp_path_factory.mktemp("differential")) as pair:
        yield pair


@contextmanager
def paired(folder: Path, *, real_flags: tuple[str, ...] = (), our_flags: tuple[str, ...] = ()) -> Iterator[Pair]:
    """A real kube-apiserver with the twin definitions, and this server in a process of its own; the same certificates open both."""
    # As here, nobody is anybody without a certificate.
    plane = ControlPlane(folder, flags=("--anonymous-auth=false", *real_flags))
    plane.start()
    try:
        names = []
        for kind in kinds.load("apiserver.kinds"):
            twin = definition(kind)
            plane.kubectl("create", "-f", "-", stdin=json.dumps(twin).encode())
            names.append(f"crd/{twin['metadata']['name']}")
        plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
        _wait_discovered(plane)
        pki = plane.pki
        nobody = ssl.create_default_context(cafile=str(pki.authority.certificate_file))
        contexts = {"admin": plane.tls(pki.admin), "alice": plane.tls(plane.client("alice", "dev")), "": nobody}
        flags = (
            "--enable-garbage-collector",
            f"--client-ca-file={pki.authority.certificate_file}",
            f"--tls-cert-file={pki.serving.certificate_file}",
            f"--tls-private-key-file={pki.serving.key_file}",
        )
        with serving(folder / "ours", *flags, *our_flags) as ours:
            yield Pair(plane.url, ours.url, contexts, plane.etcd_url, flags, plane.kubeconfig)
    finally:
        plane.stop()


def _wait_discovered(plane: ControlPlane) -> None:
    """Return when discovery has settled: it follows definitions by itself, each of its documents in its own time."""
    deadline = time.monotonic() + _DISCOVERED_SECONDS
    while True:
        groups = _read(plane, "/apis", AGGREGATED_DISCOVERY)["items"]
        names = {group["metadata"]["name"] for group in groups}
        listed = {group["name"] for group in _read(plane, "/apis")["groups"]}
        documented = {name for name in OUR_GROUPS if f"apis/{name}/v1alpha1" in _read(plane, "/openapi/v3")["paths"]}
        current = all(version["freshness"] == "Current" for group in groups for version in group["versions"])
        if current and names == listed and documented == set(OUR_GROUPS) <= names:
            return
        assert time.monotonic() < deadline, (names, listed, documented)
        time.sleep(0.1)


def _read(plane: ControlPlane, path: str, accept: str = "application/json") -> dict[str, Any]:
    request = urllib.request.Request(f"{plane.url}{path}", headers={"Accept": accept})
    with urllib.request.urlopen(request, context=plane.tls(plane.pki.admin)) as response:
        document: dict[str, Any] = json.load(response)
    return document


@pytest.fixture
async def sides(pair: Pair) -> AsyncIterator[tuple[Side, Side]]:
    """Clients of both."""
    async with side("kube-apiserver", pair.real_url, pair.contexts) as real, side("this server", pair.our_url, pair.contexts) as ours:
        yield real, ours


@pytest.fixture
def tally(pytestconfig: pytest.Config) -> Tally:
    """What was exchanged in this session."""
    return pytestconfig.stash.setdefault(_TALLY, Tally())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    tally = config.stash.get(_TALLY, None)
    if tally is None:
        return
    terminalreporter.section(f"{tally.exchanges.total()} exchanges with kube-apiserver and this server")
    for counted in (tally.exchanges, tally.explained):
        terminalreporter.write_line(", ".join(f"{name}: {count}" for name, count in counted.most_common()))


@pytest.fixture
def everything_ran(request: pytest.FixtureRequest) -> bool:
    """Whether no scenario was left out of this session."""
    ran = {item.name for item in request.session.items}
    return all(f"test_both_answer_the_same[{name}]" in ran for name in ALL)
