"""Composition: kinds and a store become a function that answers requests. Reads like docs/flow.md.

Nothing here looks at a request. All objects are built once; the tasks that keep them going belong to `App.running`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from apiserver import kinds
from apiserver.admission.chain import Chain
from apiserver.audit.file import FileBackend
from apiserver.audit.log import AuditLog
from apiserver.audit.webhook import WebhookBackend
from apiserver.cluster.client import ClusterClient
from apiserver.cluster.kubeconfig import KubeconfigError, read_kubeconfig
from apiserver.cluster.shared_definitions import SharedDefinitions
from apiserver.config import StartupError
from apiserver.endpoints import create, delete, delete_collection, discovery, get, index, openapi, patch, scale, update, watch
from apiserver.endpoints import list as list_
from apiserver.endpoints import metrics as metrics_endpoint
from apiserver.endpoints import version as version_endpoint
from apiserver.endpoints.failure import respond_error
from apiserver.endpoints.health import HealthCheck, HealthEndpoint, ping
from apiserver.endpoints.routes import Router, Served
from apiserver.filters import bind, enter
from apiserver.filters.access_log import AccessLog
from apiserver.filters.deadline import Deadlines
from apiserver.filters.limits import InFlight
from apiserver.filters.stages import Stages
from apiserver.metrics.attempts import AccessMetrics
from apiserver.metrics.exposition import gauges
from apiserver.metrics.requests import RequestMetrics
from apiserver.metrics.resources import ResourceMetrics, WatchEvents
from apiserver.metrics.store import MeasuredStore
from apiserver.registry.resource_store import ResourceStore
from apiserver.registry.table import TableConvertor
from apiserver.registry.watching import Watches
from apiserver.tracing import Tracer, TracingError
from apiserver.turns import Turns

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.access import Access
    from apiserver.audit.backend import Backend
    from apiserver.auth.authorization import Authorization
    from apiserver.config import Config
    from apiserver.meta.resource import ResourceKind
    from apiserver.metrics.exposition import Collect
    from apiserver.request import Handler, Peer
    from storage.store import Store

_log = logging.getLogger(__name__)
DISTRIBUTION = "clrk-apiserver"
METRICS = "/metrics"
INDEX = "/"


@dataclass(frozen=True, slots=True)
class App:
    """A server without its listener."""

    handle: Callable[[web.BaseRequest, Peer], Awaitable[web.StreamResponse]]
    """Answers one request of a peer. Every failure is a Status; nothing is raised but for a client that has gone."""
    resources: tuple[ResourceStore, ...]
    draining: asyncio.Event
    """Set by whoever stops the server: from then on it is not ready."""
    refusing: asyncio.Event
    """Set when new requests are to be turned away, which happens if the configuration says so."""
    turns: Turns
    """Shared by all that runs on the loop."""
    _watches: tuple[Watches, ...]
    _tasks: tuple[Callable[[], Coroutine[Any, Any, None]], ...]

    def drain(self) -> None:
        """Be not ready any more; everything else goes on."""
        self.draining.set()

    def end_watches(self) -> None:
        """End every watch as if its time were up: clients resume elsewhere. Turn new requests away, if that is wanted."""
        self.refusing.set()
        for watches in self._watches:
            watches.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep caches and deadlines going inside of the block. A task that fails takes the block with it: nothing works without."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work(), name=work.__qualname__) for work in self._tasks]
            try:
                yield
            finally:
                for resource in self.resources:
                    await resource.cache.close()
                for task in tasks:
                    task.cancel()

    async def wait_ready(self) -> None:
        """Return when every resource can be read."""
        for resource in self.resources:
            await resource.cache.wait_ready()

    async def prepare_writes(self) -> None:
        """Make ready, in a thread, what the first write of each kind would else hold the loop for."""
        for resource in self.resources:
            await asyncio.to_thread(resource.strategy.prepare)


def build_app(
    config: Config,
    store: Store,
    access: Access,
    served_kinds: Iterable[ResourceKind] | None = None,
    *,
    tasks: Iterable[Callable[[], Coroutine[Any, Any, None]]] = (),
    metrics: Iterable[Collect] = (),
) -> App:
    """Put a server together over a store that is open, for these kinds or for those of the packages that the configuration names.

    `access` decides who may do what. `tasks` are what else must run meanwhile, `metrics` what else is told under /metrics.

    Raises:
        StartupError: the kinds cannot be served, or there can be no audit log as it is wanted.
    """
    if served_kinds is None:
        served_kinds = load_kinds(config.kinds)
    measured = MeasuredStore(store, every_read=config.store_name == "etcd")
    garbage_collected = access.cluster is not None if config.enable_garbage_collector is None else config.enable_garbage_collector
    turns = Turns()
    resources = tuple(
        ResourceStore(kind, measured, limits=config.cache, garbage_collected=garbage_collected, turns=turns) for kind in served_kinds
    )
    described = [resource.kind for resource in resources]
    events = [WatchEvents() for _ in resources]
    watches = tuple(Watches(resource, config.watch, sent=counted.sent) for resource, counted in zip(resources, events, strict=True))
    documents = openapi.Documents(described, title=DISTRIBUTION, version=version(DISTRIBUTION))
    draining, refusing = asyncio.Event(), asyncio.Event()
    deadlines, in_flight = Deadlines(timeout_seconds=config.request_timeout_seconds), InFlight()
    paths = {
        **_health(config, store, resources, draining, access.checks),
        "/version": version_endpoint.make(version(DISTRIBUTION)),
        **discovery.make(described),
        **openapi.make(documents, described),
    }
    admission = Chain(access.mutators, access.validators)
    served = {
        _address(resource.kind): Served(resource.kind, _handlers(config, resource, watched, admission, access.authorization))
        for resource, watched in zip(resources, watches, strict=True)
    }
    requests = RequestMetrics({address: one.subresources for address, one in served.items()}, {*paths, METRICS, INDEX})
    held = ResourceMetrics(tuple(zip(resources, watches, events, strict=True)), capacity=config.cache.history.changes or 0)
    busy = gauges("apiserver_current_inflight_requests", "Requests that are worked on.", "request_kind", in_flight.by_kind)
    access_metrics, audit_log, tracer = AccessMetrics(), _audit_log(config), _tracer(config)
    if audit_log is not None:
        metrics, tasks = (audit_log.collect, *metrics), (audit_log.run, *tasks)
    if tracer is not None:
        tasks = (tracer.run, *tasks)
    metrics = (requests.collect, held.collect, measured.collect, busy, access_metrics.collect, *access.metrics, *metrics)
    paths[METRICS] = metrics_endpoint.make(store, metrics)
    paths[INDEX] = index.make(paths)
    stages = Stages(
        authenticators=access.authenticators,
        authorization=access.authorization,
        anonymous=access.anonymous,
        limits=config.limits,
        in_flight=in_flight,
        turns=turns,
        deadlines=deadlines,
        respond_error=respond_error,
        access_log=AccessLog(logging.getLogger("apiserver.access"), config.access_log) if config.access_log else None,
        audit_log=audit_log,
        tracer=tracer,
        access_metrics=access_metrics,
        metrics=requests,
        refusing=refusing if config.shutdown_send_retry_after else None,
    )
    router = Router(served, paths)
    if access.cluster is not None:
        tasks = (SharedDefinitions(access.cluster, documents.adopt).run, *tasks)
    tasks = (deadlines.run, *access.tasks, *(resource.run for resource in resources), *tasks)
    return App(enter(bind(stages, router)), resources, draining, refusing, turns, watches, tasks)


def _audit_log(config: Config) -> AuditLog | None:
    log, webhook = config.audit.log, config.audit.webhook
    if not log.path and webhook.config_file is None:
        return None
    if config.audit.policy_file is None:
        _log.warning("there is no audit policy (--audit-policy-file): nothing is written to the audit log")
        return None
    # The models of a policy are as many as those of a kind, and most servers have none.
    from apiserver.audit.policy import PolicyError, load_policy

    try:
        policy = load_policy(config.audit.policy_file)
        backends: list[Backend] = [FileBackend(log)] if log.path else []
        if webhook.config_file is not None:
            backends.append(WebhookBackend(webhook, ClusterClient(read_kubeconfig(webhook.config_file))))
        return AuditLog(policy, tuple(backends))
    except (PolicyError, KubeconfigError) as error:
        raise StartupError(str(error)) from error
    except OSError as error:
        raise StartupError(f"cannot write {log.path}: {error.strerror}") from error


def _tracer(config: Config) -> Tracer | None:
    try:
        return Tracer.open(config.tracing_file) if config.tracing_file is not None else None
    except TracingError as error:
        raise StartupError(str(error)) from error


def load_kinds(packages: tuple[str, ...]) -> tuple[ResourceKind, ...]:
    """Load the kinds of these packages.

    Raises:
        StartupError: they cannot be served.
    """
    try:
        return kinds.load(*packages)
    except kinds.KindError as error:
        raise StartupError(str(error)) from error


def _handlers(
    config: Config, resource: ResourceStore, watches: Watches, admission: Chain, authorization: Authorization
) -> dict[tuple[str, str], Handler]:
    """The verbs of one kind, and of its subresources."""
    kind, tables = resource.kind, TableConvertor(resource.kind)
    handlers = {
        ("get", ""): get.make(resource, tables),
        ("list", ""): list_.make(resource, tables),
        ("watch", ""): watch.make(resource, tables, watches, min_timeout_seconds=config.min_request_timeout_seconds),
        ("create", ""): create.make(resource, tables, admission),
        ("update", ""): update.make(resource, tables, admission),
        ("patch", ""): patch.make(resource, tables, admission),
        ("delete", ""): delete.make(resource, tables, admission, authorization),
        ("deletecollection", ""): delete_collection.make(resource, tables, admission),
    }
    if kind.has_status:
        handlers |= {
            ("get", "status"): get.make(resource, tables),
            ("update", "status"): update.make(resource, tables, admission, subresource="status"),
            ("patch", "status"): patch.make(resource, tables, admission, subresource="status"),
        }
    if kind.scale is not None:
        handlers |= {
            ("get", "scale"): scale.make_get(resource, kind.scale),
            ("update", "scale"): scale.make_update(resource, kind.scale, admission),
            ("patch", "scale"): scale.make_patch(resource, kind.scale, admission),
        }
    return handlers


def _address(kind: ResourceKind) -> tuple[str, str, str]:
    return kind.group, kind.version, kind.plural


def _health(
    config: Config, store: Store, resources: tuple[ResourceStore, ...], draining: asyncio.Event, more: tuple[HealthCheck, ...]
) -> dict[str, Handler]:
    async def shutdown() -> None:
        if draining.is_set():
            raise RuntimeError("the server is shutting down")

    async def caches() -> None:
        waiting = [str(resource.kind.group_resource) for resource in resources if not resource.cache.ready]
        if waiting:
            raise RuntimeError(f"not read from the store yet: {', '.join(waiting)}")

    alive = HealthCheck("ping", ping)
    reads = HealthCheck(config.store_name, store.current_revision)
    synced = HealthCheck("informer-sync", caches)
    stopping = HealthCheck("shutdown", shutdown)
    endpoints = (
        HealthEndpoint("healthz", (alive, reads)),
        HealthEndpoint("livez", (alive,)),
        HealthEndpoint("readyz", (alive, reads, synced, *more, stopping)),
    )
    return {path: handler for endpoint in endpoints for path, handler in endpoint.handlers().items()}
