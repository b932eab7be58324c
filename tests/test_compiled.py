"""The tests say which build they are run against: the plain modules of this checkout, or those of `tests/tools/build compiled`."""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETUP = runpy.run_path(str(ROOT / "setup.py"), run_name="read")
MODULES = sorted({".".join(file.relative_to(ROOT).with_suffix("").parts) for pattern in SETUP["COMPILED"] for file in ROOT.glob(pattern)})
SUFFIX = ".so" if os.environ.get("CLRK_TESTED") == "compiled" else ".py"


@pytest.mark.parametrize("pattern", SETUP["COMPILED"])
def test_every_name_in_the_list_is_of_a_module(pattern: str) -> None:
    assert list(ROOT.glob(pattern))


@pytest.mark.parametrize("name", [module for module in MODULES if not module.endswith("__init__")])
def test_a_module_is_of_the_build_that_is_tested(name: str) -> None:
    importlib.import_module(name)
    file = sys.modules[name].__file__
    assert file is not None
    assert Path(file).suffix == SUFFIX


def test_nobody_without_mypy_is_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLRK_COMPILE", "0")
    assert SETUP["extensions"]() == []
    monkeypatch.setenv("CLRK_COMPILE", "1")
    monkeypatch.setitem(sys.modules, "mypyc.build", None)
    with pytest.raises(SystemExit, match="CLRK_COMPILE=1 needs mypy"):
        SETUP["extensions"]()
