"""The same over etcd, in short: what kubectl sees must not depend on the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.process import Serving, serving
from tests.kubectl.running import SAMPLES, Kubectl, pool, rows
from tests.tools.etcd import Etcd
from tests.tools.needed import needed

pytestmark = pytest.mark.etcd


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    needed("etcd")
    folder = tmp_path_factory.mktemp("etcd")
    etcd = Etcd(folder)
    etcd.start()
    try:
        with serving(folder / "clrk", f"--etcd-servers={etcd.url}") as running:
            yield running
    finally:
        etcd.stop()


def test_an_objects_life(kubectl: Kubectl, tmp_path: Path) -> None:
    assert kubectl("apply", "-f", str(SAMPLES)).count(" created\n") == 4
    assert kubectl("apply", "-f", str(SAMPLES)).count(" unchanged\n") == 4
    assert [line[0] for line in rows(kubectl("get", "wp", "--chunk-size=1"))] == ["NAME", "agents", "small"]
    with kubectl.started("get", "wp", "small", "-w", "--no-headers") as watching:
        assert watching.stdout is not None
        assert rows(watching.stdout.readline())[0][:2] == ["small", "1"]
        kubectl("scale", "wp/small", "--replicas=4")
        assert rows(watching.stdout.readline())[0][:2] == ["small", "4"]
    kubectl("patch", "wp/small", "--subresource=status", "--type=merge", "-p", '{"status":{"readyReplicas":4}}')
    assert kubectl("wait", "wp/small", "--for=jsonpath={.status.readyReplicas}=4").endswith(" condition met\n")
    assert kubectl("edit", "wp/small", EDITOR="sed -i s/replicas:.4/replicas:\\ 2/").endswith(" edited\n")
    assert kubectl.run("diff", "-f", str(SAMPLES / "workerpool-minimal.yaml")).returncode == 0
    kubectl("replace", "-f", str(SAMPLES / "workerpool-minimal.yaml"))
    assert kubectl("delete", "-f", str(SAMPLES)).count(" deleted") == 4
    assert kubectl("get", "wp,localworkers", "-o", "name") == ""


def test_delete_with_a_label_and_all(kubectl: Kubectl) -> None:
    kubectl.create(pool("a", labels={"app": "x"}), pool("b"), pool("c"))
    kubectl("delete", "wp", "-l", "app=x")
    assert kubectl("get", "wp", "-o", "jsonpath={.items[*].metadata.name}") == "b c"
    kubectl("delete", "wp", "--all", "--cascade=orphan")
    assert kubectl("get", "wp", "-o", "name") == ""


def test_the_health_check_names_the_store(kubectl: Kubectl) -> None:
    assert "[+]etcd ok\n" in kubectl("get", "--raw", "/readyz?verbose")
