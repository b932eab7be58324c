"""Where kube-apiserver is and how we prove who we are: from a kubeconfig, or from what a pod is given.

Reads what client-go reads: files and embedded data, `tls-server-name`, tokens, basic authentication, exec plugins, impersonation. Not read:
`auth-provider` (client-go has no more than one of them left; an exec plugin does the same) and proxies from the environment.
Source: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

_POD = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class KubeconfigError(Exception):
    """A kubeconfig cannot be used; the text is one line that says which, and why."""


@dataclass(frozen=True, slots=True)
class Material:
    """PEM or a token: given as such, or in a file that may change while we run."""

    data: bytes = b""
    file: Path | None = None

    def __bool__(self) -> bool:
        return bool(self.data) or self.file is not None

    def read(self) -> bytes:
        """What it is now.

        Raises:
            OSError: the file cannot be read.
        """
        return self.file.read_bytes() if self.file is not None else self.data


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A command that knows our credentials."""

    command: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    api_version: str
    cluster: Mapping[str, Any] | None
    """What the plugin is told of the cluster; None when it does not ask."""
    install_hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubeconfig:
    """All that a connection needs: one context of a kubeconfig."""

    server: str
    """URL without a slash at its end."""
    authorities: Material = Material()
    """Empty: those of the system."""
    insecure: bool = False
    server_name: str = ""
    """The name that the server's certificate must carry, when it is not the URL's."""
    proxy: str = ""
    client_certificate: Material = Material()
    client_key: Material = Material()
    token: Material = Material()
    basic: str = ""
    """`name:password`."""
    plugin: ExecPlugin | None = None
    impersonation: tuple[tuple[str, str], ...] = ()
    """Headers."""


def in_pod() -> bool:
    """Whether this process runs in a pod that was given an identity."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (_POD / "token").is_file()


def pod_config() -> Kubeconfig:
    """The configuration that a pod is given.

    Source: https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
    """
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    return Kubeconfig(server=f"https://{host}:{port}", authorities=Material(file=_POD / "ca.crt"), token=Material(file=_POD / "token"))


def read_kubeconfig(file: Path) -> Kubeconfig:
    """The configuration of a kubeconfig's current context.

    Raises:
        KubeconfigError: it cannot be read, or asks for something that we cannot do.
    """
    try:
        content = yaml.safe_load(file.read_bytes())
        context = _named(content, "contexts", "context", content["current-context"])
        cluster = _named(content, "clusters", "cluster", context["cluster"])
        user = _named(content, "users", "user", context["user"]) if context.get("user") else {}
        return _config(cluster, user, file.resolve().parent)
    except OSError as error:
        raise KubeconfigError(f"cannot read {file}: {error.strerror}") from error
    except KubeconfigError as error:
        raise KubeconfigError(f"{file}: {error}") from error
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise KubeconfigError(f"{file} is no kubeconfig with a current context: {' '.join(str(error).split())}") from error


def _named(content: Mapping[str, Any], plural: str, singular: str, name: str) -> Mapping[str, Any]:
    for entry in content.get(plural) or ():
        if entry["name"] == name:
            found: Mapping[str, Any] = entry.get(singular) or {}
            return found
    raise KubeconfigError(f'there is no {singular} "{name}"')


def _config(cluster: Mapping[str, Any], user: Mapping[str, Any], folder: Path) -> Kubeconfig:
    if "auth-provider" in user:
        raise KubeconfigError("auth-provider is not supported: use an exec plugin")
    server = cluster["server"].rstrip("/")
    if urlsplit(server).scheme not in ("http", "https") or not urlsplit(server).hostname:
        raise KubeconfigError(f'"{server}" is no address of a server')
    token = user.get("token", "")
    return Kubeconfig(
        server=server,
        authorities=_material(cluster, "certificate-authority", folder),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        server_name=cluster.get("tls-server-name") or "",
        proxy=cluster.get("proxy-url") or "",
        client_certificate=_material(user, "client-certificate", folder),
        client_key=_material(user, "client-key", folder),
        # The file wins, since what it holds can be new.
        token=Material(file=folder / user["tokenFile"]) if user.get("tokenFile") else Material(token.encode()),
        basic=f"{user['username']}:{user.get('password', '')}" if user.get("username") else "",
        plugin=_plugin(user["exec"], cluster, folder) if user.get("exec") else None,
        impersonation=_impersonation(user),
    )


def _material(entry: Mapping[str, Any], name: str, folder: Path) -> Material:
    if data := entry.get(f"{name}-data"):
        try:
            return Material(base64.b64decode(data, validate=True))
        except binascii.Error as error:
            raise KubeconfigError(f"{name}-data is no base64") from error
    return Material(file=folder / entry[name]) if entry.get(name) else Material()


def _plugin(settings: Mapping[str, Any], cluster: Mapping[str, Any], folder: Path) -> ExecPlugin:
    if settings.get("interactiveMode") == "Always":
        raise KubeconfigError("the exec plugin wants to talk with somebody, and a server has nobody")
    command = settings["command"]
    if "/" in command and not command.startswith("/"):
        command = str(folder / command)
    return ExecPlugin(
        command,
        tuple(settings.get("args") or ()),
        {variable["name"]: variable["value"] for variable in settings.get("env") or ()},
        settings["apiVersion"],
        dict(cluster) if settings.get("provideClusterInfo") else None,
        settings.get("installHint") or "",
    )


def _impersonation(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    headers = [("Impersonate-User", user["as"])] if user.get("as") else []
    headers += [("Impersonate-Uid", user["as-uid"])] if user.get("as-uid") else []
    headers += [("Impersonate-Group", group) for group in user.get("as-groups") or ()]
    if user.get("as-user-extra"):
        raise KubeconfigError("as-user-extra is not supported")
    return tuple(headers)
