"""The reference pages are what the code says, and leave nothing out."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from pathlib import Path

import click
import pytest

import apiserver
import storage
from apiserver.__main__ import main
from apiserver.flags import StoreFlags
from tests.docs import make_reference, settings_page
from tests.docs.make_reference import FOLDER, pages

PAGES = dict(pages())


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_a_page_is_fresh(file: Path) -> None:
    assert file.read_text() == PAGES[file], f"{file.name} is not what the code says: run `make docs` (python -m tests.docs.make_reference)"


def test_there_is_no_page_of_something_that_is_gone() -> None:
    assert set(FOLDER.iterdir()) == set(PAGES)


def test_the_pages_are_written_where_they_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_reference, "FOLDER", tmp_path / "reference")
    make_reference.main()
    assert {file.name: file.read_text() for file in (tmp_path / "reference").iterdir()} == {
        file.name: text for file, text in PAGES.items()
    }


@pytest.mark.parametrize(
    "command", [pytest.param(command, id=path) for path, command in settings_page.commands(main)]
)
def test_every_flag_says_what_it_is_for(command: click.Command) -> None:
    page = PAGES[FOLDER / "settings.md"]
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{option.opts[0]} has no help"
            assert all(f"`{flag}`" in page for flag in option.opts)


@pytest.mark.parametrize("settings", settings_page.configurations(), ids=lambda settings: settings.__name__)
def test_every_setting_is_documented(settings: type) -> None:
    """A field that is itself a configuration may leave it to that one's own docstring."""
    told = settings_page.docstrings(settings)
    hints = inspect.get_annotations(settings, eval_str=True)
    for field in dataclasses.fields(settings):
        assert told.get(field.name) or dataclasses.is_dataclass(hints[field.name]), f"{settings.__name__}.{field.name} says nothing"
    assert inspect.getdoc(settings)


def test_no_configuration_is_left_out() -> None:
    names = ("Config", "Limits", "Settings")
    defined = {
        value
        for package in (apiserver, storage)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not module.name.endswith("__main__")
        for name, value in vars(importlib.import_module(module.name)).items()
        if dataclasses.is_dataclass(value) and isinstance(value, type) and name.endswith(names)
    }
    assert defined == set(settings_page.configurations())
    assert StoreFlags not in defined
