"""From a configuration to a running server, and to its end: certificates, store, app, listener, signals.

Starting: everything that can be wrong with what the caller gave is found before the first connection is accepted. A store in etcd that
cannot be reached is not: the server waits for it, answers discovery meanwhile, and is not ready.
Ending: not ready at once; after the delay no new requests; running ones finish, watches end cleanly; a second signal cuts them off.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from apiserver import heap
from apiserver.access import make_access
from apiserver.app import App, build_app, load_kinds
from apiserver.certificates import Certificates, prepare_certificates, renew_leaves, write_kubeconfig
from apiserver.config import Config, StartupError
from apiserver.listening_socket import bind
from apiserver.metrics.exposition import gauge
from apiserver.server import Server
from apiserver.serving_certificate import ServingCertificate
from apiserver.tls import CertificateError, make_context
from apiserver.workers import supervise
from storage.errors import StoreError
from storage.open import open_store

if TYPE_CHECKING:
    from apiserver.access import Access
    from apiserver.tls import ListenerContext
    from storage.etcd import EtcdConfig
    from storage.store import LoadableStore

_log = logging.getLogger(__name__)

KUBECONFIG = "kubeconfig"
_ANY_ADDRESS = ("", "0.0.0.0", "::")


async def serve(
    config: Config,
    store: Path | Literal["memory"] | EtcdConfig,
    *,
    ready: Callable[[str, Path], None],
    bound: socket.socket | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, or until the store has failed for good.

    `ready` is called once, with the address and the kubeconfig, when everything can be read.
    `bound` is a socket that has the address already, shared with other processes that serve the same.

    Raises:
        StartupError: something that was given cannot be used.
        StoreError: the store has failed, so that only opening it again can help; what was asked for until then has been answered.
    """
    kinds = load_kinds(config.kinds)
    own = _own_certificates(config)
    access = make_access(config, own.authority.certificate)
    tls = _tls_context(config, own, access)
    listener = Server(config.listen, tls, bound=bound)
    address = _address(config, listener.bind())
    try:
        opened = await open_store(store)
    except StoreError as error:
        raise StartupError(str(error)) from error
    try:
        # Not before the store is ours: another server in this folder would lose its kubeconfig.
        try:
            kubeconfig = _write_kubeconfig(config, address, own)
        except OSError as error:
            raise StartupError(f"cannot write {config.data_dir / KUBECONFIG}: {error.strerror}") from error
        certificate = _serving_certificate(config, address, own, tls)
        ends = gauge(
            "clrk_serving_certificate_not_after_timestamp_seconds", "When the serving certificate ends.", lambda: certificate.not_after
        )
        upkeep_tasks = (certificate.run, heap.keep_trimmed, heap.keep_collected)
        app = build_app(config, opened, access, kinds, tasks=upkeep_tasks, metrics=(ends, *listener.metrics()))
        with _signals() as (stop, stop_now):
            async with app.running():
                await listener.start(app.handle, app.turns)
                announcing = asyncio.create_task(_announce(app, lambda: ready(address, kubeconfig)), name="announce")
                upkeep = asyncio.create_task(_keep_up(opened, stop), name="upkeep")
                try:
                    await stop.wait()
                finally:
                    for task in (announcing, upkeep):
                        task.cancel()
                    await asyncio.wait([announcing, upkeep])
                await _end(app, listener, config, stop_now)
        if not upkeep.cancelled():
            upkeep.result()
    finally:
        await opened.close()


def serve_in_workers(
    config: Config,
    store: EtcdConfig,
    count: int,
    *,
    run: Callable[[Coroutine[Any, Any, None]], int],
    ready: Callable[[str, Path], None],
) -> int:
    """Serve by so many processes that share the address, until SIGTERM or SIGINT; return the exit code.

    Each is a replica with a cache of its own, and takes what connections come while it has time for them. `run` runs one of them to its
    end, and returns its exit code; `ready` is called once, when all of them can be used.

    Raises:
        StartupError: something that was given cannot be used.
    """
    load_kinds(config.kinds)
    _own_certificates(config)  # by one, for all
    bound = bind(config.listen)
    address = _address(config, int(bound.getsockname()[1]))
    return supervise(
        count,
        lambda tell: run(serve(config, store, ready=lambda *_: tell(), bound=bound)),
        ready=lambda: ready(address, config.data_dir / KUBECONFIG),
        # From then on connections wait for those workers only that still take some.
        stopping=bound.close,
    )


