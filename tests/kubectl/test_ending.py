"""kubectl delete in all its forms, and kubectl wait."""

from __future__ import annotations

import json
from threading import Event, Thread
from typing import Any

import pytest

from tests.kubectl.running import Kubectl, pool, worker

POOL = "workerpool.clrk.apoxy.dev"
CONDITION = {"type": "Ready", "status": "True", "reason": "AllReady", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}


def path_of(kubectl: Kubectl, name: str = "") -> str:
    return f"/apis/clrk.apoxy.dev/v1alpha1/namespaces/{kubectl.namespace}/workerpools{name and '/'}{name}"


def deleted(kubectl: Kubectl, *names: str, suffix: str = "") -> str:
    """What kubectl says; since 1.34 with the namespace."""
    where = f" from {kubectl.namespace} namespace" if kubectl.version != "1.32" else ""
    return "".join(f'{POOL} "{name}" deleted{where}{suffix}\n' for name in names)


@pytest.fixture
def kubectl(kubectl: Kubectl) -> Kubectl:
    """With three pools."""
    kubectl.create(pool("a", labels={"app": "x"}), pool("b", labels={"app": "x"}), pool("c"))
    return kubectl


@pytest.mark.parametrize(
    ("arguments", "gone"),
    [
        pytest.param(["wp", "a"], ["a"], id="name"),
        pytest.param(["wp/a", "wp/c"], ["a", "c"], id="names"),
        pytest.param(["wp", "-l", "app=x"], ["a", "b"], id="label"),
        pytest.param(["wp", "--all"], ["a", "b", "c"], id="all"),
        pytest.param(["wp", "--field-selector=metadata.name=b"], ["b"], id="field"),
        pytest.param(["wp", "a", "--cascade=orphan"], ["a"], id="orphan"),
        pytest.param(["wp", "a", "--cascade=foreground"], ["a"], id="foreground"),
        pytest.param(["wp", "a", "--now"], ["a"], id="now"),
        pytest.param(["wp", "a", "nope", "--ignore-not-found"], ["a"], id="ignore_not_found"),
    ],
)
def test_delete(kubectl: Kubectl, arguments: list[str], gone: list[str]) -> None:
    assert kubectl("delete", *arguments) == deleted(kubectl, *gone)
    # Nobody collects garbage here, so that no policy may leave a finalizer that nobody takes away.
    assert kubectl("get", "wp", "-o", "jsonpath={.items[*].metadata.name}").split() == [
        name for name in ("a", "b", "c") if name not in gone
    ]


def test_delete_by_force(kubectl: Kubectl) -> None:
    done = kubectl.run("delete", "wp", "a", "--force")
    assert done.returncode == 0
    assert done.stderr.startswith("Warning: Immediate deletion does not wait for confirmation")
    assert kubectl("get", "wp", "-o", "name") == f"{POOL}/b\n{POOL}/c\n"


def test_delete_as_a_dry_run_keeps_all(kubectl: Kubectl) -> None:
    for arguments, names in ((["wp", "a"], ["a"]), (["wp", "--all"], ["a", "b", "c"])):
        assert kubectl("delete", *arguments, "--dry-run=server") == deleted(kubectl, *names, suffix=" (server dry run)")
    assert len(kubectl.json("wp")["items"]) == 3


def test_delete_of_nothing(kubectl: Kubectl) -> None:
    assert (
        kubectl.at("default").fails("delete", "wp", "nope") == 'Error from server (NotFound): workerpools.clrk.apoxy.dev "nope" not found\n'
    )
    done = kubectl.run("delete", "localworkers", "--all")
    assert (done.returncode, done.stdout) == (0, "No resources found\n")
    kubectl.create(worker("w"))
    assert kubectl("delete", "localworkers", "--all").startswith('localworker.worker.saved.sh "w" deleted')


