"""Kinds are found in a package, ours or anybody's, and what cannot be served is told by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from apiserver.kinds import KindError, load

MakePackage = Callable[..., str]

THING = """
    from typing import ClassVar
    from apiserver.meta.resource import Model, Resource

    class ThingSpec(Model):
        text: str

    class Thing(Resource):
        group: ClassVar[str] = "things.example"
        version: ClassVar[str] = "v1"
        plural: ClassVar[str] = "things"
        spec: ThingSpec
"""


@pytest.fixture
def make_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakePackage]:
    """Write a package of these modules outside of the repository."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)

    def make(name: str, **modules: str) -> str:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(dedent(text))
        return name

    yield make
    for added in set(sys.modules) - before:
        del sys.modules[added]


def test_our_own_kinds_are_found_by_being_there() -> None:
    assert [(kind.group, kind.plural) for kind in load("apiserver.kinds")] == [
        ("clrk.apoxy.dev", "workerpools"),
        ("worker.saved.sh", "localworkers"),
    ]


def test_a_package_outside_of_the_repository_is_served(make_package: MakePackage) -> None:
    name = make_package("outside", thing=THING, uses_it="from outside.thing import Thing\n")
    kinds = load("apiserver.kinds", name)
    assert [kind.kind for kind in kinds] == ["WorkerPool", "Thing", "LocalWorker"]
    assert load(name, name, f"{name}.thing") == load(name) or len(load(name, f"{name}.thing")) == 1


def test_a_base_class_is_no_kind(make_package: MakePackage) -> None:
    base = "from apiserver.meta.resource import Resource\nclass _Base(Resource):\n    pass\n"
    assert len(load(make_package("with_base", base=base, thing=THING))) == 1


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        pytest.param({}, r"^package wrong holds no kind: no public class below apiserver\.meta\.resource\.Resource$", id="no kind"),
        pytest.param({"bad": "import nowhere"}, r"^package wrong cannot be imported: ModuleNotFoundError: .*nowhere", id="import fails"),
        pytest.param({"bad": "1 +"}, r"^package wrong cannot be imported: SyntaxError: ", id="syntax"),
        pytest.param(
            {"a": THING, "b": THING}, r"^wrong\.a\.Thing and wrong\.b\.Thing both want to be things\.v1\.things\.example$", id="twins"
        ),
        pytest.param({"a": THING.replace('"v1"', '"1"')}, r"^wrong\.a\.Thing cannot be served: ", id="unservable"),
    ],
)
def test_what_cannot_be_served_is_told(make_package: MakePackage, modules: dict[str, str], message: str) -> None:
    with pytest.raises(KindError, match=message):
        load(make_package("wrong", **modules))


def test_a_package_that_does_not_exist_is_told() -> None:
    with pytest.raises(KindError, match=r"^package no\.such\.package cannot be imported: ModuleNotFoundError: No module named 'no'$"):
        load("no.such.package")
