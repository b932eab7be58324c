"""What a server in a cluster writes down of requests, and counts of its questions to kube-apiserver."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from apiserver.certificates import KeyPair
from tests.apiserver.audit.test_webhook import receiving
from tests.apiserver.process import start
from tests.connector import Connector
from tests.e2e.aggregated import until
from tests.e2e.installed import SERVER_USER
from tests.e2e.replicated import Replicated
from tests.e2e.test_replicas import pools

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

POLICY = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [{level: Metadata}]}"
REVIEW = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}


def reason(service: Replicated, user: str, namespace: str) -> str:
    """Why kube-apiserver would have it so."""
    attributes = {"namespace": namespace, "verb": "list", "group": "clrk.apoxy.dev", "version": "v1alpha1", "resource": "workerpools"}
    spec = {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes}
    answered = service.plane.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps({**REVIEW, "spec": spec}).encode())
    return str(json.loads(answered)["status"].get("reason", ""))


async def test_decisions_are_in_the_audit_log_with_the_clusters_reasons(service: Replicated, tmp_path: Path) -> None:
    here = service.cluster.namespace("audited")
    service.cluster.kubectl("create", "rolebinding", "lister", "--clusterrole=view", "--user=alice", here)
    (tmp_path / "policy.yaml").write_text(POLICY)
    async with receiving() as receiver:
        cluster = {"name": "receiver", "cluster": {"server": receiver.url}}
        context = {"name": "receiver", "context": {"cluster": "receiver"}}
        kubeconfig = {"current-context": "receiver", "contexts": [context], "clusters": [cluster]}
        (tmp_path / "receiver").write_text(json.dumps(kubeconfig))
        started = start(
            tmp_path / "clrk",
            f"--kubeconfig={service.plane.kubeconfig_of(service.plane.client(SERVER_USER))}",
            f"--audit-policy-file={tmp_path / 'policy.yaml'}",
            f"--audit-log-path={tmp_path / 'audit.log'}",
            f"--audit-webhook-config-file={tmp_path / 'receiver'}",
        )

        async def ask(identity: KeyPair, path: str, audit_id: str) -> tuple[int, str]:
            tls = started.serving.tls
            tls.load_cert_chain(identity.certificate_file, identity.key_file)
            async with (
                aiohttp.ClientSession(started.serving.url, connector=Connector(ssl=tls)) as session,
                session.get(path, headers={"Audit-ID": audit_id}) as response,
            ):
                return response.status, await response.text()

        try:
            # A binding is known to kube-apiserver's authorizer a moment after it was made.
            await until(lambda: _is("RBAC: allowed by" in reason(service, "alice", "audited")))
            assert (await ask(service.plane.client("alice"), pools("audited"), "allowed"))[0] == 200
            assert (await ask(service.plane.client("bob"), pools("audited"), "denied"))[0] == 403
            _, metrics = await ask(service.plane.pki.admin, "/metrics", "metrics")
        finally:
            await asyncio.to_thread(started.end)
        sent = {event["auditID"]: event for one in receiver.lists for event in one["items"]}
    assert 'apiserver_delegated_authz_request_total{code="201"} 2.0' in metrics
    assert 'apiserver_delegated_authz_request_duration_seconds_count{code="201"} 2.0' in metrics
    written: dict[str, Any] = {event["auditID"]: event for event in map(json.loads, (tmp_path / "audit.log").read_text().splitlines())}
    assert written == sent
    for audit_id, decision, user in (("allowed", "allow", "alice"), ("denied", "forbid", "bob")):
        assert written[audit_id]["annotations"] == {
            "authorization.k8s.io/decision": decision,
            "authorization.k8s.io/reason": reason(service, user, "audited"),
        }


async def _is(holds: bool) -> bool:
    return holds
