"""The cluster's own controllers work on our kinds: namespaces, garbage, quotas, autoscaling."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.installed import OVER_BOTH_STORES, Cluster, until
from tests.kubectl.running import manifest, pool

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

COUNT = "count/workerpools.clrk.apoxy.dev"


def held(name: str) -> dict[str, Any]:
    value = pool(name)
    value["metadata"]["finalizers"] = ["example.dev/hold"]
    return value


def config_map(name: str, owner: dict[str, Any] | None = None) -> dict[str, Any]:
    value: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return owned(value, owner) if owner else value


def owned(value: dict[str, Any], owner: dict[str, Any]) -> dict[str, Any]:
    metadata = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    value["metadata"]["ownerReferences"] = [{**reference, "blockOwnerDeletion": True}]
    return value


def conditions(cluster: Cluster, *arguments: str) -> dict[str, dict[str, str]]:
    return {one["type"]: one for one in cluster.json(*arguments).get("status", {}).get("conditions") or ()}


@OVER_BOTH_STORES
@pytest.mark.parametrize("pools", [0, 2], ids=["empty", "two pools"])
def test_t001_a_namespace_is_deleted_quickly(cluster: Cluster, pools: int) -> None:
    name = f"deleted-{pools}"
    here = cluster.namespace(name)
    if pools:
        cluster.kubectl("create", "-f", "-", here, stdin=manifest(*(pool(f"x{number}") for number in range(pools))))
    cluster.kubectl("delete", "namespace", name, "--timeout=30s")
    assert cluster.gone("namespace", name)


@OVER_BOTH_STORES
def test_t081_a_namespace_waits_for_finalizers_and_says_so(cluster: Cluster) -> None:
    here = cluster.namespace("full")
    pools = [held(f"x{number}") if number < 3 else pool(f"x{number}") for number in range(50)]
    cluster.kubectl("create", "-f", "-", here, stdin=manifest(*pools))
    cluster.kubectl("delete", "namespace", "full", "--wait=false")
    until(lambda: conditions(cluster, "namespace", "full").get("NamespaceContentRemaining", {}).get("status") == "True")
    told = conditions(cluster, "namespace", "full")
    assert "workerpools.clrk.apoxy.dev has 3 resource instances" in told["NamespaceContentRemaining"]["message"]
    assert "example.dev/hold in 3 resource instances" in told["NamespaceFinalizersRemaining"]["message"]
    assert told["NamespaceDeletionDiscoveryFailure"]["status"] == "False"
    assert told["NamespaceDeletionContentFailure"]["status"] == "False"
    forbidden = cluster.fails("create", "-f", "-", here, stdin=manifest(pool("late")))
    assert "because it is being terminated" in forbidden
    for number in range(3):
        cluster.kubectl("patch", f"wp/x{number}", "--type=merge", "-p", '{"metadata":{"finalizers":null}}', here)
    cluster.kubectl("wait", "--for=delete", "namespace/full", "--timeout=50s")


@OVER_BOTH_STORES
def test_t076_garbage_is_collected_across_our_kinds_and_others(cluster: Cluster) -> None:
    here = cluster.namespace("garbage")
    policies = ("background", "foreground", "orphan")
    for policy in policies:
        cluster.kubectl("create", "-f", "-", here, stdin=manifest(pool(f"owner-{policy}"), config_map(f"owner-{policy}")))
        of_pool = cluster.json(f"wp/owner-{policy}", here)
        of_map = cluster.json(f"cm/owner-{policy}", here)
        dependents = manifest(config_map(f"dependent-{policy}", of_pool), owned(pool(f"dependent-{policy}"), of_map))
        cluster.kubectl("create", "-f", "-", here, stdin=dependents)
    for policy in policies:
        cluster.kubectl("delete", f"wp/owner-{policy}", f"cm/owner-{policy}", f"--cascade={policy}", "--wait=false", here)
    for policy in policies:
        until(lambda policy=policy: cluster.gone(f"wp/owner-{policy}", here) and cluster.gone(f"cm/owner-{policy}", here))  # type: ignore[misc]
    for resource in ("wp", "cm"):
        until(lambda resource=resource: cluster.gone(f"{resource}/dependent-background", here))  # type: ignore[misc]
        assert cluster.gone(f"{resource}/dependent-foreground", here)
        assert "ownerReferences" not in cluster.json(f"{resource}/dependent-orphan", here)["metadata"]


@OVER_BOTH_STORES
def test_a_quota_counts_pools(cluster: Cluster) -> None:
    """What is created later is counted when everything is counted anew: it is kube-apiserver's own admission that counts at once."""
    here = cluster.namespace("counted")
    cluster.kubectl("create", "-f", "-", here, stdin=manifest(pool("a"), pool("b")))
    cluster.kubectl("create", "quota", "q", f"--hard={COUNT}=5", here)
    until(lambda: used(cluster, here) == {COUNT: "2"})
    cluster.kubectl("delete", "wp/a", here)
    until(lambda: used(cluster, here) == {COUNT: "1"})


