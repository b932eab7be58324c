"""In the order that docs/install.md gives, our server leaves nothing behind, and nobody waits for it."""

from __future__ import annotations

import pytest

from tests.e2e.installed import OURS, Cluster

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

LABELLED = "clusterroles,clusterrolebindings,rolebindings,serviceaccounts,services,apiservices,namespaces"


def test_t123_uninstalled_it_leaves_nothing_behind(cluster: Cluster) -> None:
    left = ("get", LABELLED, "-A", "-l", "app.kubernetes.io/name=clrk-apiserver", "-o", "name")
    assert "namespace/clrk-system" in cluster.kubectl(*left)
    try:
        cluster.kubectl("delete", *OURS)
        cluster.kubectl("delete", "--ignore-not-found", "--timeout=50s", "-f", "-", stdin=cluster.registration)
        assert cluster.kubectl(*left) == ""
        assert "workerpools" not in cluster.kubectl("api-resources", "--cached=false", "-o", "name")
        # Whoever has gone holds nobody else up.
        cluster.namespace("afterwards")
        cluster.kubectl("delete", "namespace", "afterwards", "--timeout=30s")
    finally:
        cluster.register()
