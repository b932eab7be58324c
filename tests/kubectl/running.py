"""kubectl as a user runs it: a program, a kubeconfig, a namespace, a home of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.apiserver.process import ROOT, Serving

SAMPLES = ROOT / "manifests" / "samples"
IMAGE = "registry.example/w:1"

_LONGEST_SECONDS = 60
"""A command that takes longer waits for what will not come."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    """One kubectl of one version. Calling it runs a command that must succeed and complain about nothing."""

    program: Path
    version: str
    server: Serving
    namespace: str
    home: Path
    makes_namespaces: bool = False
    """Whether one has to be made before anything can be in it: behind kube-apiserver, but not where our server is alone."""

    @property
    def environment(self) -> dict[str, str]:
        """What kubectl needs to know, and nothing of whoever runs the tests."""
        home = str(self.home)
        return {
            "HOME": home,
            "KUBECACHEDIR": f"{home}/cache",
            "KUBECONFIG": str(self._kubeconfig()),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "TMPDIR": home,
        }

    def __call__(self, *arguments: str, stdin: str | None = None, **environment: str) -> str:
        """Run it and return its output."""
        done = self.run(*arguments, stdin=stdin, **environment)
        assert (done.returncode, done.stderr) == (0, ""), f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def run(self, *arguments: str, stdin: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run it, whatever comes of it."""
        return subprocess.run(
            self._command(arguments),
            env=self.environment | environment,
            cwd=ROOT,
            input=stdin or "",
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST_SECONDS,
        )

    def fails(self, *arguments: str, stdin: str | None = None) -> str:
        """Run it, see that it fails, and return its complaint."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 1, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stderr

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Run it beside the block. It ends with the block at the latest."""
        process = subprocess.Popen(
            self._command(arguments),
            env=self.environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        # The time-out ends a watch too, so that a test that waits for a line in vain fails instead of hanging.
        return [str(self.program), "--request-timeout=30s", *arguments]

    def _kubeconfig(self) -> Path:
        """The server's own, with our namespace in its context."""
        file = self.home / f"{self.namespace}.kubeconfig"
        if not file.exists():
            file.write_text(self.server.kubeconfig.read_text().replace("namespace: default\n", f"namespace: {self.namespace}\n"))
        return file

    def json(self, *arguments: str) -> Any:
        """Run `get … -o json`."""
        return json.loads(self("get", *arguments, "-o", "json"))

    def create(self, *values: dict[str, Any]) -> str:
        """Create these objects."""
        return self("create", "-f", "-", stdin=manifest(*values))

    def at(self, namespace: str) -> Kubectl:
        """The same in another namespace, which is there."""
        return replace(self, namespace=namespace)

    def beside(self, suffix: str) -> Kubectl:
        """The same in a second namespace that nobody else uses."""
        other = self.at(f"{self.namespace}-{suffix}")
        if self.makes_namespaces:
            self("create", "namespace", other.namespace)
        return other


def manifest(*values: dict[str, Any]) -> str:
    """A file for `-f` with these objects."""
    return "\n".join(json.dumps(value) for value in values)


def pool(name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A WorkerPool."""
    return {
        "apiVersion": "clrk.apoxy.dev/v1alpha1",
        "kind": "WorkerPool",
        "metadata": {"name": name, **({"labels": labels} if labels else {})},
        "spec": {"template": {"image": IMAGE}, **spec},
    }


def worker(name: str, **spec: Any) -> dict[str, Any]:
    """A LocalWorker."""
    return {"apiVersion": "worker.saved.sh/v1alpha1", "kind": "LocalWorker", "metadata": {"name": name}, "spec": spec}


def rows(table: str) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in table.splitlines()]
