"""Our own credentials, kept fresh: tokens in files are rotated, plugins' answers expire, and a 401 says that something is stale.

TLS material and tokens are read again at most once a minute, as client-go does it; what has not changed costs nothing.
Source: https://github.com/kubernetes/client-go/blob/v0.37.2/transport/token_source.go and plugin/pkg/client/auth/exec/exec.go
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import orjson

from apiserver.cluster.kubeconfig import KubeconfigError

if TYPE_CHECKING:
    from apiserver.cluster.kubeconfig import ExecPlugin, Kubeconfig

_READ_AGAIN_SECONDS = 60.0
_PLUGIN_SECONDS = 60.0
_PLUGIN_FRESH_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Identity:
    """What one connection is opened with. Equal ones need no new connection."""

    authorities: bytes = b""
    certificate: bytes = b""
    key: bytes = b""


class Credentials:
    """The credentials of one Kubeconfig."""

    def __init__(self, config: Kubeconfig) -> None:
        self._config = config
        self._read_at = float("-inf")
        self._token = ""
        self._identity = Identity()
        self._plugin_certificate = (b"", b"")
        self._plugin_until = float("-inf")
        self._lock = asyncio.Lock()

    async def fresh(self) -> Identity:
        """Read what may have changed, and return what TLS needs.

        Raises:
            KubeconfigError: a file cannot be read, or the plugin fails.
        """
        if time.monotonic() - self._read_at >= _READ_AGAIN_SECONDS or time.time() >= self._plugin_until:
            async with self._lock:
                if time.monotonic() - self._read_at >= _READ_AGAIN_SECONDS or time.time() >= self._plugin_until:
                    await self._read()
        return self._identity

    def doubt(self) -> None:
        """Read everything again the next time: the server did not believe it."""
        self._read_at = self._plugin_until = float("-inf")

    def headers(self) -> dict[str, str]:
        """The Authorization header, when there is one."""
        if self._token:
            return {"Authorization": f"Bearer {self._token}"}
        if self._config.basic:
            return {"Authorization": f"Basic {base64.b64encode(self._config.basic.encode()).decode()}"}
        return {}

    async def _read(self) -> None:
        config = self._config
        if config.plugin is None:
            self._plugin_until = float("inf")
        elif time.time() >= self._plugin_until:
            await self._ask_plugin(config.plugin)
        try:
            if config.token:
                self._token = config.token.read().decode().strip()
            certificate, key = config.client_certificate.read(), config.client_key.read()
            authorities = config.authorities.read()
        except (OSError, UnicodeDecodeError) as error:
            raise KubeconfigError(f"cannot read our credentials: {error}") from error
        if self._plugin_certificate[0]:
            certificate, key = self._plugin_certificate
        self._identity = Identity(authorities, certificate, key)
        self._read_at = time.monotonic()

    async def _ask_plugin(self, plugin: ExecPlugin) -> None:
        status = await _run(plugin)
        if not _says_something(status):
            raise KubeconfigError(f"{plugin.command} names neither a token nor a certificate with its key")
        if not self._config.token:
            self._token = status.get("token") or ""
        self._plugin_certificate = (
            (status.get("clientCertificateData") or "").encode(),
            (status.get("clientKeyData") or "").encode(),
        )
        expires = status.get("expirationTimestamp")
        # Without an end it holds until somebody does not believe it.
        until = datetime.fromisoformat(expires).timestamp() - _PLUGIN_FRESH_SECONDS if expires else float("inf")
        self._plugin_until = max(until, time.time() + 1)


def _says_something(status: dict[str, Any]) -> bool:
    return bool(status.get("token")) or bool(status.get("clientCertificateData") and status.get("clientKeyData"))


async def _run(plugin: ExecPlugin) -> dict[str, Any]:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    asked = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    environment = {**os.environ, **plugin.environment, "KUBERNETES_EXEC_INFO": orjson.dumps(asked).decode()}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.arguments,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        hint = f" ({' '.join(plugin.install_hint.split())})" if plugin.install_hint else ""
        raise KubeconfigError(f"cannot run {plugin.command}: {error.strerror}{hint}") from error
    try:
        async with asyncio.timeout(_PLUGIN_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError as error:
        raise KubeconfigError(f"{plugin.command} does not answer") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        answer = orjson.loads(output)
        if process.returncode == 0 and answer["kind"] == "ExecCredential" and answer["apiVersion"] == plugin.api_version:
            status: dict[str, Any] = answer["status"]
            return status
    except (ValueError, KeyError, TypeError) as error:
        raise KubeconfigError(f"{plugin.command} does not answer with an ExecCredential") from error
    raise KubeconfigError(f"{plugin.command} failed with exit code {process.returncode}, or answers in another version")


def tls_context(config: Kubeconfig, identity: Identity) -> ssl.SSLContext:
    """The context of a connection.

    Raises:
        KubeconfigError: certificates or key cannot be used.
    """
    try:
        context = ssl.create_default_context(cadata=identity.authorities.decode() if identity.authorities else None)
        # Python 3.13 demands more of authorities than Go does, and than many clusters' have.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if config.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if identity.certificate:
            with TemporaryDirectory() as folder:  # OpenSSL reads a client's certificate from files only
                certificate, key = Path(folder) / "certificate", Path(folder) / "key"
                certificate.write_bytes(identity.certificate)
                key.touch(mode=0o600)
                key.write_bytes(identity.key)
                context.load_cert_chain(certificate, key)
    except (ssl.SSLError, ValueError, OSError) as error:
        raise KubeconfigError(f"our certificate, its key, or the cluster's authorities cannot be used: {error}") from error
    return context
