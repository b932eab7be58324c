"""What the cluster's own roles give to ordinary users, once our manifests are applied."""

from __future__ import annotations

import pytest

from tests.e2e.installed import Cluster, until
from tests.kubectl.running import manifest, pool

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

READ = {"get", "list", "watch"}
WRITE = {"create", "update", "patch", "delete", "deletecollection"}


@pytest.mark.parametrize(
    ("role", "verbs", "scale"),
    [
        pytest.param("view", READ, {"get"}, id="view"),
        pytest.param("edit", READ | WRITE, {"get", "update", "patch"}, id="edit"),
        pytest.param("admin", READ | WRITE, {"get", "update", "patch"}, id="admin"),
    ],
)
def test_t123_roles_of_the_cluster_reach_our_kinds(cluster: Cluster, role: str, verbs: set[str], scale: set[str]) -> None:
    here = cluster.namespace(f"role-{role}")
    cluster.kubectl("create", "rolebinding", "u", f"--clusterrole={role}", f"--user={role}er", here)

    def may(verb: str, resource: str) -> bool:
        resource, _, subresource = resource.partition("/")
        flags = [f"--subresource={subresource}"] if subresource else []
        return cluster.run("auth", "can-i", verb, resource, *flags, here, user=f"{role}er").stdout.strip() == "yes"

    until(lambda: may("list", "workerpools"))
    for resource in ("workerpools.clrk.apoxy.dev", "localworkers.worker.saved.sh"):
        assert {verb for verb in READ | WRITE if may(verb, resource)} == verbs
    assert {verb for verb in ("get", "update", "patch") if may(verb, "workerpools/scale")} == scale
    assert not any(may(verb, resource) for verb in ("update", "patch") for resource in ("workerpools/status", "localworkers/status"))
    # What can-i says is what our server does.
    done = cluster.run("create", "-f", "-", here, stdin=manifest(pool("x")), user=f"{role}er")
    assert (done.returncode == 0) == ("create" in verbs), done.stderr
    assert cluster.run("get", "workerpools", here, user=f"{role}er").returncode == 0


def test_a_user_without_rights_reads_why(cluster: Cluster) -> None:
    here = cluster.namespace("denied")
    assert cluster.fails("get", "workerpools", here, user="mallory") == (
        'Error from server (Forbidden): workerpools.clrk.apoxy.dev is forbidden: User "mallory" cannot list resource "workerpools" '
        'in API group "clrk.apoxy.dev" in the namespace "denied"\n'
    )


def test_the_server_itself_may_what_it_needs_and_no_more(cluster: Cluster) -> None:
    rules = cluster.kubectl("auth", "can-i", "--list", "--as=installed-server", "--no-headers")
    # The last of the words before the verbs are names of resources, of paths, or of objects.
    assert "*.*" not in rules
    assert "[*]" not in rules
    assert "secrets" not in rules
    assert "tokenreviews.authentication.k8s.io" in rules
    assert "subjectaccessreviews.authorization.k8s.io" in rules
