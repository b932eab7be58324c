"""The flags that several commands share, and how a command fails: with one line."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from apiserver.meta.time import parse_duration

if TYPE_CHECKING:
    from storage.etcd import EtcdConfig

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class _Duration(click.ParamType[float]):
    """A duration as Go's flags take it; in seconds inside."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it, or say what is wrong with it."""
        if not isinstance(value, str):
            return float(value)
        try:
            seconds = parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds < 0:
            self.fail(f"{value} is negative", param, ctx)
        return seconds


DURATION = _Duration()
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)


class OneLine(click.ClickException):
    """A failure, told in one line; the exit code is 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Write it to standard error."""
        click.echo(f"clrk-apiserver: {' '.join(self.format_message().split())}", err=True)


class Unusable(OneLine):
    """What was given cannot be used, and nothing has been done; the exit code is 2."""

    exit_code = 2


class Commands(click.Group):
    """Commands that say in one line, too, what is wrong with their flags."""

    def make_context(self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any) -> click.Context:
        """Read the flags before the command."""
        with _in_one_line():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Read the command and its flags, and run it."""
        with _in_one_line():
            return super().invoke(ctx)


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else "clrk-apiserver"
        raise Unusable(f"{error.format_message().rstrip('.')}; see `{command} --help`") from error


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
        """Where `storage.open` finds the store."""
        return self.etcd() if self.etcd_servers else self.data_dir

    def etcd(self) -> EtcdConfig:
        """The etcd that the flags name."""
        from storage.etcd import EtcdConfig

        for file in (self.etcd_cafile, self.etcd_certfile, self.etcd_keyfile):
            if file is not None:
                _check_pem(file)
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
            raise Unusable(str(error)) from error

    def _password(self) -> str | None:
        # From a file or from the environment: everybody on the machine can see a flag.
        if self.etcd_password_file is None:
            return os.environ.get("CLRK_ETCD_PASSWORD")
        try:
            return self.etcd_password_file.read_text().rstrip("\r\n")
        except OSError as error:
            raise Unusable(f"cannot read {self.etcd_password_file}: {error.strerror}") from error


def _check_pem(file: Path) -> None:
    """See that there is something to prove or to trust: the store would only say that etcd cannot be reached, and try on."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise Unusable(f"cannot read {file}: {error.strerror}") from error
    if b"-----BEGIN " not in content:
        raise Unusable(f"{file} holds no certificate or key in PEM")


def _remember(context: click.Context, option: click.Parameter, value: object) -> None:
    assert option.name is not None
    setattr(context.ensure_object(StoreFlags), option.name, value)


def _option(flag: str, **settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(flag, expose_value=False, callback=_remember, **settings)


_OPTIONS = (
    _option("--data-dir", type=FOLDER, default=Path(".clrk"), show_default=True, help="Folder of the embedded store and the kubeconfig."),
    _option("--etcd-servers", default="", metavar="URL,…", help="Use this etcd instead of the embedded store."),
    _option("--etcd-cafile", type=FILE, help="Authorities that may have signed etcd's certificates."),
    _option("--etcd-certfile", type=FILE, help="Client certificate for etcd."),
    _option("--etcd-keyfile", type=FILE, help="Key of the client certificate for etcd."),
    _option("--etcd-prefix", default="", help="Put before every key, so that several servers can share an etcd."),
    _option("--etcd-user", default="", envvar="CLRK_ETCD_USER", show_envvar=True, help="User for etcd's own authentication."),
    _option("--etcd-password-file", type=FILE, help="File with that user's password; or set CLRK_ETCD_PASSWORD."),
)


def store_options(command: Callable[Concatenate[StoreFlags, _Parameters], None]) -> Callable[_Parameters, None]:
    """Add the options that say which store is meant; the command gets them as a StoreFlags."""
    with_options: Callable[..., Any] = command
    for option in reversed(_OPTIONS):
        with_options = option(with_options)
    return click.pass_obj(with_options)


def run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine to its end on a loop of its own."""
    import uvloop

    return uvloop.run(work)
