"""What tests of writing share: bodies and media types."""

from __future__ import annotations

from typing import Any

GADGETS = "/apis/example.dev/v1/namespaces/ns1/gadgets"
JSON = {"Content-Type": "application/json"}
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
YAML = {"Content-Type": "application/yaml"}


def gadget(name: str = "x", *, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """A valid gadget."""
    metadata = {"name": name, **metadata} if name else metadata
    return {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": metadata, "spec": spec or {"replicas": 1}}
