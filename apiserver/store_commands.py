"""`clrk-apiserver store …`: copy what is stored, and forget its past. The server need not run, and for a backup may run."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from apiserver.flags import FILE, OneLine, StoreFlags, Unusable, run, store_options
from storage.errors import KeyExists, StoreError

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from storage.transfer import OnProgress


@click.group()
def store() -> None:
    """Back up, restore, move or compact the store."""
    # Filling an etcd begins a new history there, of which servers are warned; what keeps a command from its work is told by its one line.
    logging.getLogger("storage").setLevel(logging.ERROR)


@store.command()
@click.argument("file", type=FILE)
@store_options
def backup(flags: StoreFlags, file: Path) -> None:
    """Write all objects into a new FILE, also while the server runs."""
    from storage import transfer

    revision = _with_progress("Backing up", lambda progress: transfer.backup(flags.location(), file, progress=progress))
    click.echo(f"{file} holds the objects as of revision {revision}.")


@store.command()
@click.argument("file", type=FILE)
@store_options
def restore(flags: StoreFlags, file: Path) -> None:
    """Fill an empty store from a backup FILE. Clients that watched the old one are told to list again."""
    from storage import transfer

    revision = _with_progress("Restoring", lambda progress: transfer.migrate(file, flags.location(), progress=progress))
    click.echo(f"Restored; the store goes on from revision {revision}.")


@store.command()
@click.option("--to", "target", type=click.Choice(["etcd", "sqlite"]), required=True, help="Which of the two is filled; it must be empty.")
@store_options
def migrate(flags: StoreFlags, target: Literal["etcd", "sqlite"]) -> None:
    """Move all objects between the embedded store (--data-dir) and etcd (--etcd-servers).

    Stop the servers first: what they write meanwhile is not moved.
    """
    from storage import transfer

    if not flags.etcd_servers:
        raise Unusable("--etcd-servers says which etcd is meant")
    embedded, etcd = flags.data_dir, flags.etcd()
    ends = (embedded, etcd) if target == "etcd" else (etcd, embedded)
    revision = _with_progress("Moving", lambda progress: transfer.migrate(*ends, exclusive=True, progress=progress))
    click.echo(f"Moved; the store goes on from revision {revision}.")


@store.command()
@store_options
def compact(flags: StoreFlags) -> None:
    """Forget what was overwritten or deleted. The embedded store must not be served meanwhile."""
    revision = _told(_compact(flags))
    click.echo(f"Nothing older than revision {revision} is kept.")


async def _compact(flags: StoreFlags) -> int:
    from storage.open import open_store

    opened = await open_store(flags.location())
    try:
        revision = await opened.current_revision()
        await opened.compact(revision)
        return revision
    finally:
        await opened.close()


def _with_progress(label: str, copy: Callable[[OnProgress | None], Coroutine[Any, Any, int]]) -> int:
    """Run a copy under a bar on standard error, which is there as soon as it is known how much there is, and on terminals only."""
    if not sys.stderr.isatty():
        return _told(copy(None))
    with ExitStack() as shown:
        bar: ProgressBar[int] | None = None

        def progress(done: int, total: int) -> None:
            nonlocal bar
            if bar is None:
                bar = shown.enter_context(click.progressbar(length=total, label=label, file=sys.stderr, show_pos=True))
            bar.update(done - bar.pos)

        return _told(copy(progress))


def _told(work: Coroutine[Any, Any, int]) -> int:
    try:
        return run(work)
    except KeyExists as error:
        raise OneLine("the store that would be filled is not empty") from error
    except StoreError as error:
        raise OneLine(str(error)) from error
    except OSError as error:
        raise OneLine(f"{error.filename}: {error.strerror}" if error.strerror else str(error)) from error
