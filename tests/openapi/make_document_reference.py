"""Makes reference.json: the structure of the documents that a real kube-apiserver publishes for our kinds as CustomResourceDefinitions.

Usage: make_document_reference.py FOLDER > reference.json
The folder holds what `kubectl get --raw` says at /openapi/v2 (v2.json) and below /openapi/v3 at the two group versions
(clrk.json, worker.json), apis (apis.json) and version (version.json). Only facts are kept: descriptions are left out, references to shared
parameters are followed, since their names are hashes of descriptions, and the kinds that DeleteOptions and WatchEvent are registered for
are left out, since they are those of the server's own groups.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

GROUPS = ("clrk.apoxy.dev", "worker.saved.sh")
DOCUMENTS = {
    "apis": "apis.json",
    "version": "version.json",
    "apis/clrk.apoxy.dev/v1alpha1": "clrk.json",
    "apis/worker.saved.sh/v1alpha1": "worker.json",
}
"""The file of each document below /openapi/v3."""
NAMES_OF_FIELDS = ("properties", "definitions", "schemas")


def facts(node: Any, parameters: dict[str, Any]) -> Any:
    """The document without descriptions and with its parameters in place."""
    if isinstance(node, list):
        return [facts(value, parameters) for value in node]
    if not isinstance(node, dict):
        return node
    if node.get("$ref", "").startswith("#/parameters/"):
        return facts(parameters[node["$ref"].removeprefix("#/parameters/")], parameters)
    found: dict[str, Any] = {}
    for key, value in node.items():
        if key in NAMES_OF_FIELDS:
            found[key] = {name: facts(child, parameters) for name, child in value.items()}
        elif not (key == "description" and isinstance(value, str)):
            found[key] = facts(value, parameters)
    if "required" in found and isinstance(found["required"], list):
        found["required"].sort()
    return found


def reduced(document: dict[str, Any]) -> dict[str, Any]:
    """The facts of one document that do not depend on which server it is."""
    found: dict[str, Any] = facts(document, document.get("parameters", {}))
    found.pop("parameters", None)
    del found["info"]
    for name, definition in (found.get("definitions") or found["components"]["schemas"]).items():
        if name.endswith((".DeleteOptions", ".WatchEvent")):
            del definition["x-kubernetes-group-version-kind"]
    return found


def referred(node: Any, definitions: dict[str, Any], found: set[str]) -> None:
    """Collect the names of the definitions that a node leads to."""
    if isinstance(node, list):
        for value in node:
            referred(value, definitions, found)
    elif isinstance(node, dict):
        reference = str(node.get("$ref", ""))
        name = reference.removeprefix("#/definitions/")
        if name != reference and name not in found:
            found.add(name)
            referred(definitions[name], definitions, found)
        for value in node.values():
            referred(value, definitions, found)


def reference(v2: str, v3: Mapping[str, str]) -> dict[str, Any]:
    """The facts of the document at /openapi/v2, of which only what our kinds need, and of those below /openapi/v3 by name."""
    all_of_it = json.loads(v2)
    paths = all_of_it["paths"].items()
    all_of_it["paths"] = {path: item for path, item in paths if path in ("/apis/", "/version/") or path.split("/")[2] in GROUPS}
    prefix = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1."
    roots = [all_of_it["paths"], [{"$ref": prefix + kind} for kind in ("DeleteOptions", "Patch", "WatchEvent")]]
    names: set[str] = set()
    referred(roots, all_of_it["definitions"], names)
    all_of_it["definitions"] = {name: all_of_it["definitions"][name] for name in sorted(names)}
    return {"v2": reduced(all_of_it), "v3": {name: reduced(json.loads(text)) for name, text in v3.items()}}


def main() -> None:
    """Read the documents and print their facts."""
    folder = Path(sys.argv[1])
    v3 = {name: (folder / file).read_text() for name, file in DOCUMENTS.items()}
    json.dump(reference((folder / "v2.json").read_text(), v3), sys.stdout, indent=None, separators=(",", ":"), sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
