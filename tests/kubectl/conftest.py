"""The real kubectl, the newest that we know and the oldest that we promise to serve, against the server as users start it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.process import Serving, serving
from tests.kubectl.running import Kubectl
from tests.tools.needed import needed

VERSIONS = ("1.37", "1.32")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here: all of it needs kubectl."""
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.kubectl)


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One server over the embedded store, for all tests: each has a namespace of its own."""
    with serving(tmp_path_factory.mktemp("server") / "clrk") as running:
        yield running


@pytest.fixture(scope="package")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(params=VERSIONS)
def kubectl(request: pytest.FixtureRequest, server: Serving, home: Path) -> Kubectl:
    """kubectl in a namespace that nobody else uses."""
    version: str = request.param
    namespace = f"ns-{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:12]}"
    own_home = home / version
    own_home.mkdir(exist_ok=True)
    return Kubectl(needed(f"kubectl-{version}"), version, server, namespace, own_home)
