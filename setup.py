"""Compiles some modules when CLRK_COMPILE=1 is set; without it there is nothing to be built, and pyproject.toml says everything.

The modules are those that do the arithmetic of writes and of HTTP/2, without waiting for anything. Compiled or not, they do the same:
mypyc takes the very sources that Python runs, and checks at run time what their annotations promise. See
docs/decisions/0014-the-arithmetic-may-be-compiled.md.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

COMPILED = (
    "apiserver/apply/*.py",
    "apiserver/meta/validation.py",
    "apiserver/registry/stored_object.py",
    "apiserver/registry/strategy.py",
    "apiserver/registry/scaling.py",
    "http2/*.py",
    "openapi/json_values.py",
    "openapi/normalize.py",
    "openapi/object_meta.py",
    "openapi/*_rules.py",
    "openapi/ratcheting.py",
    "openapi/structural.py",
    "openapi/validate.py",
    "storage/snapshot.py",
)


def extensions() -> list[Extension]:
    """What is to be compiled: nothing, when nobody has asked for it."""
    if os.environ.get("CLRK_COMPILE") != "1":
        return []
    try:
        from mypyc.build import mypycify
    except ImportError:
        sys.exit("CLRK_COMPILE=1 needs mypy and what pyproject.toml depends on: install them first, and build with --no-build-isolation")
    files = sorted(str(file) for pattern in COMPILED for file in Path().glob(pattern))
    compiled: list[Extension] = mypycify(files, opt_level="2", debug_level="0", only_compile_paths=files)
    return compiled


if __name__ == "__main__":
    setup(ext_modules=extensions())
