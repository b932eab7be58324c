"""The docstrings that stand under the fields of classes, read from the source of their modules.

pydantic can do that itself (`use_attribute_docstrings`), but takes each class apart on its own while its module is imported: a tenth of the
time that a server takes to start. Here a module is parsed once, when its first class is asked for.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache


def docstring(owner: type, field: str) -> str:
    """Return the docstring under the annotation of a field in the class, or in the nearest of its bases that has one; "" for none."""
    for base in owner.__mro__:
        if field in inspect.get_annotations(base):
            return _of_module(base.__module__).get(base.__qualname__, {}).get(field, "")
    return ""


@lru_cache(maxsize=64)
def _of_module(name: str) -> Mapping[str, Mapping[str, str]]:
    try:
        return dict(_classes(ast.parse(inspect.getsource(sys.modules[name])), ""))
    except (KeyError, OSError, TypeError):
        # A class that was made up at run time, or one without source: nothing is said about it.
        return {}


def _classes(node: ast.AST, outer: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The docstrings of all classes below a node, by their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield outer + child.name, _fields(child)
            yield from _classes(child, f"{outer}{child.name}.")
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _classes(child, f"{outer}{child.name}.<locals>.")
        elif isinstance(child, ast.stmt):
            yield from _classes(child, outer)


def _fields(node: ast.ClassDef) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for statement, after in zip(node.body, node.body[1:], strict=False):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and isinstance(after, ast.Expr)):
            continue
        if isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            found[statement.target.id] = inspect.cleandoc(after.value.value)
    return found
