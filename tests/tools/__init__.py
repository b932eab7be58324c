"""The real programs that tests run against: where they are, building them when they are missing."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

_BUILD = Path(__file__).with_name("build")


class ToolError(RuntimeError):
    """A program cannot be had; says what was tried and what came of it."""


@cache
def path(name: str) -> Path:
    """Return the file of a program that `tests/tools/build` knows by `name`. The first time, building it may take minutes.

    Raises:
        ToolError: it is not there and cannot be built.
    """
    done = subprocess.run([_BUILD, name], capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join(done.stderr.splitlines()[-15:])
        raise ToolError(f"`tests/tools/build {name}` failed with code {done.returncode}:\n{last}")
    return Path(done.stdout.strip())
