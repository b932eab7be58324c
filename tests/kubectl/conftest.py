"""The real kubectl, the newest that we know and the oldest that we promise to serve, against the server as users start it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import tools
from tests.apiserver.process import Serving, serving
from tests.kubectl.running import Kubectl

VERSIONS = ("1.37", "1.32")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here: all of it needs kubectl."""
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.kubectl)


def program(name: str) -> Path:
    """A program that is built when it is missing. Who has no Go may skip these tests, CI may not."""
    try:
        return tools.path(name)
    except tools.ToolError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


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
    return Kubectl(program(f"kubectl-{version}"), version, server, namespace, own_home)
