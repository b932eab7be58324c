"""The command line. Turns flags into a Config, runs one thing, and turns what went wrong into one line and an exit code."""

from __future__ import annotations

import asyncio
import logging
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from apiserver import heap
from apiserver.auth_flags import auth_options
from apiserver.flags import DURATION, FILE, FOLDER, Commands, OneLine, StoreFlags, Unusable, run, store_options
from apiserver.imports import import_libraries
from apiserver.log_format import JSONFormatter, LineFormatter
from apiserver.open_files import allow_many
from apiserver.store_commands import store

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from apiserver.check import Installation
    from apiserver.cluster.kubeconfig import Kubeconfig
    from apiserver.config import AuthConfig

_OWN_KINDS = ("apiserver.kinds",)
_DISTRIBUTION = "clrk-apiserver"
_SERVICE = "clrk-apiserver.clrk-system.svc"
_COUNT = click.IntRange(0)

_KINDS = click.option(
    "--kinds",
    multiple=True,
    default=_OWN_KINDS,
    show_default=True,
    metavar="PACKAGE",
    help="Python package whose kinds are served; may be given several times.",
)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="clrk-apiserver")
def main() -> None:
    """A Kubernetes API server for WorkerPools and LocalWorkers, or for kinds of your own."""


@main.command()
@store_options
@click.option("--secure-port", type=click.IntRange(0, 65535), default=6443, show_default=True, help="Port for HTTPS; 0: any that is free.")
@click.option(
    "--workers", type=click.IntRange(1), default=1, show_default=True, help="How many processes serve; more than one need an etcd."
)
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 or :: for all of them.")
@click.option("--disable-http2-serving", is_flag=True, help="Speak HTTP/1.1 only.")
@click.option("--tls-cert-file", type=FILE, help="Serving certificate, with those that lead to its authority. Default: made here.")
@click.option("--tls-private-key-file", type=FILE, help="Key of the serving certificate.")
@click.option(
    "--tls-san",
    multiple=True,
    default=(_SERVICE,),
    show_default=True,
    metavar="NAME",
    help="Name (or address) that the certificate made here carries beside this machine's; may be given several times.",
)
@click.option("--client-ca-file", type=FILE, help="Authorities whose client certificates are accepted, beside the server's own.")
@auth_options
@_KINDS
@click.option(
    "--enable-garbage-collector/--disable-garbage-collector",
    default=None,
    help="Whether kube-controller-manager collects garbage here, for which orphaning and foreground deletions wait. Default: unless alone.",
)
@click.option("--request-timeout", type=DURATION, default="1m0s", show_default=True, help="How long a request may take that is no watch.")
@click.option(
    "--min-request-timeout",
    type=click.IntRange(1),
    default=1800,
    show_default=True,
    metavar="SECONDS",
    help="How long a watch goes on at least that names no time-out; up to twice as long.",
)
@click.option(
    "--shutdown-delay-duration",
    type=DURATION,
    default="0s",
    show_default=True,
    help="Go on serving after the signal to stop, not ready, for as long as load balancers take to notice.",
)
@click.option(
    "--shutdown-send-retry-after",
    is_flag=True,
    help="While running requests finish, answer new ones with 429 and Retry-After instead of refusing connections.",
)
@click.option("--audit-policy-file", type=FILE, help="What the audit log holds: a Policy of audit.k8s.io/v1.")
@click.option("--audit-log-path", default="", metavar="FILE", help="Write the audit log there; - is standard output.")
@click.option("--audit-log-maxsize", type=_COUNT, default=0, metavar="MEGABYTES", help="Put the file aside at this size; 0: never.")
@click.option("--audit-log-maxbackup", type=_COUNT, default=0, help="How many files that were put aside are kept; 0: all.")
@click.option("--audit-log-maxage", type=_COUNT, default=0, metavar="DAYS", help="For how long they are kept; 0: for ever.")
@click.option("--audit-webhook-config-file", type=FILE, help="Send the audit log to the server of this kubeconfig.")
@click.option(
    "--audit-webhook-initial-backoff", type=DURATION, default="10s", show_default=True, help="How long to wait before it is tried again."
)
@click.option("--audit-webhook-batch-max-size", type=click.IntRange(1), default=400, show_default=True, help="How many events go together.")
@click.option(
    "--audit-webhook-batch-max-wait", type=DURATION, default="30s", show_default=True, help="How long an event waits for others to go with."
)
@click.option("--tracing-config-file", type=FILE, help="Send spans as this TracingConfiguration says; needs the extra `tracing`.")
@click.option("--access-log", type=click.Choice(["json", "plain"]), help="Log every request on standard error.")
@click.option(
    "--logging-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="json: one line of JSON each."
)
@click.option("-v", "--verbose", count=True, help="Log more; twice: everything.")
def serve(
    flags: StoreFlags,
    secure_port: int,
    workers: int,
    bind_address: str,
    disable_http2_serving: bool,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    tls_san: tuple[str, ...],
    client_ca_file: Path | None,
    auth: Callable[[], AuthConfig],
    kinds: tuple[str, ...],
    enable_garbage_collector: bool | None,
    request_timeout: float,
    min_request_timeout: int,
    shutdown_delay_duration: float,
    shutdown_send_retry_after: bool,
    audit_policy_file: Path | None,
    audit_log_path: str,
    audit_log_maxsize: int,
    audit_log_maxbackup: int,
    audit_log_maxage: int,
    audit_webhook_config_file: Path | None,
    audit_webhook_initial_backoff: float,
    audit_webhook_batch_max_size: int,
    audit_webhook_batch_max_wait: float,
    tracing_config_file: Path | None,
    access_log: Literal["json", "plain"] | None,
    logging_format: Literal["text", "json"],
    verbose: int,
) -> None:
    """Serve until SIGTERM or SIGINT. The second signal does not wait for running requests."""
    heap.look_away()
    allow_many()
    import_libraries()
    from apiserver.audit.file import AuditLogConfig
    from apiserver.audit.log import AuditConfig
    from apiserver.audit.webhook import AuditWebhookConfig
    from apiserver.config import Config, ListenConfig, StartupError, TLSConfig
    from apiserver.serve import serve as serve_until_stopped
    from apiserver.serve import serve_in_workers
    from storage.errors import StoreError

    _log_to_stderr(verbose, logging_format)
    location = flags.location()
    try:
        config = Config(
            data_dir=flags.data_dir,
            listen=ListenConfig(bind_address=bind_address, secure_port=secure_port, http2=not disable_http2_serving),
            tls=TLSConfig(cert_file=tls_cert_file, private_key_file=tls_private_key_file, client_ca_file=client_ca_file, names=tls_san),
            auth=auth(),
            kinds=_importable(kinds),
            enable_garbage_collector=enable_garbage_collector,
            store_name="etcd" if flags.etcd_servers else "sqlite",
            request_timeout_seconds=request_timeout,
            min_request_timeout_seconds=min_request_timeout,
            shutdown_delay_seconds=shutdown_delay_duration,
            shutdown_timeout_seconds=request_timeout,
            shutdown_send_retry_after=shutdown_send_retry_after,
            audit=AuditConfig(
                policy_file=audit_policy_file,
                log=AuditLogConfig(
                    path=audit_log_path,
                    maxsize_megabytes=audit_log_maxsize,
                    maxbackup=audit_log_maxbackup,
                    maxage_days=audit_log_maxage,
                ),
                webhook=AuditWebhookConfig(
                    config_file=audit_webhook_config_file,
                    initial_backoff_seconds=audit_webhook_initial_backoff,
                    batch_max_size=audit_webhook_batch_max_size,
                    batch_max_wait_seconds=audit_webhook_batch_max_wait,
                ),
            ),
            tracing_file=tracing_config_file,
            access_log=access_log or "",
        )
        if workers == 1:
            run(serve_until_stopped(config, location, ready=_say_ready))
        elif isinstance(location, Path):
            raise Unusable("the embedded store serves one process: for several --workers there must be --etcd-servers")
        else:
            sys.exit(serve_in_workers(config, location, workers, run=_run_worker, ready=_say_ready))
    except StartupError as error:
        raise Unusable(str(error)) from error
    except StoreError as error:
        raise OneLine(str(error)) from error


