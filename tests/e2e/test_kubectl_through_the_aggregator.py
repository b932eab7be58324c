"""kubectl reaches both kinds through kube-apiserver as if they were its own."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from apiserver import kinds
from tests.e2e.installed import OVER_BOTH_STORES, Cluster, until
from tests.kubectl.running import SAMPLES, manifest, pool, rows

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

GROUPS = ("clrk.apoxy.dev", "worker.saved.sh")


@pytest.mark.parametrize("kind", kinds.load("apiserver.kinds"), ids=lambda kind: kind.plural)
def test_each_group_version_is_available_and_lists_its_kinds(cluster: Cluster, kind: Any) -> None:
    api_service = cluster.json("apiservice", f"{kind.version}.{kind.group}")
    [available] = [one for one in api_service["status"]["conditions"] if one["type"] == "Available"]
    assert available["status"] == "True"
    assert api_service["spec"]["caBundle"]
    assert "insecureSkipTLSVerify" not in api_service["spec"]
    assert kind.kind in cluster.kubectl("api-resources", f"--api-group={kind.group}")


@OVER_BOTH_STORES
@pytest.mark.parametrize("resource", ["workerpool", "localworker"])
def test_the_repertoire(cluster: Cluster, resource: str) -> None:
    here = cluster.namespace(f"repertoire-{resource}")
    sample = f"{SAMPLES / resource}.yaml"
    created = cluster.kubectl("create", "-f", sample, here)
    name = created.split()[0]
    assert name in cluster.kubectl("get", f"{resource}s", here, "-o", "name")
    narrow, wide = (rows(cluster.kubectl("get", name, here, *flags)) for flags in ((), ("-o", "wide")))
    assert wide[0][: len(narrow[0])] == narrow[0]
    assert name.partition("/")[2] in cluster.kubectl("describe", name, here)
    cluster.kubectl("apply", "-f", sample, here)
    assert "unchanged" in cluster.kubectl("apply", "-f", sample, here)
    assert "serverside-applied" in cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", sample, here)
    assert "labeled" in cluster.kubectl("label", name, "team=other", "--overwrite", here)
    assert "patched" in cluster.kubectl("patch", name, "--type=merge", "-p", '{"metadata":{"annotations":{"a":"b"}}}', here)
    assert cluster.json(name, here)["metadata"]["annotations"]["a"] == "b"
    cluster.kubectl("delete", name, here)
    assert cluster.gone(name, here)


@OVER_BOTH_STORES
def test_a_pool_is_scaled(cluster: Cluster) -> None:
    here = cluster.namespace("scaled")
    cluster.kubectl("create", "-f", "-", here, stdin=manifest(pool("x", replicas=1)))
    assert "scaled" in cluster.kubectl("scale", "workerpool/x", "--replicas=5", "--current-replicas=1", here)
    assert cluster.json("wp/x", here)["spec"]["replicas"] == 5
    assert "Expected replicas to be 2, was 5" in cluster.fails("scale", "wp/x", "--replicas=3", "--current-replicas=2", here)


@OVER_BOTH_STORES
def test_t009_a_list_that_changes_is_applied_as_the_manifest_says(cluster: Cluster) -> None:
    here = cluster.namespace("applied")
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    first = pool("x", template={"image": "r.example/w:1", "env": env, "tolerations": [{"key": "k", "operator": "Exists"}]})
    second = pool("x", template={"image": "r.example/w:1", "env": [*env, {"name": "C", "value": "3"}]})
    cluster.kubectl("apply", "-f", "-", here, stdin=manifest(first))
    assert "configured" in cluster.kubectl("apply", "-f", "-", here, stdin=manifest(second))
    template = cluster.json("wp/x", here)["spec"]["template"]
    assert template["env"] == second["spec"]["template"]["env"]
    assert "tolerations" not in template
    assert "unchanged" in cluster.kubectl("apply", "-f", "-", here, stdin=manifest(second))


def test_t007_kinds_are_explained(cluster: Cluster) -> None:
    until(lambda: cluster.run("explain", "workerpool").returncode == 0)
    assert "tolerations" in cluster.kubectl("explain", "workerpool.spec.template", "--recursive")
    assert "configSecretRef" in cluster.kubectl("explain", "localworker.spec")
    until(lambda: cluster.run("explain", "workerpool.status", "--output=plaintext-openapiv2").returncode == 0)


def test_t010_the_documents_of_the_groups_stay_apart_and_what_they_share_is_there_once(cluster: Cluster) -> None:
    """kube-apiserver renames what two servers describe in different words."""

    def merged() -> Any:
        return json.loads(cluster.kubectl("get", "--raw", "/openapi/v2"))

    def renamed() -> list[str]:
        return [name for name in merged()["definitions"] if re.search(r"_v\d+$", name)]

    until(lambda: set(GROUPS) <= {path.split("/")[2] for path in merged()["paths"] if path.count("/") > 2})
    # It asks us anew every minute.
    until(lambda: not renamed(), seconds=100)
    for resource in ("configmap.metadata", "workerpool.metadata", "localworker.metadata"):
        assert "generateName" in cluster.kubectl("explain", resource, "--output=plaintext-openapiv2")
    for group in GROUPS:
        document = json.loads(cluster.kubectl("get", "--raw", f"/openapi/v3/apis/{group}/v1alpha1"))
        assert {path.split("/")[2] for path in document["paths"]} == {group}
