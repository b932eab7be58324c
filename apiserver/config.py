"""The one frozen configuration. Made by the command line, or by a test; read by `app` and `server`.

A field's docstring gives unit, reason for the default, and how to switch it off. Flags carry the names of `k8s.io/apiserver`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from apiserver.audit.log import AuditConfig
from apiserver.filters.limits import InFlightLimits
from apiserver.registry.watching import WatchLimits
from storage.cache import CacheLimits

DEFAULT_KINDS = ("apiserver.kinds",)


class StartupError(Exception):
    """The server cannot start; the text is one line, fit for the person who started it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenConfig:
    """Where and how connections are accepted."""

    bind_address: str = "127.0.0.1"
    """An address of this machine; `0.0.0.0` or `::` for all of them. The default keeps a first try private."""
    secure_port: int = 6443
    """The port, as of kube-apiserver; 0 takes any that is free."""
    keep_alive_seconds: float = 130.0
    """How long an idle connection is kept: longer than the 90 s after which Go clients (and the aggregator) close one, so that they do
    not send into a connection that is being closed."""
    handshake_seconds: float = 10.0
    """How long a client may take for the TLS handshake."""
    max_header_bytes: int = 1024 * 1024 + 4096
    """Request line and headers together, as Go's servers take: a user may have some thousand groups, a selector some 30 KB."""
    max_headers: int = 10_000
    """How many headers; bounds what parsing costs."""
    dead_peer_seconds: int = 180
    """After how long a peer that answers nothing is taken for dead, and what its connection holds is freed: it may be gone without a word,
    and a watch of a quiet resource would not notice. 0: as the system does it, after hours."""
    http2: bool = True
    """Whether clients that know HTTP/2 are spoken to in it, as in Go's servers: above all kube-apiserver, which otherwise opens a
    connection for each request beyond 25 at a time."""
    backlog: int = 1024
    """Connections that the system holds until they are accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TLSConfig:
    """Certificates that are brought along. Without them the server makes its own in the data directory."""

    cert_file: Path | None = None
    """PEM of the serving certificate and of those that lead to its authority. None: made by the server's own authority."""
    private_key_file: Path | None = None
    """PEM of its key, without a passphrase. Goes with `cert_file`."""
    client_ca_file: Path | None = None
    """PEM of authorities whose client certificates are accepted beside the server's own. None: no others."""
    names: tuple[str, ...] = ()
    """Names (or addresses) that the certificate made by the server carries beside those of this machine: that of its Service, to which
    kube-apiserver holds it."""

    def __post_init__(self) -> None:
        if (self.cert_file is None) != (self.private_key_file is None):
            raise StartupError("--tls-cert-file and --tls-private-key-file belong together")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """How clients are known, and who decides what they may do. The flags are those of `k8s.io/apiserver`'s delegating options."""

    standalone: bool = False
    """Ask no kube-apiserver, not in a pod either, which is given the way to one."""
    kubeconfig: Path | None = None
    """The way to kube-apiserver, for its namespaces and for whatever has no kubeconfig of its own. None: what a pod is given; outside of a
    pod, and without the two below, the server stands alone."""
    authentication_kubeconfig: Path | None = None
    """For TokenReviews and the ConfigMap `extension-apiserver-authentication`."""
    authorization_kubeconfig: Path | None = None
    """For SubjectAccessReviews."""
    authentication_skip_lookup: bool = False
    """Do not read the ConfigMap: only what is given here counts."""
    authentication_tolerate_lookup_failure: bool = False
    """Be ready even before the ConfigMap has been read; until then nobody comes through kube-apiserver."""
    authentication_token_webhook_cache_ttl: float = 10.0
    """Seconds for which the answer about a token counts; 0 asks for each request."""
    authorization_webhook_cache_authorized_ttl: float = 10.0
    """Seconds for which a permission counts; 0 asks for each request."""
    authorization_webhook_cache_unauthorized_ttl: float = 10.0
    """Seconds for which a denial counts; 0 asks for each request."""
    authorization_always_allow_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
    """Paths that need no permission when permissions are delegated; `*` at the end stands for the rest."""
    anonymous_auth: bool = True
    """Take whoever proves nothing as `system:anonymous`, where permissions are delegated. False: 401."""
    api_audiences: tuple[str, ...] = ()
    """Whom a token must be meant for, one of them; empty: for kube-apiserver."""
    requestheader_client_ca_file: Path | None = None
    """PEM of the authorities of front proxies, instead of the ConfigMap's; the other `requestheader` settings go with it. None: the
    ConfigMap's."""
    requestheader_allowed_names: tuple[str, ...] = ()
    """Common names of front proxies; empty: any that the authority has signed."""
    requestheader_username_headers: tuple[str, ...] = ("x-remote-user",)
    """Where front proxies name the user: the first of these headers with a value."""
    requestheader_group_headers: tuple[str, ...] = ("x-remote-group",)
    """Where they name groups: all values of these headers."""
    requestheader_extra_headers_prefix: tuple[str, ...] = ("x-remote-extra-",)
    """How the names of headers with `extra` begin; the rest is the key."""
    requestheader_uid_headers: tuple[str, ...] = ()
    """Where they name the user's uid; empty: nowhere, as kube-apiserver does by default."""

    def __post_init__(self) -> None:
        if self.standalone and (self.kubeconfig or self.authentication_kubeconfig or self.authorization_kubeconfig):
            raise StartupError("--standalone asks no kube-apiserver: a kubeconfig contradicts it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that can be chosen."""

    data_dir: Path = Path(".clrk")
    """Certificates, the kubeconfig, and the embedded store. Made, with mode 0700, when it is missing."""
    listen: ListenConfig = field(default_factory=ListenConfig)
    tls: TLSConfig = field(default_factory=TLSConfig)
    auth: AuthConfig = field(default_factory=AuthConfig)
    kinds: tuple[str, ...] = DEFAULT_KINDS
    """Packages (or modules) whose Resource classes are served."""
    audit: AuditConfig = field(default_factory=AuditConfig)
    tracing_file: Path | None = None
    """A TracingConfiguration of apiserver.config.k8s.io/v1. None: there are no traces."""
    limits: InFlightLimits = field(default_factory=InFlightLimits)
    cache: CacheLimits = field(default_factory=CacheLimits)
    watch: WatchLimits = field(default_factory=WatchLimits)
    enable_garbage_collector: bool | None = None
    """Whether a garbage collector follows the objects, as kube-controller-manager's does behind kube-apiserver. Without one, deletions that
    orphan dependents, or delete them first, would wait for it for ever: then they delete at once. None: unless the server stands alone."""
    store_name: str = "sqlite"
    """What the health check of the store is called."""
    request_timeout_seconds: float = 60.0
    """How long a request may take that is no watch, as kube-apiserver's --request-timeout."""
    min_request_timeout_seconds: float = 1800.0
    """How long a watch goes on, at least, that names no time of its own; up to twice as long, so that clients do not come back together."""
    shutdown_delay_seconds: float = 0.0
    """How long new connections are still served after the signal to stop, while `/readyz` already fails: as long as load balancers take to
    notice. 0: they are refused at once."""
    shutdown_timeout_seconds: float = 60.0
    """How long running requests may take to finish after that; what is left then is cut off."""
    shutdown_send_retry_after: bool = False
    """Whether connections are still accepted while running requests finish, and new requests answered with 429 and Retry-After. Else new
    connections are refused then."""
    access_log: Literal["", "json", "plain"] = ""
    """A line per request on standard error. Off by default: it costs more than answering from memory."""
