"""The control planes of the tests here: one without controllers, and one in which our server is installed as it is elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from apiserver.config import AuthConfig
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.aggregated import Aggregated, control_plane, registered, serving
from tests.e2e.installed import Cluster, installed
from tests.e2e.replicated import Replicated, replicated
from tests.kubectl.running import Kubectl
from tests.tools.needed import needed

_PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")


@pytest.fixture(scope="session")
def programs() -> None:
    """They are built when they are missing. Who has no Go may skip these tests, CI may not."""
    for program in _PROGRAMS:
        needed(program)


@pytest.fixture(scope="session")
def plane(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("plane")) as plane:
        yield plane


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Aggregated]:
    """Our server, registered, which remembers no permission: what changes counts at once."""
    auth = AuthConfig(
        authentication_token_webhook_cache_ttl=0.0,
        authorization_webhook_cache_authorized_ttl=0.0,
        authorization_webhook_cache_unauthorized_ttl=0.0,
    )
    async with serving(plane, tmp_path_factory.mktemp("aggregated"), auth) as server, registered(server):
        yield server


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """A cluster with controllers in which our server is installed: each test has a namespace of its own."""
    store = getattr(request, "param", "sqlite")  # see OVER_BOTH_STORES
    found: Cluster = request.getfixturevalue("service").cluster if store == "etcd" else request.getfixturevalue("over_sqlite")
    return found


@pytest.fixture(scope="session")
def over_sqlite(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One process, with the embedded store."""
    with installed(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl(over_sqlite: Cluster, home: Path) -> Kubectl:
    """The administrator's kubectl in a namespace that nobody else uses: what the tests in `tests/kubectl` do, through kube-apiserver."""
    plane = over_sqlite.plane
    through = replace(over_sqlite.serving, url=plane.url, kubeconfig=plane.kubeconfig, tls=plane.tls(plane.pki.admin))
    namespace = f"ns-{uuid4().hex[:12]}"
    over_sqlite.namespace(namespace)
    return Kubectl(needed("kubectl-1.37"), "1.37", through, namespace, home, makes_namespaces=True)


@pytest.fixture(scope="session")
def service(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    """Two replicas over etcd. A test may take any part away, and brings it back."""
    with replicated(tmp_path_factory.mktemp("replicated")) as service:
        yield service
