"""Who may come in, and what they may do: the parts that decide it, put together from the configuration.

A server that stands alone knows its own authority and what it is given, and lets `system:masters` do everything. One that belongs to a
cluster asks the cluster's kube-apiserver; its own authority still counts, so that the administrator's kubeconfig in the data directory
opens it when kube-apiserver is away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from apiserver.admission.create_authorization import CreateAuthorization
from apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from apiserver.auth import SYSTEM_ANONYMOUS, SYSTEM_UNAUTHENTICATED
from apiserver.auth.always_allow import HEALTH_AND_EACH_CHECK, AlwaysAllowPaths, PrivilegedGroup
from apiserver.auth.authorities import Authorities
from apiserver.auth.authorization import Authorization
from apiserver.auth.bearer_token import BearerToken, TokenReviews, WebSocketToken
from apiserver.auth.client_certificate import ClientCertificate
from apiserver.auth.extension_authentication import ExtensionAuthentication
from apiserver.auth.request_header import RequestHeader
from apiserver.auth.subject_access_review import SubjectAccessReviews
from apiserver.auth.trust import FrontProxies, Trust
from apiserver.cluster.client import ClusterClient
from apiserver.cluster.kubeconfig import KubeconfigError, in_pod, pod_config, read_kubeconfig
from apiserver.config import StartupError
from apiserver.endpoints.health import HealthCheck
from apiserver.metrics.attempts import subject_access_reviews, token_reviews
from apiserver.request import User
from apiserver.tls import CertificateError, load_authorities

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cryptography import x509

    from apiserver.admission.chain import Mutator, Validator
    from apiserver.auth import Authenticator
    from apiserver.config import AuthConfig, Config
    from apiserver.metrics.exposition import Collect

_log = logging.getLogger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]
_FILES_EVERY_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Access:
    """How clients are known and judged."""

    trust: Trust
    """Which certificates count; the listener names their authorities to clients."""
    authenticators: tuple[Authenticator, ...]
    authorization: Authorization
    anonymous: User | None = None
    """Who those are that prove nothing. Equal to `request.ANONYMOUS`, which stands for nobody at all, but not the same."""
    mutators: tuple[Mutator, ...] = ()
    validators: tuple[Validator, ...] = ()
    checks: tuple[HealthCheck, ...] = ()
    """What must hold for the server to be ready."""
    tasks: tuple[Work, ...] = ()
    """What must run for it."""
    cluster: ClusterClient | None = None
    """The way to the kube-apiserver that is asked; None: the server stands alone."""
    metrics: tuple[Collect, ...] = ()
    """What is counted of it."""


def standalone(authorities: Iterable[x509.Certificate]) -> Access:
    """Certificates of these authorities; everything to `system:masters`, its health to everybody, nothing to anybody else."""
    trust = Trust(Authorities(tuple(authorities)))
    return _alone(trust, ())


def make_access(config: Config, own_authority: x509.Certificate) -> Access:
    """What the configuration says.

    Raises:
        StartupError: a file cannot be used, or something is missing.
    """
    own = Authorities((own_authority,))
    trust = Trust(own)
    files = _Files(config, own, trust)
    files.load()
    tasks = (files.run,) if files else ()
    clients = _Clients(config.auth)
    return _delegated(config, own, trust, clients, tasks) if clients else _alone(trust, tasks)


def _alone(trust: Trust, tasks: tuple[Work, ...]) -> Access:
    authorization = Authorization((PrivilegedGroup(), AlwaysAllowPaths(HEALTH_AND_EACH_CHECK)))
    return Access(trust, (RequestHeader(trust), ClientCertificate(trust)), authorization, tasks=tasks)


def _delegated(config: Config, own: Authorities, trust: Trust, clients: _Clients, tasks: tuple[Work, ...]) -> Access:
    given = config.auth
    core = clients.of("kubeconfig", given.kubeconfig or given.authentication_kubeconfig or given.authorization_kubeconfig)
    authentication = clients.of("authentication-kubeconfig", given.authentication_kubeconfig)
    authorization = clients.of("authorization-kubeconfig", given.authorization_kubeconfig)
    asked_who, asked_whether = token_reviews(), subject_access_reviews()
    tokens = TokenReviews(
        authentication,
        audiences=given.api_audiences,
        cache_seconds=given.authentication_token_webhook_cache_ttl,
        record=asked_who.record,
    )
    reviews = SubjectAccessReviews(
        authorization,
        authorized_seconds=given.authorization_webhook_cache_authorized_ttl,
        unauthorized_seconds=given.authorization_webhook_cache_unauthorized_ttl,
        record=asked_whether.record,
    )
    try:
        open_paths = AlwaysAllowPaths(given.authorization_always_allow_paths)
    except ValueError as error:
        raise StartupError(f"--authorization-always-allow-paths: {error}") from error
    namespaces = NamespaceLifecycle(core)
    tasks = (*tasks, *clients.tasks, namespaces.run)
    checks: tuple[HealthCheck, ...] = ()
    if not given.authentication_skip_lookup:
        lookup = ExtensionAuthentication(
            authentication,
            trust,
            own_authorities=own,
            follow_clients=config.tls.client_ca_file is None,
            follow_proxies=given.requestheader_client_ca_file is None,
        )
        tasks = (*tasks, lookup.run)
        if not given.authentication_tolerate_lookup_failure:
            checks = (HealthCheck("extension-apiserver-authentication", lookup.check),)
    elif trust.front_proxies is None:
        _log.warning("front proxies are not known: nobody can come through kube-apiserver (--requestheader-client-ca-file)")
    allowed = Authorization((PrivilegedGroup(), open_paths, reviews))
    return Access(
        trust,
        (RequestHeader(trust), ClientCertificate(trust), BearerToken(tokens), WebSocketToken(tokens)),
        allowed,
        User(SYSTEM_ANONYMOUS, groups=(SYSTEM_UNAUTHENTICATED,)) if given.anonymous_auth else None,
        (namespaces,),
        (CreateAuthorization(allowed.check),),
        checks,
        tasks,
        cluster=core,
        metrics=(asked_who.collect, asked_whether.collect),
    )


class _Clients:
    """The ways to kube-apiserver; the same kubeconfig is one way. Empty when there is none: then the server stands alone."""

    def __init__(self, given: AuthConfig) -> None:
        self._default = given.kubeconfig
        self._in_pod = not given.standalone and in_pod()
        self._any = bool(given.kubeconfig or given.authentication_kubeconfig or given.authorization_kubeconfig or self._in_pod)
        self._clients: dict[Path | None, ClusterClient] = {}

    def __bool__(self) -> bool:
        return self._any

    def of(self, flag: str, file: Path | None) -> ClusterClient:
        """The client of a kubeconfig, of the one for everything, or of the pod."""
        file = file or self._default
        if file is None and not self._in_pod:
            raise StartupError(f"--{flag} or --kubeconfig is needed, since others of its kind are given")
        if file not in self._clients:
            try:
                self._clients[file] = ClusterClient(read_kubeconfig(file) if file is not None else pod_config())
            except KubeconfigError as error:
                raise StartupError(str(error)) from error
        return self._clients[file]

    @property
    def tasks(self) -> tuple[Work, ...]:
        return tuple(client.run for client in self._clients.values())


class _Files:
    """Authorities that are given in files, which may be replaced while the server runs."""

    def __init__(self, config: Config, own: Authorities, trust: Trust) -> None:
        self._clients_file = config.tls.client_ca_file
        self._proxies_file = config.auth.requestheader_client_ca_file
        self._given = config.auth
        self._own = own
        self._trust = trust
        self._loaded: tuple[list[x509.Certificate], list[x509.Certificate]] = ([], [])

    def __bool__(self) -> bool:
        return bool(self._clients_file or self._proxies_file)

    def load(self) -> None:
        """Take over what the files hold now.

        Raises:
            StartupError: one cannot be read, or holds no authority.
        """
        try:
            clients = load_authorities(self._clients_file) if self._clients_file is not None else []
            proxies = load_authorities(self._proxies_file) if self._proxies_file is not None else []
        except CertificateError as error:
            raise StartupError(str(error)) from error
        if (clients, proxies) == self._loaded:
            return
        self._loaded = clients, proxies
        self._trust.replace(
            clients=Authorities((*self._own.certificates, *clients)) if clients else None,
            front_proxies=self._front_proxies(proxies) if proxies else None,
        )

    def _front_proxies(self, authorities: list[x509.Certificate]) -> FrontProxies:
        given = self._given
        return FrontProxies(
            Authorities(tuple(authorities)),
            given.requestheader_allowed_names,
            given.requestheader_username_headers,
            given.requestheader_group_headers,
            given.requestheader_extra_headers_prefix,
            given.requestheader_uid_headers,
        )

    async def run(self) -> None:
        """Look again from time to time, for ever. What cannot be read any more still counts."""
        while True:
            await asyncio.sleep(_FILES_EVERY_SECONDS)
            try:
                self.load()
            except StartupError as error:
                _log.error("%s; what it held before counts", error)