def _run_worker(work: Coroutine[Any, Any, None]) -> int:
    from apiserver.config import StartupError

    try:
        run(work)
    except StartupError as error:
        unusable = Unusable(str(error))
        unusable.show()
        return unusable.exit_code
    return 0


def _say_ready(address: str, kubeconfig: Path) -> None:
    click.echo(f"Serving on {address}; use it with: export KUBECONFIG={kubeconfig}")


def _importable(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Let packages be found in the folder in which the server is started, as `python -m` does."""
    sys.path.insert(0, str(Path.cwd()))
    return kinds


def _log_to_stderr(verbose: int, form: Literal["text", "json"]) -> None:
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    handler = logging.StreamHandler()
    handler.setFormatter(JSONFormatter() if form == "json" else LineFormatter())
    logging.basicConfig(level=level, handlers=[handler])
    access = logging.StreamHandler()
    access.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("apiserver.access")
    logger.addHandler(access)
    logger.propagate = False
    logger.setLevel(logging.INFO)


@main.command()
@_KINDS
@click.option("--format", "form", type=click.Choice(["v2", "v3"]), default="v2", show_default=True, help="OpenAPI 2.0, or 3.0 by path.")
def openapi(kinds: tuple[str, ...], form: Literal["v2", "v3"]) -> None:
    """Print the OpenAPI document of the kinds, without a server."""
    from apiserver.kinds import KindError, load
    from openapi import v2, v3

    try:
        resources = [kind.published for kind in load(*_importable(kinds))]
    except KindError as error:
        raise Unusable(str(error)) from error
    title, number = _DISTRIBUTION, version(_DISTRIBUTION)
    if form == "v2":
        click.echo(v2.document(resources, title=title, version=number).content)
        return
    documents = v3.documents(resources, title=title, version=number)
    click.echo(b"{" + b",".join(b'"%s":%s' % (name.encode(), document.content) for name, document in documents.items()) + b"}")


@main.command()
@click.option("--data-dir", type=FOLDER, default=Path(".clrk"), show_default=True, help="Where the server has made its authority.")
@click.option("--ca-file", type=FILE, help="Authorities that may have signed the serving certificate, when it was brought along.")
@click.option("--without-ca", is_flag=True, help="Leave the authorities of the APIServices to be filled in, as cert-manager does.")
@click.option("--namespace", default="clrk-system", show_default=True, help="Where the Service and the ServiceAccount are.")
@click.option("--external-name", default="", metavar="HOST", help="The server runs outside of the cluster, on this host.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the Service. Default: 443; with --external-name 6443.")
@click.option("--user", default="", help="The user as whom the server asks kube-apiserver. Default: its ServiceAccount.")
@_KINDS
def manifests(
    data_dir: Path,
    ca_file: Path | None,
    without_ca: bool,
    namespace: str,
    external_name: str,
    port: int | None,
    user: str,
    kinds: tuple[str, ...],
) -> None:
    """Print what a cluster needs to find this server, for `kubectl apply --server-side -f -`.

    That is: a Service, an APIService for each group version, what the server may ask, and what users may do by the roles view, edit, admin.
    """
    from apiserver.kinds import KindError, load
    from apiserver.manifests import Registration
    from apiserver.manifests import manifests as manifests_of

    authority_file = ca_file or data_dir / "pki" / "ca.crt"
    try:
        ca_bundle = b"" if without_ca else authority_file.read_bytes()
        served = load(*_importable(kinds))
    except OSError as error:
        raise Unusable(f"cannot read {authority_file}: {error.strerror}; a server makes it when it starts, or see --ca-file") from error
    except KindError as error:
        raise Unusable(str(error)) from error
    port = port or (6443 if external_name else 443)
    registration = Registration(namespace=namespace, external_name=external_name, port=port, user=user, ca_bundle=ca_bundle)
    click.echo(manifests_of(served, registration), nl=False)


@main.command()
@click.option("--kubeconfig", type=FILE, envvar="KUBECONFIG", required=True, show_envvar=True, help="Of an administrator of the cluster.")
@click.option("--namespace", default="clrk-system", show_default=True, help="Where the ServiceAccount is.")
@click.option("--user", default="", help="The user as whom the server asks kube-apiserver. Default: its ServiceAccount.")
@click.option("--address", default="", metavar="HOST:PORT", help="Where the server can be reached from here, as by `kubectl port-forward`.")
@_KINDS
def check(kubeconfig: Path, namespace: str, user: str, address: str, kinds: tuple[str, ...]) -> None:
    """Say why kube-apiserver does not reach this server; the exit code is 1 when something is wrong."""
    from apiserver.check import Installation
    from apiserver.cluster.client import ClusterError
    from apiserver.cluster.kubeconfig import KubeconfigError, read_kubeconfig
    from apiserver.kinds import KindError, load
    from apiserver.manifests import service_account

    groups: tuple[str, ...] = ("system:authenticated",)
    if not user:
        user, groups = service_account(namespace)
    try:
        api_services = tuple(dict.fromkeys(f"{kind.version}.{kind.group}" for kind in load(*_importable(kinds))))
        installation = Installation(api_services=api_services, user=user, groups=groups, address=address)
        found = run(_faults(read_kubeconfig(kubeconfig), installation))
    except (KubeconfigError, KindError) as error:
        raise Unusable(str(error)) from error
    except ClusterError as error:
        raise OneLine(str(error)) from error
    for fault in found or ("Nothing is wrong.",):
        click.echo(fault)
    if found:
        raise SystemExit(1)


async def _faults(config: Kubeconfig, installation: Installation) -> list[str]:
    from apiserver.check import faults
    from apiserver.cluster.client import ClusterClient

    client = ClusterClient(config)
    closing = asyncio.create_task(client.run(), name="client")
    try:
        return [fault async for fault in faults(client, installation)]
    finally:
        closing.cancel()
        await asyncio.wait([closing])


main.add_command(store)


if __name__ == "__main__":
    main()