def recreate(kubectl: Kubectl, name: str, gone: Event) -> dict[str, Any]:
    """Put a new object into the place of the old one as soon as that has gone."""
    while not gone.is_set():
        code, value = kubectl.server.request("POST", path_of(kubectl), pool(name))
        if code == 201:
            created: dict[str, Any] = value
            return created
    raise AssertionError("the old object has not gone")


def test_t077_delete_waits_for_the_old_uid_only(kubectl: Kubectl) -> None:
    before = kubectl.json("wp", "a")["metadata"]["uid"]
    found: list[dict[str, Any]] = []
    over = Event()
    recreating = Thread(target=lambda: found.append(recreate(kubectl, "a", over)))
    recreating.start()
    try:
        assert kubectl("delete", "workerpool", "a", "--timeout=20s") == deleted(kubectl, "a")
        recreating.join(20)
    finally:
        over.set()
        recreating.join()
    assert found[0]["metadata"]["uid"] == kubectl.json("wp", "a")["metadata"]["uid"] != before


def test_t077_delete_waits_for_the_finalizer_and_no_longer(kubectl: Kubectl) -> None:
    finalizer = {"metadata": {"finalizers": ["example.com/hold"]}}
    kubectl("patch", "wp/a", "--type=merge", "-p", json.dumps(finalizer))
    with kubectl.started("get", "wp", "a", "-w", "-o", "jsonpath={.metadata.deletionTimestamp}/") as watching:
        assert watching.stdout is not None
        assert watching.stdout.read(1) == "/"
        with kubectl.started("delete", "workerpool", "a", "--timeout=20s") as deleting:
            assert deleting.stdout is not None
            assert watching.stdout.read(2) == "20"  # it has been marked
            assert deleting.poll() is None
            value = {"metadata": {"finalizers": None}}
            code, _ = kubectl.server.request("PATCH", path_of(kubectl, "a"), value, media_type="application/merge-patch+json")
            assert code == 200
            recreate(kubectl, "a", Event())
            assert deleting.wait(20) == 0
            assert deleting.stdout.read() == deleted(kubectl, "a")


# kubectl wait


def test_wait_for_a_condition(kubectl: Kubectl) -> None:
    done = kubectl.run("wait", "wp/a", "--for=condition=Ready", "--timeout=0s")
    assert done.returncode == 1
    with kubectl.started("wait", "wp/a", "--for=condition=Ready", "--timeout=20s") as waiting:
        kubectl("patch", "wp/a", "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"conditions": [CONDITION]}}))
        assert waiting.wait(20) == 0
        assert waiting.stdout is not None
        assert waiting.stdout.read() == f"{POOL}/a condition met\n"


def test_wait_for_a_value(kubectl: Kubectl) -> None:
    with kubectl.started("wait", "wp", "-l", "app=x", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=20s") as waiting:
        for name in ("b", "a"):
            kubectl("patch", f"wp/{name}", "--subresource=status", "--type=merge", "-p", '{"status":{"readyReplicas":2}}')
        assert waiting.wait(20) == 0
        assert waiting.stdout is not None
        assert sorted(waiting.stdout.read().splitlines()) == [f"{POOL}/a condition met", f"{POOL}/b condition met"]


def test_wait_for_a_deletion(kubectl: Kubectl) -> None:
    with kubectl.started("wait", "wp/a", "wp/b", "--for=delete", "--timeout=20s") as waiting:
        kubectl("delete", "wp", "a", "b", "--wait=false")
        assert waiting.wait(20) == 0
    assert kubectl("wait", "wp/a", "--for=delete", "--timeout=1s") == ""


def test_wait_for_a_creation(kubectl: Kubectl) -> None:
    with kubectl.started("wait", "wp/later", "--for=create", "--timeout=20s") as waiting:
        kubectl.create(pool("later"))
        assert waiting.wait(20) == 0
        assert waiting.stdout is not None
        assert waiting.stdout.read() == f"{POOL}/later condition met\n"
