"""`clrk-apiserver manifests` prints all that a cluster needs, for whatever kinds are served, wherever the server is."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from apiserver import kinds
from apiserver.__main__ import main

KINDS = kinds.load("apiserver.kinds")
REGISTRATION = Path(__file__).parents[2] / "manifests" / "base" / "registration.yaml"


def printed(*flags: str) -> list[Any]:
    done = CliRunner().invoke(main, ["manifests", *flags])
    assert done.exit_code == 0, done.output
    return list(yaml.safe_load_all(done.output))


def of_kind(objects: list[Any], kind: str) -> list[Any]:
    return [value for value in objects if value["kind"] == kind]


def test_each_group_version_has_an_api_service_and_they_come_last() -> None:
    objects = printed("--without-ca")
    api_services = of_kind(objects, "APIService")
    assert {value["metadata"]["name"] for value in api_services} == {f"{kind.version}.{kind.group}" for kind in KINDS}
    assert objects[-len(api_services) :] == api_services
    assert objects[0]["kind"] == "Namespace"


def test_the_base_of_the_overlays_registers_what_is_served() -> None:
    """To renew it: `clrk-apiserver manifests --without-ca`, below the comment."""
    comment, _, content = REGISTRATION.read_text().partition("\n")
    assert comment.startswith("#")
    assert content == CliRunner().invoke(main, ["manifests", "--without-ca"]).stdout


def test_kinds_of_others_get_theirs() -> None:
    objects = printed("--without-ca", "--kinds=tests.apiserver.gadgets")
    assert [value["metadata"]["name"] for value in of_kind(objects, "APIService")] == ["v1.example.dev"]
    assert "gadgets" in str(of_kind(objects, "ClusterRole"))
    assert "workerpools" not in str(objects)


def test_t123_nobody_gets_everything_and_no_user_the_status() -> None:
    for role in of_kind(printed("--without-ca"), "ClusterRole"):
        for rule in role["rules"]:
            assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
            assert not any(resource.endswith("/status") for resource in rule["resources"])


def test_t123_the_server_may_ask_for_what_it_lives_by_and_for_nothing_else() -> None:
    objects = printed("--without-ca")
    bindings = [*of_kind(objects, "ClusterRoleBinding"), *of_kind(objects, "RoleBinding")]
    assert {(binding["roleRef"]["kind"], binding["roleRef"]["name"]) for binding in bindings} == {
        ("ClusterRole", "system:auth-delegator"),
        ("Role", "extension-apiserver-authentication-reader"),
        ("ClusterRole", "clrk-apiserver:namespaces"),
    }
    subject = {"kind": "ServiceAccount", "name": "clrk-apiserver", "namespace": "clrk-system"}
    assert all(binding["subjects"] == [subject] for binding in bindings)
    [role] = [value for value in of_kind(objects, "ClusterRole") if value["metadata"]["name"] == "clrk-apiserver:namespaces"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]}]


def test_the_authority_is_that_of_the_data_directory_or_the_one_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    own, other = tmp_path / "pki" / "ca.crt", tmp_path / "other.crt"
    for file, flag in ((own, f"--data-dir={tmp_path}"), (other, f"--ca-file={other}")):
        file.write_text(f"an authority in {file.name}")
        for api_service in of_kind(printed(flag), "APIService"):
            assert b64decode(api_service["spec"]["caBundle"]).decode() == f"an authority in {file.name}"


def test_without_an_authority_nothing_is_printed(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["manifests", f"--data-dir={tmp_path}"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "ca.crt" in done.stderr


@pytest.mark.parametrize(("flags", "port"), [((), 6443), (("--port=7443",), 7443)], ids=["usual port", "another port"])
def test_a_server_outside_of_the_cluster_is_reached_by_its_host(flags: tuple[str, ...], port: int) -> None:
    objects = printed("--without-ca", "--external-name=localhost", "--user=ours", *flags)
    [service] = of_kind(objects, "Service")
    assert service["spec"] == {"type": "ExternalName", "externalName": "localhost", "ports": [{"name": "https", "port": port}]}
    assert {value["spec"]["service"]["port"] for value in of_kind(objects, "APIService")} == {port}
    assert of_kind(objects, "ServiceAccount") == []
    bindings = [*of_kind(objects, "ClusterRoleBinding"), *of_kind(objects, "RoleBinding")]
    assert {subject["name"] for binding in bindings for subject in binding["subjects"]} == {"ours"}


def test_everything_goes_into_the_namespace_that_is_wanted() -> None:
    assert "clrk-system" not in str(printed("--without-ca", "--namespace=elsewhere"))
