"""The `scale` subresource: autoscaling/v1 Scale out of an object, the wanted replicas back into it, and what may stand there.

Pure functions over JSON values. A path that leads to nothing means 0 replicas; one that leads through the wrong type is an error, with the
wording of Kubernetes' accessors.
Source: https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/registry/customresource/etcd.go
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apiserver.meta import errors
from apiserver.meta.errors import Cause
from openapi import gotext

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from apiserver.meta.resource import ScalePaths

NOT_SET = -(2**31)
"""The wanted replicas of an object that does not say; what a patch must not leave as it is."""
_INT32_MAX = 2**31 - 1


class AccessorError(ValueError):
    """A path leads through, or to, a value of another type; the text is Kubernetes'."""


def scale_of(value: Mapping[str, Any], paths: ScalePaths) -> dict[str, Any]:
    """The Scale of an object. As Go writes it, `spec.replicas` is left out when it is 0; `NOT_SET` stands for an object that has none.

    Raises:
        AccessorError: a path leads to a value of the wrong type.
    """
    metadata = value["metadata"]
    wanted = _int_at(value, paths.spec_replicas)
    if wanted is None:
        wanted = NOT_SET
    status: dict[str, Any] = {"replicas": _int_at(value, paths.status_replicas) or 0}
    if paths.selector is not None and (selector := paths.selector(value)):
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _METADATA if key in metadata},
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def set_replicas(value: dict[str, Any], paths: ScalePaths, replicas: int) -> None:
    """Write the wanted number into the object, in place."""
    *parents, last = _steps(paths.spec_replicas)
    for step in parents:
        value = value.setdefault(step, {})
    value[last] = replicas


def missing_replicas(paths: ScalePaths) -> errors.APIError:
    """500 for an object that does not say how many replicas it wants, as upstream has it; a default in the schema avoids it."""
    return errors.internal_error(f'the spec replicas field "{paths.spec_replicas}" does not exist')


def spec_causes(value: Mapping[str, Any], paths: ScalePaths) -> Iterator[Cause]:
    """What is wrong with the wanted replicas."""
    return _replica_causes(value, paths.spec_replicas)


def status_causes(value: Mapping[str, Any], paths: ScalePaths) -> Iterator[Cause]:
    """What is wrong with the observed replicas."""
    return _replica_causes(value, paths.status_replicas)


def _replica_causes(value: Mapping[str, Any], path: str) -> Iterator[Cause]:
    try:
        replicas = _int_at(value, path) or 0
    except AccessorError as error:
        yield Cause("FieldValueInvalid", f"Invalid value: 0: {error}", path)
        return
    if replicas < 0:
        yield Cause("FieldValueInvalid", f"Invalid value: {replicas}: should be a non-negative integer", path)
    elif replicas > _INT32_MAX:
        yield Cause("FieldValueInvalid", f"Invalid value: {replicas}: should be less than or equal to {_INT32_MAX}", path)


def _int_at(value: Any, path: str) -> int | None:
    for step in _steps(path):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _accessor_error(path, value, "map[string]interface{}")
        if step not in value:
            return None
        value = value[step]
    if value.__class__ is not int:
        raise _accessor_error(path, value, "int64")
    result: int = value
    return result


def _steps(path: str) -> list[str]:
    return path.removeprefix(".").split(".")


def _accessor_error(path: str, value: Any, wanted: str) -> AccessorError:
    return AccessorError(f"{path} accessor error: {gotext.text(value)} is of the type {_GO_TYPES[value.__class__]}, expected {wanted}")


_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_GO_TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
    type(None): "<nil>",
}
