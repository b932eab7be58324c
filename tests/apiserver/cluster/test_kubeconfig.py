"""What a kubeconfig, or a pod's files, say about the way to kube-apiserver."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.cluster import kubeconfig
from apiserver.cluster.kubeconfig import ExecPlugin, Kubeconfig, KubeconfigError, Material, in_pod, pod_config, read_kubeconfig


def written(folder: Path, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **changes: Any) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "other", "cluster": {"server": "https://other"}},
            {"name": "c", "cluster": {"server": "https://c:6443/", **(cluster or {})}},
        ],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        **changes,
    }
    file = folder / "config"
    file.write_text(yaml.safe_dump(config))
    return file


def data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    user = {"client-certificate": "me.crt", "client-key": "/keys/me.key", "tokenFile": "token"}
    assert read_kubeconfig(written(tmp_path, {"certificate-authority": "ca.crt"}, user)) == Kubeconfig(
        server="https://c:6443",
        authorities=Material(file=tmp_path / "ca.crt"),
        client_certificate=Material(file=tmp_path / "me.crt"),
        client_key=Material(file=Path("/keys/me.key")),
        token=Material(file=tmp_path / "token"),
    )


def test_embedded_data_wins_over_files_and_a_token_file_over_a_token(tmp_path: Path) -> None:
    cluster = {
        "certificate-authority-data": data("CA"),
        "certificate-authority": "ca.crt",
        "tls-server-name": "kubernetes",
        "proxy-url": "http://p:1",
    }
    config = read_kubeconfig(written(tmp_path, cluster, {"token": "t", "as": "robot", "as-groups": ["a", "b"], "as-uid": "1"}))
    assert (config.authorities, config.server_name, config.proxy) == (Material(b"CA"), "kubernetes", "http://p:1")
    assert config.token == Material(b"t")
    assert config.impersonation == (
        ("Impersonate-User", "robot"), ("Impersonate-Uid", "1"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"),
    )  # fmt: skip
    assert read_kubeconfig(written(tmp_path, user={"token": "t", "tokenFile": "f"})).token == Material(file=tmp_path / "f")
    assert read_kubeconfig(written(tmp_path, {"insecure-skip-tls-verify": True}, {"username": "a", "password": "b"})) == Kubeconfig(
        server="https://c:6443", insecure=True, basic="a:b"
    )


def test_a_plugin_is_found_beside_the_kubeconfig_or_on_the_path(tmp_path: Path) -> None:
    settings = {
        "command": "./plugin",
        "args": ["get"],
        "env": [{"name": "A", "value": "b"}],
        "apiVersion": "client.authentication.k8s.io/v1",
    }
    plugin = read_kubeconfig(written(tmp_path, user={"exec": settings})).plugin
    assert plugin == ExecPlugin(str(tmp_path / "plugin"), ("get",), {"A": "b"}, "client.authentication.k8s.io/v1", None, "")
    found = read_kubeconfig(written(tmp_path, user={"exec": {**settings, "command": "plugin", "provideClusterInfo": True}})).plugin
    assert found is not None
    assert (found.command, found.cluster) == ("plugin", {"server": "https://c:6443/"})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"current-context": "nope"}, 'there is no context "nope"', id="context"),
        pytest.param({"clusters": None}, 'there is no cluster "c"', id="cluster"),
        pytest.param({"users": []}, 'there is no user "u"', id="user"),
        pytest.param({"current-context": None}, 'there is no context "None"', id="none is current"),
        pytest.param({"users": [{"name": "u", "user": {"auth-provider": {"name": "gcp"}}}]}, "use an exec plugin", id="auth-provider"),
        pytest.param({"users": [{"name": "u", "user": {"exec": {"command": "c"}}}]}, "no kubeconfig", id="half a plugin"),
        pytest.param({"users": [{"name": "u", "user": {"exec": {"command": "c", "interactiveMode": "Always"}}}]}, "nobody", id="asks"),
        pytest.param({"users": [{"name": "u", "user": {"client-key-data": "%"}}]}, "client-key-data is no base64", id="base64"),
        pytest.param({"clusters": [{"name": "c", "cluster": {"server": "c:6443"}}]}, "no address", id="address"),
        pytest.param({"clusters": [{"name": "c"}]}, "no kubeconfig", id="no server"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(KubeconfigError, match=reason) as raised:
        read_kubeconfig(written(tmp_path, **changes))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"[]", b"a: [", b"\xff"])
def test_what_is_no_kubeconfig_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config").write_bytes(content)
    with pytest.raises(KubeconfigError, match="is no kubeconfig"):
        read_kubeconfig(tmp_path / "config")
    with pytest.raises(KubeconfigError, match=r"cannot read .*No such file"):
        read_kubeconfig(tmp_path / "nothing")


@pytest.mark.parametrize(("host", "server"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")])
def test_a_pod_is_given_an_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, server: str) -> None:
    monkeypatch.setattr(kubeconfig, "_POD", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    assert not in_pod()
    (tmp_path / "token").write_text("t")
    assert in_pod()
    config = pod_config()
    assert (config.server, config.authorities.file, config.token.file) == (server, tmp_path / "ca.crt", tmp_path / "token")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    assert not in_pod()
