"""What kubectl finds out about the server before it does anything."""

from __future__ import annotations

import json

import pytest

from tests.kubectl.running import Kubectl, rows


def test_t005_api_resources_lists_both_kinds(kubectl: Kubectl) -> None:
    assert rows(kubectl("api-resources")) == [
        ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"],
        ["workerpools", "wp", "clrk.apoxy.dev/v1alpha1", "true", "WorkerPool"],
        ["localworkers", "worker.saved.sh/v1alpha1", "true", "LocalWorker"],
    ]


def test_t114_api_resources_shows_every_verb(kubectl: Kubectl) -> None:
    for line in rows(kubectl("api-resources", "-o", "wide", "--no-headers")):
        assert line[-1] == "delete,deletecollection,get,list,patch,create,update,watch"


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (["--api-group=worker.saved.sh"], ["localworkers.worker.saved.sh"]),
        (["--namespaced=false"], []),
        (["--verbs=watch"], ["workerpools.clrk.apoxy.dev", "localworkers.worker.saved.sh"]),
    ],
    ids=["group", "cluster", "verb"],
)
def test_api_resources_filters(kubectl: Kubectl, flags: list[str], names: list[str]) -> None:
    assert kubectl("api-resources", "-o", "name", *flags).split() == names


def test_api_versions_lists_both_groups(kubectl: Kubectl) -> None:
    assert kubectl("api-versions") == "clrk.apoxy.dev/v1alpha1\nworker.saved.sh/v1alpha1\n"


def test_version_names_the_release_that_we_follow(kubectl: Kubectl) -> None:
    version = json.loads(kubectl.run("version", "-o", "json").stdout)["serverVersion"]
    assert (version["major"], version["minor"]) == ("1", "37")


@pytest.mark.parametrize(
    "name", ["workerpools", "workerpool", "wp", "WorkerPool", "workerpools.clrk.apoxy.dev", "workerpools.v1alpha1.clrk.apoxy.dev"]
)
def test_a_kind_is_found_under_all_of_its_names(kubectl: Kubectl, name: str) -> None:
    done = kubectl.run("get", name)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("No resources found")


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        pytest.param(
            ["workerpool"],
            ["GROUP: clrk.apoxy.dev", "KIND: WorkerPool", "VERSION: v1alpha1", "WorkerPool is a set of", "spec <Object> -required-"],
            id="T012_kind",
        ),
        pytest.param(["localworker.spec"], ["FIELD: spec <Object>", "configSecretRef <string>", "Name of a Secret"], id="T012_field"),
        pytest.param(["localworkers", "--api-version=worker.saved.sh/v1alpha1"], ["KIND: LocalWorker"], id="api_version"),
        pytest.param(
            ["workerpool.spec.template.affinity", "--recursive"],
            ["Where worker pods are scheduled", "podAntiAffinity <Object>", "topologyKey <string> -required-", "matchExpressions"],
            id="recursive",
        ),
        pytest.param(
            ["wp.spec.template.imagePullPolicy"], ["FIELD: imagePullPolicy <string>", "ENUM: Always IfNotPresent Never"], id="enum"
        ),
        pytest.param(["wp.spec.replicas"], ["FIELD: replicas <integer>", "How many worker pods the pool has."], id="integer"),
        pytest.param(["wp.spec.template.env"], ["FIELD: env <[]Object>", "POD_NAME"], id="list"),
        pytest.param(["wp.metadata.ownerReferences"], ["FIELD: ownerReferences <[]OwnerReference>", "controller <boolean>"], id="metadata"),
        pytest.param(
            ["workerpool.status", "--output=plaintext-openapiv2"],
            ["KIND: WorkerPool", "RESOURCE: status <Object>", "readyReplicas <integer>", "How many worker pods are ready."],
            id="T012_v2",
        ),
        pytest.param(
            ["workerpool.spec.template.affinity", "--recursive", "--output=plaintext-openapiv2"],
            ["podAntiAffinity <Object>"],
            id="v2_recursive",
        ),
    ],
)
def test_explain_prints_our_texts(kubectl: Kubectl, arguments: list[str], texts: list[str]) -> None:
    printed = " ".join(kubectl("explain", *arguments).split()).replace("\t", " ")
    for text in texts:
        assert " ".join(text.split()) in printed


def test_explain_says_when_there_is_no_such_field(kubectl: Kubectl) -> None:
    assert 'field "nope" does not exist' in kubectl.fails("explain", "workerpool.spec.nope")


def test_every_field_of_our_own_has_a_text(kubectl: Kubectl) -> None:
    for kind in ("workerpool", "localworker"):
        for path in ("", ".spec", ".status", *([".spec.template", ".spec.imageCache", ".status.capacity"] if kind == "workerpool" else [])):
            assert "<no description>" not in kubectl("explain", f"{kind}{path}")


def test_auth_whoami_says_that_there_is_no_such_api(kubectl: Kubectl) -> None:
    assert kubectl.fails("auth", "whoami").startswith("error: the selfsubjectreviews API is not enabled in the cluster\n")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/apis", "APIGroupList"),
        ("/apis/clrk.apoxy.dev", "APIGroup"),
        ("/apis/worker.saved.sh", "APIGroup"),
        ("/apis/clrk.apoxy.dev/v1alpha1", "APIResourceList"),
        ("/apis/worker.saved.sh/v1alpha1", "APIResourceList"),
    ],
)
def test_get_raw_reads_every_discovery_document(kubectl: Kubectl, path: str, kind: str) -> None:
    assert json.loads(kubectl("get", "--raw", path))["kind"] == kind


@pytest.mark.parametrize(
    ("path", "members"),
    [
        ("/openapi/v2", {"swagger", "info", "paths", "definitions"}),
        ("/openapi/v3", {"paths"}),
        ("/openapi/v3/apis/clrk.apoxy.dev/v1alpha1", {"openapi", "info", "paths", "components"}),
        ("/openapi/v3/apis/worker.saved.sh/v1alpha1", {"openapi", "info", "paths", "components"}),
        ("/version", {"gitVersion", "major", "minor"}),
    ],
)
def test_get_raw_reads_every_document(kubectl: Kubectl, path: str, members: set[str]) -> None:
    assert members <= set(json.loads(kubectl("get", "--raw", path)))


def test_get_raw_follows_the_hashed_addresses(kubectl: Kubectl) -> None:
    for entry in json.loads(kubectl("get", "--raw", "/openapi/v3"))["paths"].values():
        address = entry["serverRelativeURL"]
        assert "?hash=" in address
        assert "paths" in json.loads(kubectl("get", "--raw", address))


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/healthz/ping", "/livez/ping", "/readyz/ping", "/readyz/informer-sync"])
def test_get_raw_asks_for_health(kubectl: Kubectl, path: str) -> None:
    assert kubectl("get", "--raw", path) == "ok"


def test_readyz_verbose_names_each_check(kubectl: Kubectl) -> None:
    lines = kubectl("get", "--raw", "/readyz?verbose").splitlines()
    assert lines[-1] == "readyz check passed"
    assert {"[+]ping ok", "[+]sqlite ok", "[+]informer-sync ok", "[+]shutdown ok"} <= set(lines)


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis/nope.example", "/apis/clrk.apoxy.dev/v9"])
def test_t005_get_raw_of_what_is_not_served_is_not_found(kubectl: Kubectl, path: str) -> None:
    assert kubectl.fails("get", "--raw", path) == "Error from server (NotFound): the server could not find the requested resource\n"
