"""The command line. Turns flags into a Config, runs one thing, and turns what went wrong into one line and an exit code."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar

import click

if TYPE_CHECKING:
    from storage.etcd import EtcdConfig

_Command = TypeVar("_Command", bound=Callable[..., object])

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)
_OWN_KINDS = ("apiserver.kinds",)


class _OneLine(click.ClickException):
    """A failure, told in one line."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"clrk-apiserver: {self.format_message()}", err=True)


@dataclass(slots=True)
class StoreFlags:
    """Which store is meant: filled in by the options that several commands share."""

    data_dir: Path = Path(".clrk")
    etcd_servers: str = ""
    etcd_cafile: Path | None = None
    etcd_certfile: Path | None = None
    etcd_keyfile: Path | None = None
    etcd_prefix: str = ""
    etcd_user: str = ""
    etcd_password_file: Path | None = None

    def location(self) -> Path | EtcdConfig:
        """Where `storage.open` finds the store. A password comes from a file or the environment: everybody can see a flag."""
        if not self.etcd_servers:
            return self.data_dir
        from storage.etcd import EtcdConfig

        try:
            return EtcdConfig(
                endpoints=tuple(part if "://" in part else f"http://{part}" for part in self.etcd_servers.split(",") if part),
                prefix=self.etcd_prefix,
                ca_file=self.etcd_cafile,
                cert_file=self.etcd_certfile,
                key_file=self.etcd_keyfile,
                user=self.etcd_user or None,
                password=self._password() if self.etcd_user else None,
            )
        except ValueError as error:
            raise _OneLine(str(error)) from error

    def _password(self) -> str | None:
        if self.etcd_password_file is None:
            return os.environ.get("CLRK_ETCD_PASSWORD")
        try:
            return self.etcd_password_file.read_text().rstrip("\r\n")
        except OSError as error:
            raise _OneLine(f"cannot read {self.etcd_password_file}: {error.strerror}") from error


def _remember(context: click.Context, option: click.Parameter, value: object) -> None:
    assert option.name is not None
    setattr(context.ensure_object(StoreFlags), option.name, value)


def _store_option(flag: str, **settings: Any) -> Callable[[_Command], _Command]:
    return click.option(flag, expose_value=False, callback=_remember, **settings)


def _store_options(command: _Command) -> _Command:
    """Add the options that say which store is meant; the command gets them as a StoreFlags."""
    for option in reversed(
        (
            _store_option(
                "--data-dir",
                type=_FOLDER,
                default=Path(".clrk"),
                show_default=True,
                help="Folder of the embedded store, the certificates and the kubeconfig.",
            ),
            _store_option("--etcd-servers", default="", metavar="URL,…", help="Use this etcd instead of the embedded store."),
            _store_option("--etcd-cafile", type=_FILE, help="Authorities that may have signed etcd's certificates."),
            _store_option("--etcd-certfile", type=_FILE, help="Client certificate for etcd."),
            _store_option("--etcd-keyfile", type=_FILE, help="Key of the client certificate for etcd."),
            _store_option("--etcd-prefix", default="", help="Put before every key, so that several servers can share an etcd."),
            _store_option("--etcd-user", default="", envvar="CLRK_ETCD_USER", show_envvar=True, help="User for etcd's own authentication."),
            _store_option("--etcd-password-file", type=_FILE, help="File with that user's password; or set CLRK_ETCD_PASSWORD."),
        )
    ):
        command = option(command)
    return click.pass_obj(command)  # type: ignore[return-value]


_KINDS = click.option(
    "--kinds",
    multiple=True,
    default=_OWN_KINDS,
    show_default=True,
    metavar="PACKAGE",
    help="Python package whose kinds are served; may be given several times.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="clrk-apiserver")
def main() -> None:
    """A Kubernetes API server for WorkerPools and LocalWorkers, or for kinds of your own."""


@main.command()
@_store_options
@click.option("--secure-port", type=click.IntRange(0, 65535), default=6443, show_default=True, help="Port for HTTPS; 0: any that is free.")
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 or :: for all of them.")
@click.option("--tls-cert-file", type=_FILE, help="Serving certificate, with those that lead to its authority. Default: made here.")
@click.option("--tls-private-key-file", type=_FILE, help="Key of the serving certificate.")
@click.option("--client-ca-file", type=_FILE, help="Authorities whose client certificates are accepted, beside the server's own.")
@_KINDS
@click.option(
    "--shutdown-delay", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="Go on accepting after the signal to stop."
)
@click.option("--access-log", type=click.Choice(["json", "plain"]), help="Log every request on standard error.")
@click.option("-v", "--verbose", count=True, help="Log more; twice: everything.")
def serve(
    flags: StoreFlags,
    secure_port: int,
    bind_address: str,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    client_ca_file: Path | None,
    kinds: tuple[str, ...],
    shutdown_delay: float,
    access_log: Literal["json", "plain"] | None,
    verbose: int,
) -> None:
    """Serve until SIGTERM or SIGINT. The second signal does not wait for running requests."""
    from apiserver.config import Config, ListenConfig, StartupError, TLSConfig
    from apiserver.serve import serve as serve_until_stopped

    _log_to_stderr(verbose)
    store = flags.location()
    try:
        config = Config(
            data_dir=flags.data_dir,
            listen=ListenConfig(bind_address=bind_address, secure_port=secure_port),
            tls=TLSConfig(cert_file=tls_cert_file, private_key_file=tls_private_key_file, client_ca_file=client_ca_file),
            kinds=_importable(kinds),
            store_name="etcd" if flags.etcd_servers else "sqlite",
            shutdown_delay_seconds=shutdown_delay,
            access_log=access_log or "",
        )
        _run(serve_until_stopped(config, store, ready=_say_ready))
    except StartupError as error:
        raise _OneLine(str(error)) from error


def _say_ready(address: str, kubeconfig: Path) -> None:
    click.echo(f"Serving on {address}; use it with: export KUBECONFIG={kubeconfig}")


def _importable(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Let packages be found in the folder in which the server is started, as `python -m` does."""
    sys.path.insert(0, str(Path.cwd()))
    return kinds


def _log_to_stderr(verbose: int) -> None:
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    access = logging.StreamHandler()
    access.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("apiserver.access")
    logger.addHandler(access)
    logger.propagate = False
    logger.setLevel(logging.INFO)


def _run(work: Coroutine[Any, Any, None]) -> None:
    import uvloop

    uvloop.run(work)


if __name__ == "__main__":
    main()
