"""Every route of the documents that this server was written from, in their order, with the codes that they name."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.apiserver.process import ROOT, Serving, serving

SAMPLE = (ROOT / "manifests" / "samples" / "workerpool-minimal.yaml").read_bytes()
IN_NAMESPACE = "/apis/clrk.apoxy.dev/v1alpha1/namespaces/{namespace}/workerpools"
EVERYWHERE = "/apis/clrk.apoxy.dev/v1alpha1/workerpools"
ONE = f"{IN_NAMESPACE}/{{name}}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("routes") / "clrk") as running:
        yield running


def curl(server: Serving, method: str, route: str, *arguments: str, body: bytes = b"") -> tuple[int, dict[str, object]]:
    """What a user types: curl with the files that the server made beside its kubeconfig."""
    pki = server.kubeconfig.parent / "pki"
    path = route.format(namespace="default", name="small")
    who = ("--cacert", f"{pki}/ca.crt", "--cert", f"{pki}/admin.crt", "--key", f"{pki}/admin.key")
    done = subprocess.run(
        ["curl", "--silent", "--show-error", *who, "--request", method, "--write-out", "\n%{http_code}", *arguments, f"{server.url}{path}"],
        input=body,
        capture_output=True,
        check=True,
    )
    content, _, code = done.stdout.rpartition(b"\n")
    return int(code), json.loads(content)


SEND_YAML = ("--header", "Content-Type: application/yaml", "--data-binary", "@-")
SEND_JSON = ("--header", "Content-Type: application/json", "--data-binary", "@-")
SEND_PATCH = ("--header", "Content-Type: application/merge-patch+json", "--data-binary", "@-")


def test_every_route_of_a_worker_pool(server: Serving) -> None:
    code, created = curl(server, "POST", IN_NAMESPACE, *SEND_YAML, body=SAMPLE)
    assert (code, created["kind"]) == (201, "WorkerPool")
    code, listed = curl(server, "GET", IN_NAMESPACE)
    assert (code, listed["kind"], listed["items"]) == (200, "WorkerPoolList", [created])
    code, listed = curl(server, "GET", EVERYWHERE)
    assert (code, listed["kind"], listed["items"]) == (200, "WorkerPoolList", [created])
    assert curl(server, "GET", ONE) == (200, created)
    assert curl(server, "PUT", ONE, *SEND_JSON, body=json.dumps(created).encode()) == (200, created)
    code, patched = curl(server, "PATCH", ONE, *SEND_PATCH, body=b'{"spec":{"warmPool":2}}')
    assert (code, patched["spec"]) == (200, {**created["spec"], "warmPool": 2})  # type: ignore[dict-item]
    code, status = curl(server, "DELETE", ONE)
    assert (code, status["status"]) == (200, "Success")
    curl(server, "POST", IN_NAMESPACE, *SEND_YAML, body=SAMPLE)
    code, deleted = curl(server, "DELETE", IN_NAMESPACE)
    assert (code, deleted["kind"]) == (200, "WorkerPoolList")
    assert curl(server, "GET", ONE)[0] == 404


def test_the_manifest_of_the_local_worker_document(server: Serving) -> None:
    manifest = b"""
apiVersion: worker.saved.sh/v1alpha1
kind: LocalWorker
metadata:
  name: prod-worker-1
  namespace: saved
spec:
  image: ghcr.io/savedhq/local-worker:v0.1.0
  configSecretRef: saved-worker-config
"""
    code, created = curl(server, "POST", "/apis/worker.saved.sh/v1alpha1/namespaces/saved/localworkers", *SEND_YAML, body=manifest)
    assert (code, created["spec"]) == (
        201,
        {"image": "ghcr.io/savedhq/local-worker:v0.1.0", "configSecretRef": "saved-worker-config"},
    )


def test_the_documents_have_every_route_and_operation(server: Serving) -> None:
    _, document = server.request("GET", "/openapi/v3/apis/clrk.apoxy.dev/v1alpha1")
    paths = document["paths"]
    operations = {path: {verb for verb in item if verb in ("get", "post", "put", "patch", "delete")} for path, item in paths.items()}
    assert operations[EVERYWHERE] == {"get"}
    assert operations[IN_NAMESPACE] == {"get", "post", "delete"}
    assert operations[ONE] == {"get", "put", "patch", "delete"}
    assert re.fullmatch(r"list\w*WorkerPoolForAllNamespaces", paths[EVERYWHERE]["get"]["operationId"])
    assert set(paths[IN_NAMESPACE]["post"]["responses"]) >= {"200", "201", "202"}
    assert set(paths[ONE]["delete"]["responses"]) >= {"200", "202"}
