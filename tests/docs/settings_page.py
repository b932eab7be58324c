"""The reference page of all that can be chosen: the flags of the command, and the fields of the configurations behind them.

Made from click's own description of the commands and from the docstrings under the fields. The classes are found from the roots on, so
that a new field, or a new class in a field, is on the page by itself.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import math
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_type_hints

import click

from apiserver.__main__ import main
from apiserver.config import Config
from apiserver.flags import StoreFlags
from storage.etcd import EtcdConfig
from storage.sqlite import SqliteConfig
from tests.docs.markdown import code, table, text

ROOTS: Final[tuple[type[Any], ...]] = (Config, SqliteConfig, EtcdConfig)
"""The configurations that no other one holds."""


def page() -> str:
    """Return the page as Markdown."""
    parts = [
        "# Settings",
        "The flags come first. Behind them are frozen dataclasses, whose fields tell unit, default and the reason for it; those that no "
        "flag sets are for programs that embed the server, and for tests.",
        "## Flags",
        "### Which store",
        "Every command that opens a store takes these.",
        _options(next(command for path, command in commands(main) if path == "clrk-apiserver serve"), shared=True),
        *(part for path, command in commands(main) for part in _command(path, command)),
        "## Configuration",
        *(part for one in configurations() for part in _configuration(one)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def commands(command: click.Command, path: str = "clrk-apiserver") -> Iterator[tuple[str, click.Command]]:
    """Yield each command that does something, with all the words that call it."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name, below in command.commands.items():
        yield from commands(below, f"{path} {name}")


def configurations() -> list[type[Any]]:
    """Every class of settings: the roots, and those in their fields, in the order in which they are met."""
    found: list[type[Any]] = []
    waiting = list(ROOTS)
    while waiting:
        one = waiting.pop(0)
        if one not in found:
            found.append(one)
            waiting[:0] = [inner for inner in _hints(one).values() if dataclasses.is_dataclass(inner) and isinstance(inner, type)]
    return found


def docstrings(one: type[Any]) -> dict[str, str]:
    """The docstring under each field that has one."""
    [body] = ast.parse(textwrap.dedent(inspect.getsource(one))).body
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for statement, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and isinstance(after, ast.Expr):
            found[statement.target.id] = str(ast.literal_eval(after.value))
    return found


def _command(path: str, command: click.Command) -> Iterator[str]:
    yield f"### {path}"
    yield code(" ".join([path, *command.collect_usage_pieces(click.Context(command))]))
    yield text(command.help or "")
    yield _options(command, shared=False)


def _options(command: click.Command, *, shared: bool) -> str:
    """The options that say which store is meant, or all others."""
    store = {field.name for field in dataclasses.fields(StoreFlags)}
    chosen = [option for option in command.params if isinstance(option, click.Option) and (option.name in store) == shared]
    return table(("Flag", "Value", "Default", "Description"), (_option(option, click.Context(command)) for option in chosen))


def _option(option: click.Option, context: click.Context) -> tuple[str, str, str, str]:
    flags = " / ".join(map(code, [*option.opts, *option.secondary_opts]))
    takes = "" if option.is_flag or option.count else code(option.make_metavar(context))
    notes = [text(option.help or "")]
    if option.required:
        notes.append("**Required.**")
    if option.envvar:
        notes.append(f"Environment: {code(option.envvar)}.")
    return flags, takes, _option_default(option, context), " ".join(notes)


def _option_default(option: click.Option, context: click.Context) -> str:
    default = option.get_default(context)
    if option.secondary_opts and isinstance(default, bool):
        return code((option.opts if default else option.secondary_opts)[0])
    if option.count or default == "" or not isinstance(default, str | int | float | Path | tuple):
        return ""
    return code(", ".join(map(str, default)) if isinstance(default, tuple) else default)


def _configuration(one: type[Any]) -> Iterator[str]:
    told, hints = docstrings(one), _hints(one)
    yield f"### {one.__name__}"
    yield text(inspect.getdoc(one) or "")
    rows = []
    for field in dataclasses.fields(one):
        inner, description = hints[field.name], text(told.get(field.name, ""))
        if dataclasses.is_dataclass(inner) and isinstance(inner, type):
            rows.append((code(field.name), f"[{inner.__name__}](#{inner.__name__.lower()})", description))
        else:
            rows.append((code(field.name), _default(field.default), description))
    yield table(("Field", "Default", "Description"), rows)


def _default(value: object) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "no limit"
    if isinstance(value, str | tuple):
        return code(json.dumps(value, ensure_ascii=False))
    return code(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000 else value)


def _hints(one: type[Any]) -> dict[str, Any]:
    return get_type_hints(one, vars(sys.modules[one.__module__]))
