"""Our server as it is installed: a process, registered by what `clrk-apiserver manifests` prints, in a cluster with controllers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.process import ROOT, Serving, serving
from tests.controlplane.control_plane import ControlPlane
from tests.tools import path
from tests.tools.etcd import free_ports

SERVER_USER = "installed-server"
OURS = ("apiservice", "-l", "app.kubernetes.io/name=clrk-apiserver")
"""What kubectl takes for our APIServices."""
OVER_BOTH_STORES = pytest.mark.parametrize("cluster", ["sqlite", "etcd"], indirect=True)
"""For a test that must come out alike in a cluster whose replicas share an etcd."""
_LONGEST_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Cluster:
    """The control plane, our server in it, and kubectl as whoever is wanted."""

    plane: ControlPlane
    serving: Serving
    registration: str
    """What has been applied."""

    def run(self, *arguments: str, stdin: str = "", user: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl as this user (the administrator when it is none), whatever comes of it."""
        kubeconfig = self.plane.kubeconfig_of(self.plane.client(user)) if user else self.plane.kubeconfig
        return subprocess.run(
            [str(path("kubectl")), f"--kubeconfig={kubeconfig}", *arguments],
            env={"HOME": str(self.plane.folder), "PATH": "/usr/bin:/bin"},
            cwd=ROOT,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST_SECONDS,
        )

    def kubectl(self, *arguments: str, stdin: str = "", user: str = "") -> str:
        """Run a command that must succeed, and return its output."""
        done = self.run(*arguments, stdin=stdin, user=user)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def fails(self, *arguments: str, stdin: str = "", user: str = "") -> str:
        """Run a command that must fail, and return its complaint."""
        done = self.run(*arguments, stdin=stdin, user=user)
        assert done.returncode == 1, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stderr

    def json(self, *arguments: str) -> Any:
        """Run `get … -o json`."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def gone(self, *arguments: str) -> bool:
        """Whether `get` finds nothing."""
        return not self.kubectl("get", *arguments, "--ignore-not-found", "-o", "name")

    def register(self) -> None:
        """Apply anew what has been applied, and wait until kube-apiserver reaches our server."""
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=self.registration)
        self.kubectl("wait", "--for=condition=Available", "--timeout=50s", *OURS)

    def namespace(self, name: str) -> str:
        """Make a namespace, and return the flag that leads there."""
        self.kubectl("create", "namespace", name)
        return f"--namespace={name}"


def until(holds: Callable[[], object], *, seconds: float = 60.0) -> None:
    """Return when something holds at last. Nobody tells us of another process's state: it is asked for again and again."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not come to hold"
        time.sleep(0.1)


def registration(*flags: str) -> str:
    """What `clrk-apiserver manifests` prints."""
    command = [sys.executable, "-m", "apiserver", "manifests", *flags]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    ).stdout


@contextmanager
def installed(folder: Path) -> Iterator[Cluster]:
    """A cluster in which our server is available, and whose controllers have known it from their start."""
    plane = ControlPlane(folder)
    plane.start()
    (port,) = free_ports(1)
    where = ("--external-name=localhost", f"--port={port}", f"--user={SERVER_USER}")
    try:
        # Its controllers share one identity here, which a real cluster splits into one for each with its own permissions.
        plane.kubectl("create", "clusterrolebinding", "controllers", "--clusterrole=cluster-admin", "--user=system:kube-controller-manager")
        apply = ("apply", "--server-side", "-f", "-")
        plane.kubectl(*apply, stdin=registration("--without-ca", *where).encode())
        kubeconfig = plane.kubeconfig_of(plane.client(SERVER_USER))
        # Not quiet: some tests take its permissions away, of which it complains when it happens to need them just then.
        with serving(folder / "clrk", f"--secure-port={port}", f"--kubeconfig={kubeconfig}", quiet=False) as server:
            cluster = Cluster(plane, server, registration(f"--data-dir={folder / 'clrk'}", *where))
            cluster.register()
            plane.start_controller_manager()
            # Aggregated roles are a controller's work: when they are there, the controllers are at work.
            until(lambda: "workerpools" in cluster.kubectl("get", "clusterrole", "view", "-o", "yaml"))
            yield cluster
            plane.kubectl("delete", *OURS)
    finally:
        plane.stop()
