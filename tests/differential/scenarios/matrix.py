"""Every verb and subresource in every form with every parameter that forms know."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tests.differential.exchange import ALL_POOLS, POOLS, WORKERS, Request, Step, Watch, send
from tests.differential.objects import (
    apply,
    condition,
    create,
    create_worker,
    delete,
    delete_all,
    json_patch,
    listed,
    merge,
    pool,
    update,
    worker,
)

_META = ";g=meta.k8s.io;v=v1"
_FORMS = (
    "application/json",
    "application/yaml",
    *(f"application/{syntax};as={kind}{_META}" for kind in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList") for syntax in ("json", "yaml", "vnd.kubernetes.protobuf")),
    "application/json;as=Table;g=meta.k8s.io;v=v1beta1",
    "application/yaml;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1",
)
_OF_ONE = tuple(form for form in _FORMS if "List" not in form)
_PARAMETERS = ("", "pretty=true", "pretty=false", "includeObject=None", "includeObject=Object", "includeObject=Metadata", "includeObject=Bogus")
_SETUP: Sequence[Request] = (
    create(pool("x", metadata={"labels": {"a": "b"}}, replicas=2)),
    merge("x/status", {"status": {"readyReplicas": 1, "conditions": [condition("Ready")]}}),
    create_worker(worker("x", image="i")),
)
_SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x"}}


def _asked(path: str, parameter: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}{parameter}" if parameter else path


def _reads(*paths: str) -> list[Step]:
    return [
        send("matrix", "GET", _asked(path, parameter), headers={"Accept": form})
        for path, form, parameter in product(paths, _FORMS, _PARAMETERS)
    ]


def _watches(query: str, *meanwhile: Request) -> list[Step]:
    return [
        Watch("watch", _asked(f"{POOLS}?watch=true{query}", parameter), meanwhile, {"Accept": form})
        for form, parameter in product(_FORMS, _PARAMETERS)
        if parameter.startswith("pretty") or "Table" in form or not parameter
    ]


def _written(form: str, number: int) -> list[Step]:
    """What a form makes of each write, one after the other on one object."""
    name, headers = f"w{number}", {"Accept": form}
    value = pool(name, replicas=2)
    return [
        create(value, headers=headers),
        create(value, headers=headers),
        update(name, pool(name, replicas=3), headers=headers),
        apply(name, pool(name, warmPool=1), headers=headers),
        apply(f"{name}-new", pool(f"{name}-new"), headers=headers),
        json_patch(name, [{"op": "replace", "path": "/spec/replicas", "value": 4}], headers=headers),
        merge(f"{name}/status", {"status": {"readyReplicas": number}}, headers=headers),
        update(f"{name}/status", {**value, "status": {"readyReplicas": 90}}, headers=headers),
        merge(f"{name}/scale", {"spec": {"replicas": 5}}, headers=headers),
        update(f"{name}/scale", _SCALE | {"metadata": {"name": name}, "spec": {"replicas": 6}}, headers=headers),
        update(name, pool(name, replicas=-1), headers=headers),
        delete(name, "?dryRun=All", headers=headers),
        delete(name, "?pretty=true", headers=headers),
        delete_all("?labelSelector=none", headers=headers),
        # kube-apiserver would delete them all, and then find that it cannot answer in the form of one object.
        delete_all(headers={} if "PartialObjectMetadata" in form else headers),
    ]


SCENARIOS: dict[str, Sequence[Step]] = {
    "an object": [*_SETUP, *_reads(f"{POOLS}/x", f"{POOLS}/none")],
    "its subresources": [*_SETUP, *_reads(f"{POOLS}/x/status", f"{POOLS}/x/scale")],
    "lists": [*_SETUP, *_reads(POOLS, f"{ALL_POOLS}?limit=1", f"{POOLS}?labelSelector=none")],
    "heads": [
        *_SETUP,
        *[
            send("matrix", "HEAD", path, headers={"Accept": form})
            for path, form in product((f"{POOLS}/x", f"{POOLS}/none", f"{POOLS}/x/status", f"{POOLS}/x/scale", POOLS, f"{POOLS}?limit=1"), _FORMS)
        ],
    ],
    "another kind": [*_SETUP, *_reads(WORKERS, f"{WORKERS}/x")],
    "writes": [step for number, form in enumerate(_OF_ONE) for step in _written(form, number)],
    "watches": [*_SETUP, *_watches(""), *_watches("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")],
    "watches that end": [*_SETUP, *[Watch("watch", f"{POOLS}?watch=true&timeoutSeconds=1&resourceVersion=1", (), {"Accept": form}, until_closed=True) for form in _FORMS]],
    "changes": [
        *_SETUP,
        *[
            Watch("watch", f"{POOLS}?watch=true&{parameter}", (create(pool(f"c{number}")), merge(f"c{number}", {"spec": {"replicas": 2}}), delete(f"c{number}")), {"Accept": form})
            for number, (form, parameter) in enumerate(product(_OF_ONE, ("", "includeObject=Object", "includeObject=None")))
            if "Table" in form or not parameter
        ],
        listed(),
    ],
    "over WebSocket": [
        *_SETUP,
        *[Watch("watch", f"{POOLS}?watch=true", (), {"Accept": form, "Origin": "https://127.0.0.1"}, web_socket=True) for form in _OF_ONE],
    ],
}
