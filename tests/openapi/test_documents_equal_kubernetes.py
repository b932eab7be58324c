"""Our documents have the structure of those that kube-apiserver 1.37 publishes for the same kinds as CustomResourceDefinitions.

reference.json was made from a real server, and is compared with one in tests/differential. What differs on purpose is taken out of our side
below, with the reason.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apiserver.kinds.local_worker import LocalWorker
from apiserver.kinds.worker_pool import WorkerPool
from apiserver.meta.resource import describe
from openapi import v2, v3
from tests.openapi.make_document_reference import reduced

REFERENCE: dict[str, Any] = json.loads(Path(__file__).with_name("reference.json").read_text())
PUBLISHED = [describe(WorkerPool).published, describe(LocalWorker).published]


@pytest.mark.parametrize("name", sorted(REFERENCE["v3"]))
def test_v3_has_the_structure_of_kubernetes_document(name: str) -> None:
    ours = reduced(json.loads(v3.documents(PUBLISHED, title="t", version="v")[name].content))
    if name.endswith("v1alpha1"):  # clients look for the events of a watch; documents of built-in groups have them
        del ours["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"]
        del ours["components"]["schemas"]["io.k8s.apimachinery.pkg.runtime.RawExtension"]
    assert ours == REFERENCE["v3"][name]


def test_v2_has_the_structure_of_kubernetes_document() -> None:
    ours = reduced(json.loads(v2.document(PUBLISHED, title="t", version="v").content))
    for group in ("clrk.apoxy.dev", "worker.saved.sh"):  # kube-apiserver writes these for built-in groups only
        del ours["paths"][f"/apis/{group}/"]
    assert ours == REFERENCE["v2"]
