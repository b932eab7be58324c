"""Makes reference.json: the facts about core/v1 types that Kubernetes' own OpenAPI v3 document states, without its descriptions.

Usage: kubectl get --raw /openapi/v3/api/v1 > core.json; make_core_reference.py core.json > reference.json
The document must come from a running kube-apiserver: the one in Kubernetes' repository lacks the enums.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PREFIX = "#/components/schemas/"
CORE = "io.k8s.api.core.v1."
ROOTS = [
    "Affinity",
    "EnvVar",
    "LocalObjectReference",
    "ResourceRequirements",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "VolumeMount",
]
INLINED = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"x-kubernetes-int-or-string": True},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True},
}
FACTS = (
    "type",
    "format",
    "enum",
    "required",
    "default",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)


def facts(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """One node with everything inlined; what a field says beside a reference comes on top."""
    if "allOf" in schema:
        return facts(schema["allOf"][0], schemas) | facts({key: value for key, value in schema.items() if key != "allOf"}, schemas)
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(PREFIX)
        return INLINED.get(name) or facts(schemas[name], schemas)
    found = {key: schema[key] for key in FACTS if key in schema}
    for key in ("items", "additionalProperties"):
        if key in schema:
            found[key] = facts(schema[key], schemas)
    if "properties" in schema:
        found["properties"] = {name: facts(value, schemas) for name, value in schema["properties"].items()}
    return found


def reference(document: str) -> dict[str, Any]:
    """The facts of all types in a document."""
    schemas = json.loads(document)["components"]["schemas"]
    return {name: facts(schemas[CORE + name], schemas) for name in ROOTS}


def main() -> None:
    """Read the document that is named on the command line and print the facts."""
    json.dump(reference(Path(sys.argv[1]).read_text()), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