async def _announce(app: App, ready: Callable[[], None]) -> None:
    await app.wait_ready()
    heap.settle()
    ready()
    await app.prepare_writes()


async def _keep_up(store: LoadableStore, stop: asyncio.Event) -> None:
    """Keep the store up, and have the server end when that fails: whoever started it starts it again, and may find the store sound."""
    try:
        await store.upkeep()
    except Exception as error:
        _log.critical("the server ends: %s", error)
        stop.set()
        raise


async def _end(app: App, listener: Server, config: Config, stop_now: asyncio.Event) -> None:
    ending = asyncio.create_task(_end_gently(app, listener, config), name="end")
    hurry = asyncio.create_task(stop_now.wait(), name="hurry")
    await asyncio.wait((ending, hurry), return_when=asyncio.FIRST_COMPLETED)
    for task in (ending, hurry):
        task.cancel()
    await asyncio.wait((ending, hurry))
    if not ending.cancelled():
        ending.result()


async def _end_gently(app: App, listener: Server, config: Config) -> None:
    app.drain()
    if config.shutdown_delay_seconds:
        await asyncio.sleep(config.shutdown_delay_seconds / 2)
        listener.part()
        await asyncio.sleep(config.shutdown_delay_seconds / 2)
    app.end_watches()
    await listener.stop(timeout_seconds=config.shutdown_timeout_seconds, accept_until_quiet=config.shutdown_send_retry_after)


@contextmanager
def _signals() -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Events for the first and for the second SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    first, second = asyncio.Event(), asyncio.Event()

    def received() -> None:
        (second if first.is_set() else first).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, received)
    try:
        yield first, second
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _own_certificates(config: Config) -> Certificates:
    directory = config.data_dir / "pki"
    try:
        config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return prepare_certificates(directory, _serving_names(config))
    except OSError as error:
        raise StartupError(f"cannot write to {directory}: {error.strerror}") from error


def _tls_context(config: Config, own: Certificates, access: Access) -> ListenerContext:
    given = config.tls
    certificate_file = given.cert_file or own.serving.certificate_file
    key_file = given.private_key_file or own.serving.key_file
    try:
        context = make_context(certificate_file, key_file, client_authorities=access.trust.certificates, http2=config.listen.http2)
    except CertificateError as error:
        raise StartupError(str(error)) from error

    def name_others() -> None:
        try:
            context.ask_for_client_certificates(access.trust.certificates)
        except CertificateError as error:
            _log.error("clients are not told of all authorities: %s", error)

    access.trust.on_change(name_others)
    return context


def _serving_certificate(config: Config, address: str, own: Certificates, tls: ListenerContext) -> ServingCertificate:
    given = config.tls

    def renew() -> None:
        leaves = renew_leaves(config.data_dir / "pki", own.authority, _serving_names(config))
        if leaves.admin.certificate != own.admin.certificate:
            _write_kubeconfig(config, address, leaves)

    try:
        return ServingCertificate(
            tls, given.cert_file or own.serving.certificate_file, given.private_key_file or own.serving.key_file, renew=renew
        )
    except CertificateError as error:
        raise StartupError(str(error)) from error


def _write_kubeconfig(config: Config, address: str, own: Certificates) -> Path:
    """Raises OSError when the data directory cannot be written."""
    path = config.data_dir / KUBECONFIG
    # A certificate that was brought along is what clients must trust; who signed it need not be known here.
    authority_file = config.tls.cert_file or own.authority.certificate_file
    write_kubeconfig(path, server=address, authority_pem=authority_file.read_bytes(), client=own.admin)
    return path


def _serving_names(config: Config) -> list[str]:
    bind_address = config.listen.bind_address
    names = ["localhost", "127.0.0.1", "::1", socket.gethostname().lower(), *config.tls.names]
    if bind_address not in _ANY_ADDRESS:
        names.append(bind_address)
    return list(dict.fromkeys(names))


def _address(config: Config, port: int) -> str:
    return f"https://{_reachable_host(config.listen.bind_address)}:{port}"


def _reachable_host(bind_address: str) -> str:
    host = "127.0.0.1" if bind_address in _ANY_ADDRESS else bind_address
    return f"[{host}]" if ":" in host else host
