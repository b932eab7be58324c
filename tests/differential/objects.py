"""Objects that the exchanges are about, and the requests for them in short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.differential.exchange import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    POOLS,
    WORKERS,
    Request,
    send,
)

IMAGE = "registry.example/worker:1"


def pool(name: str, *, metadata: Mapping[str, Any] | None = None, template: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A WorkerPool."""
    return {
        "apiVersion": "clrk.apoxy.dev/v1alpha1",
        "kind": "WorkerPool",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"template": {"image": IMAGE, **(template or {})}, **spec},
    }


def worker(name: str, *, metadata: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A LocalWorker."""
    return {
        "apiVersion": "worker.saved.sh/v1alpha1",
        "kind": "LocalWorker",
        "metadata": {"name": name, **(metadata or {})},
        "spec": spec,
    }


def condition(kind: str, status: str = "True", **more: Any) -> dict[str, Any]:
    """A condition with a time that has long passed."""
    return {"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z"} | more


def create(value: Any, query: str = "", path: str = POOLS, **more: Any) -> Request:
    """POST."""
    return send(more.pop("kind", "create"), "POST", path + query, value, **more)


def create_worker(value: Any, query: str = "", **more: Any) -> Request:
    """POST of a LocalWorker."""
    return create(value, query, WORKERS, **more)


def get(name: str, query: str = "", **more: Any) -> Request:
    """GET of a pool (or of its subresource, as in `x/status`)."""
    return send(more.pop("kind", "get"), "GET", f"{POOLS}/{name}{query}", **more)


def update(name: str, value: Any, query: str = "", **more: Any) -> Request:
    """PUT."""
    return send(more.pop("kind", "update"), "PUT", f"{POOLS}/{name}{query}", value, **more)


def merge(name: str, value: Any, query: str = "", **more: Any) -> Request:
    """A merge patch."""
    return send(more.pop("kind", "merge patch"), "PATCH", f"{POOLS}/{name}{query}", value, MERGE_PATCH, **more)


def json_patch(name: str, value: Any, query: str = "", **more: Any) -> Request:
    """A JSON patch."""
    return send("JSON patch", "PATCH", f"{POOLS}/{name}{query}", value, JSON_PATCH, **more)


def apply(name: str, value: Any, query: str = "?fieldManager=m1", **more: Any) -> Request:
    """A server-side apply."""
    return send("apply", "PATCH", f"{POOLS}/{name}{query}", value, APPLY_PATCH, **more)


def delete(name: str, query: str = "", value: Any = None, **more: Any) -> Request:
    """DELETE."""
    return send("delete", "DELETE", f"{POOLS}/{name}{query}", value, **more)


def delete_all(query: str = "", value: Any = None, **more: Any) -> Request:
    """DELETE of the collection."""
    return send("delete collection", "DELETE", f"{POOLS}{query}", value, **more)


def listed(query: str = "", path: str = POOLS, **more: Any) -> Request:
    """GET of the collection."""
    return send(more.pop("kind", "list"), "GET", path + query, **more)
