"""The kinds that this server brings, one file each, and the loader that finds them and those of other packages.

A kind is found because its module is in the package: nothing has to be registered or listed anywhere.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType

from apiserver.meta.resource import Resource, ResourceKind, describe


class KindError(Exception):
    """A package cannot be served; the text says which, and why."""


def load(*packages: str) -> tuple[ResourceKind, ...]:
    """Describe every kind that is defined in these packages (dotted names) and in the modules below them, ordered by group and plural.

    Classes that a module only imports are not its kinds, and neither are classes whose name begins with an underscore: they are bases.

    Raises:
        KindError: a package cannot be imported, holds no kind, holds one that cannot be served, or two kinds share an address.
    """
    kinds: dict[tuple[str, str, str], ResourceKind] = {}
    for package in packages:
        found = [_describe(model) for module in _modules(package) for model in _models(module)]
        if not found:
            raise KindError(f"package {package} holds no kind: no public class below apiserver.meta.resource.Resource")
        for kind in found:
            address = (kind.group, kind.version, kind.plural)
            other = kinds.setdefault(address, kind)
            if other.model is not kind.model:
                raise KindError(f"{_name(other.model)} and {_name(kind.model)} both want to be {kind.plural}.{kind.version}.{kind.group}")
    return tuple(kinds[address] for address in sorted(kinds))


def _modules(package: str) -> Iterator[ModuleType]:
    try:
        module = importlib.import_module(package)
        yield module
        for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{package}.", onerror=_reraise):
            yield importlib.import_module(found.name)
    except Exception as error:
        raise KindError(f"package {package} cannot be imported: {type(error).__name__}: {error}") from error


def _reraise(name: str) -> None:
    importlib.import_module(name)


def _models(module: ModuleType) -> list[type[Resource]]:
    return [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, Resource)
        and value is not Resource
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]


def _describe(model: type[Resource]) -> ResourceKind:
    try:
        return describe(model)
    except TypeError as error:
        raise KindError(f"{_name(model)} cannot be served: {error}") from error


def _name(model: type[Resource]) -> str:
    return f"{model.__module__}.{model.__qualname__}"
