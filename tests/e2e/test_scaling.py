"""What asks for a pool's scale, and what counts pools: autoscaling by a metric of another API server, disruption budgets, quotas."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from apiserver.certificates import prepare_certificates
from tests.e2e.aggregated import until
from tests.e2e.replicated import Replicated
from tests.kubectl.running import manifest, pool
from tests.tools import path

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

METRICS = "/apis/external.metrics.k8s.io/v1beta1"


class Metric:
    """Another aggregated API server, which serves one external metric in every namespace."""

    value = 0

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get(METRICS, self._discover)
        app.router.add_get(METRICS + "/namespaces/{namespace}/{name}", self._answer)
        return app

    async def _discover(self, request: web.Request) -> web.Response:
        resource = {"name": "queued", "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]}
        group_version = METRICS.removeprefix("/apis/")
        return web.json_response({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": [resource]})

    async def _answer(self, request: web.Request) -> web.Response:
        item = {"metricName": "queued", "metricLabels": {}, "timestamp": "2026-01-01T00:00:00Z", "value": str(self.value)}
        api_version = METRICS.removeprefix("/apis/")
        return web.json_response({"kind": "ExternalMetricValueList", "apiVersion": api_version, "metadata": {}, "items": [item]})


@asynccontextmanager
async def served(service: Replicated, folder: Path) -> AsyncIterator[Metric]:
    """The metric, registered beside our server."""
    serving = prepare_certificates(folder, ["localhost"]).serving
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(serving.certificate_file, serving.key_file)
    metric = Metric()
    runner = web.AppRunner(metric.app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    name, run = "metrics", service.cluster.kubectl
    objects = (
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
            "spec": {
                "group": "external.metrics.k8s.io",
                "version": "v1beta1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {"name": name, "namespace": "default", "port": port},
            },
        },
    )
    try:
        await asyncio.to_thread(run, "create", "-f", "-", stdin=manifest(*objects))
        await asyncio.to_thread(run, "wait", "--for=condition=Available", "--timeout=50s", "apiservice/v1beta1.external.metrics.k8s.io")
        yield metric
        await asyncio.to_thread(run, "delete", "apiservice/v1beta1.external.metrics.k8s.io", "service/metrics")
    finally:
        await runner.cleanup()


async def follow(service: Replicated, here: str, replicas: int) -> None:
    """Wait until a pool is asked to have so many replicas, and have them, as its operator does."""

    async def asked() -> bool:
        scale = json.loads(await asyncio.to_thread(service.cluster.kubectl, "get", "wp/x", "--subresource=scale", "-o", "json", here))
        return bool(scale["spec"].get("replicas", 0) == replicas)

    await until(asked)
    status = json.dumps({"status": {"readyReplicas": replicas}})
    await asyncio.to_thread(service.cluster.kubectl, "patch", "wp/x", "--subresource=status", "--type=merge", "-p", status, here)


async def test_t083_an_autoscaler_follows_an_external_metric(service: Replicated, tmp_path: Path) -> None:
    here, run = service.cluster.namespace("external-metric"), service.cluster.kubectl
    reference = {"apiVersion": "clrk.apoxy.dev/v1alpha1", "kind": "WorkerPool", "name": "x"}
    metric = {"type": "External", "external": {"metric": {"name": "queued"}, "target": {"type": "AverageValue", "averageValue": "10"}}}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "x"},
        "spec": {
            "scaleTargetRef": reference,
            "minReplicas": 1,
            "maxReplicas": 9,
            "metrics": [metric],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }
    async with served(service, tmp_path) as queued:
        queued.value = 40
        await asyncio.to_thread(run, "create", "-f", "-", here, stdin=manifest(pool("x", replicas=1)))
        await follow(service, here, 1)
        await asyncio.to_thread(run, "create", "-f", "-", here, stdin=manifest(autoscaler))
        await follow(service, here, 4)
        queued.value = 15
        await follow(service, here, 2)
        conditions = (await asyncio.to_thread(service.cluster.json, "hpa/x", here))["status"]["conditions"]
        told = {one["type"]: one["status"] for one in conditions}
        assert (told["AbleToScale"], told["ScalingActive"], told["ScalingLimited"]) == ("True", "True", "False")
        await asyncio.to_thread(run, "delete", "hpa/x", here)
    managers = {
        entry["manager"]: entry.get("subresource")
        for entry in service.cluster.json("wp/x", here, "--show-managed-fields")["metadata"]["managedFields"]
    }
    assert {manager: at for manager, at in managers.items() if not manager.startswith("kubectl")} == {
        path("kube-controller-manager").name: "scale"
    }


async def test_a_disruption_budget_counts_what_a_pool_is_to_have(service: Replicated) -> None:
    """The pods that it looks at need not be there yet: how many are expected is asked of the scale of whom they belong to."""
    here, run = service.cluster.namespace("budget"), service.cluster.kubectl
    run("create", "-f", "-", here, stdin=manifest(pool("x", replicas=7)))
    run("wait", "--for=create", "--timeout=50s", "serviceaccount/default", here)
    metadata = service.cluster.json("wp/x", here)["metadata"]
    owner = {"apiVersion": "clrk.apoxy.dev/v1alpha1", "kind": "WorkerPool", "name": "x", "uid": metadata["uid"], "controller": True}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x-1", "labels": {"app": "x"}, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "worker", "image": "registry.example/w:1"}]},
    }
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "x"},
        "spec": {"maxUnavailable": 2, "selector": {"matchLabels": {"app": "x"}}},
    }
    run("create", "-f", "-", here, stdin=manifest(pod, budget))

    async def counted(expected: int) -> bool:
        status: Any = service.cluster.json("pdb/x", here).get("status", {})
        return (status.get("expectedPods"), status.get("desiredHealthy")) == (expected, expected - 2)

    await until(lambda: counted(7))
    run("scale", "wp/x", "--replicas=5", here)
    run("label", "pod/x-1", "changed=", here)
    await until(lambda: counted(5))


async def test_a_quota_refuses_no_pool(service: Replicated) -> None:
    """As with every aggregated API: quotas are enforced by the admission of kube-apiserver, which does not see what it hands on."""
    here, run = service.cluster.namespace("quota"), service.cluster.kubectl
    hard = "count/workerpools.clrk.apoxy.dev"
    run("create", "quota", "q", f"--hard={hard}=1", here)
    run("create", "-f", "-", here, stdin=manifest(pool("a"), pool("b"), pool("c")))
    run("delete", "wp/c", here)

    async def counted() -> bool:
        status: Any = service.cluster.json("quota/q", here)["status"]
        return bool(status.get("used") == {hard: "2"})

    await until(counted)
