"""The tests say which build they are run against: the plain modules of this checkout, or those of `tests/tools/build compiled`."""

from __future__ import annotations

import importlib
import os
import runpy
import subprocess
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


def outcomes(path: str) -> list[str]:
    """What comes of some random writes with the packages on this path."""
    command = [sys.executable, "-m", "tests.random_writes", "1", "1500"]
    environment = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": path}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()


def test_the_same_comes_of_random_writes_as_in_the_plain_build() -> None:
    """Whatever a client sends: each annotation that does not hold would be another outcome, and a 500."""
    plain = outcomes(str(ROOT))
    assert outcomes(os.environ["PYTHONPATH"] if SUFFIX == ".so" else str(ROOT)) == plain
    stored = [line for line in plain if '"kind":"WorkerPool","metadata":{' in line]
    assert 300 < len(stored) < len(plain) - 300