@pytest.mark.parametrize("pools", [0, 1, 2_001], ids=["none", "one", "many"])
def test_t051_quota_and_garbage_collectors_have_read_all_of_ours(cluster: Cluster, pools: int) -> None:
    """Both wait until every resource of the cluster has been read once: one that is never read through stops them all."""
    name = f"monitored-{pools}"
    here = cluster.namespace(name)
    path = f"/apis/clrk.apoxy.dev/v1alpha1/namespaces/{name}/workerpools"
    answers = cluster.serving.requests([("POST", path, pool(f"x{number}")) for number in range(pools)])
    assert [code for code, _ in answers] == [201] * pools
    cluster.kubectl("create", "-f", "-", here, stdin=manifest(config_map("counted-too")))
    cluster.kubectl("create", "quota", "q", f"--hard={COUNT}=5000,count/configmaps=10", here)
    # The ConfigMap with the cluster's authority is in every namespace.
    until(lambda: used(cluster, here) == {COUNT: str(pools), "count/configmaps": "2"})
    complaints = (cluster.plane.folder / "kube-controller-manager.log").read_text()
    assert "timed out waiting for quota monitor sync" not in complaints
    assert "timed out waiting for dependency graph builder sync" not in complaints


def used(cluster: Cluster, here: str) -> Any:
    return cluster.json("quota/q", here)["status"].get("used")


@OVER_BOTH_STORES
def test_t083_an_autoscaler_is_able_to_scale_a_pool(cluster: Cluster) -> None:
    here = cluster.namespace("autoscaled")
    cluster.kubectl("create", "-f", "-", here, stdin=manifest(pool("x", replicas=1)))
    status = json.dumps({"status": {"replicas": 1, "selector": "app=x"}})
    cluster.kubectl("patch", "wp/x", "--subresource=status", "--type=merge", "-p", status, here)
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "x"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "clrk.apoxy.dev/v1alpha1", "kind": "WorkerPool", "name": "x"},
            "minReplicas": 3,
            "maxReplicas": 5,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}],
        },
    }
    cluster.kubectl("create", "-f", "-", here, stdin=json.dumps(autoscaler))
    until(lambda: conditions(cluster, "hpa/x", here).get("AbleToScale", {}).get("status") == "True")
    # Fewer than it may have: that takes no metric.
    until(lambda: cluster.json("wp/x", here)["spec"]["replicas"] == 3)


def test_t023_admission_webhooks_are_asked_for_no_write_at_all(cluster: Cluster) -> None:
    """As docs/authentication.md and KNOWN_ISSUES.md say: never for some writes and not for others."""
    here = cluster.namespace("webhooks")
    rule = {
        "apiGroups": ["clrk.apoxy.dev"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["workerpools", "workerpools/*"],
    }
    webhook = {
        "name": "deny.example.dev",
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [rule],
        "clientConfig": {"url": "https://127.0.0.1:1/deny"},
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "deny"},
        "webhooks": [webhook],
    }
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(configuration))
    try:
        cluster.kubectl("create", "-f", "-", here, stdin=manifest(pool("x")))
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", here, stdin=manifest(pool("x", replicas=2)))
        cluster.kubectl("patch", "wp/x", "--subresource=status", "--type=merge", "-p", '{"status":{"readyReplicas":1}}', here)
        cluster.kubectl("scale", "wp/x", "--replicas=3", here)
        cluster.kubectl("delete", "wp/x", here)
    finally:
        cluster.kubectl("delete", "validatingwebhookconfiguration", "deny")
