"""Create, get, update, the subresources, field validation, dry run, YAML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.differential.exchange import POOLS, YAML, Step, edited, send
from tests.differential.objects import condition, create, create_worker, get, listed, merge, pool, update, worker

_YAML_POOL = """
apiVersion: clrk.apoxy.dev/v1alpha1
kind: WorkerPool
metadata: {name: y, labels: {a: b}}
spec:
  replicas: 2
  template:
    image: registry.example/w:1
"""
_FULL = pool(
    "full",
    metadata={"labels": {"app": "a"}, "annotations": {"note": "text \u00e9 <&>\u2028"}, "finalizers": ["example.dev/f"]},
    replicas=3,
    maxExecutionsPerWorker=4,
    warmPool=1,
    imageCache={"enabled": False},
    template={
        "imagePullPolicy": "Always",
        "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
        "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": 1}},
        "env": [
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
        ],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}, {"operator": "Exists", "tolerationSeconds": 30}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]
                }
            }
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}}}
        ],
        "extraVolumes": [
            {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "c", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
            {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
            {"name": "i", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn", "lun": 0}},
        ],
        "extraVolumeMounts": [{"name": "v", "mountPath": "/data"}, {"name": "c", "mountPath": "/conf", "readOnly": True}],
        "metadata": {"labels": {"x": "y"}, "annotations": {"z": ""}},
        "serviceAccountName": "sa",
        "priorityClassName": "high",
    },
)

_BAD_SPECS: dict[str, object] = {
    "no spec": {"spec": None},
    "empty spec": {"spec": {}},
    "spec is a list": {"spec": []},
    "spec is a string": {"spec": "x"},
    "template is null": {"spec": {"template": None}},
    "image is empty": {"spec": {"template": {"image": ""}}},
    "image is a number": {"spec": {"template": {"image": 3}}},
    "image is missing": {"spec": {"template": {"env": []}}},
    "replicas is a string": {"spec": {"replicas": "3", "template": {"image": "a"}}},
    "replicas is below zero": {"spec": {"replicas": -1, "template": {"image": "a"}}},
    "replicas is a fraction": {"spec": {"replicas": 1.5, "template": {"image": "a"}}},
    "replicas is too large for int32": {"spec": {"replicas": 2147483648, "template": {"image": "a"}}},
    "replicas is too large for int64": {"spec": {"replicas": 9223372036854775808, "template": {"image": "a"}}},
    "replicas is null": {"spec": {"replicas": None, "template": {"image": "a"}}},
    "many faults": {"spec": {"replicas": -1, "warmPool": "x", "template": {"image": "", "imagePullPolicy": "Sometimes"}}},
    "enum": {"spec": {"template": {"image": "a", "imagePullPolicy": "Sometimes"}}},
    "duplicate env": {"spec": {"template": {"image": "a", "env": [{"name": "A"}, {"name": "B"}, {"name": "A"}]}}},
    "env without a name": {"spec": {"template": {"image": "a", "env": [{"value": "1"}]}}},
    "env is an object": {"spec": {"template": {"image": "a", "env": {"name": "A"}}}},
    "null in a list": {"spec": {"template": {"image": "a", "env": [None]}}},
    "null in a map": {"spec": {"template": {"image": "a", "nodeSelector": {"a": None}}}},
    "number in a map of strings": {"spec": {"template": {"image": "a", "nodeSelector": {"a": 1}}}},
    "bad quantity": {"spec": {"template": {"image": "a", "resources": {"limits": {"cpu": "lots"}}}}},
    "bad volumes": {"spec": {"template": {"image": "a", "extraVolumes": [{"emptyDir": {}}, {"name": "x", "hostPath": {}}]}}},
    "duplicate mounts": {
        "spec": {
            "template": {
                "image": "a",
                "extraVolumes": [{"name": "v"}],
                "extraVolumeMounts": [{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}],
            }
        }
    },
    "duplicate spread": {
        "spec": {
            "template": {
                "image": "a",
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"},
                    {"maxSkew": 2, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"},
                ],
            }
        }
    },
    "status with wrong types": {"spec": {"template": {"image": "a"}}, "status": {"readyReplicas": "x", "conditions": [{"type": "Ready"}]}},
}


def _bad(change: object) -> dict[str, object]:
    assert isinstance(change, dict)
    return {key: value for key, value in (pool("bad") | change).items() if value is not None or key != "spec"}


_UNKNOWN = '{"apiVersion":"clrk.apoxy.dev/v1alpha1","kind":"WorkerPool","metadata":{"name":"%s","frob":1},"spec":{"replicas":1,"replicas":2,"bogus":{"a":1},"template":{"image":"a","env":[{"name":"A","vlaue":"x"}],"image":"b"}},"extra":[1]}'
_UNKNOWN_NAMES = tuple(f"unknown{number}" for number in range(100))
_UNKNOWN_YAML = "apiVersion: clrk.apoxy.dev/v1alpha1\nkind: WorkerPool\nmetadata: {name: %s}\nspec:\n  replicas: 1\n  replicas: 2\n  bogus: 1\n  template: {image: a, image: b}\n"


def _extended(name: str, *unknown: str) -> dict[str, Any]:
    """A pool with fields that its spec does not have."""
    value = pool(name)
    value["spec"] |= dict.fromkeys(unknown, 1)
    return value


SCENARIOS: dict[str, Sequence[Step]] = {
    "a pool's life": [
        create(pool("a")),
        get("a"),
        create(pool("a")),
        update("a", edited("a", lambda value: value["spec"].update(replicas=5))),
        get("a"),
        update("a", edited("a", lambda value: value["spec"].update(replicas=5))),
        update("a", edited("a", lambda value: value["metadata"].update(resourceVersion="1"))),
        update("a", edited("a", lambda value: value["metadata"].pop("resourceVersion", None))),
        update("a", pool("a", replicas=9)),
        get("a"),
    ],
    "every field": [
        create(_FULL),
        get("full"),
        update("full", edited("full", lambda value: value["spec"]["template"]["env"].reverse())),
        update("full", edited("full", lambda value: value["spec"]["template"].pop("affinity", None))),
        merge("full", {"metadata": {"finalizers": None}}),
    ],
    "local workers": [
        create_worker(worker("w", image="a", configSecretRef="b")),
        create_worker(worker("empty")),
        create_worker({**worker("none"), "spec": None}),
        create_worker({key: value for key, value in worker("none").items() if key != "spec"}),
        send("get", "GET", "/apis/worker.saved.sh/v1alpha1/namespaces/{{ns}}/localworkers/w"),
        send("list", "GET", "/apis/worker.saved.sh/v1alpha1/namespaces/{{ns}}/localworkers"),
        send("get", "GET", "/apis/worker.saved.sh/v1alpha1/namespaces/{{ns}}/localworkers/w/scale"),
    ],
    "schema faults on create": [create(_bad(change)) for change in _BAD_SPECS.values()],
    "schema faults on update": [
        create(pool("bad")),
        *[update("bad", _bad(change)) for change in _BAD_SPECS.values()],
    ],
    "a broken status on create": [create({**pool("b"), "status": {"readyReplicas": True}})],
    "a number beyond 64 bits": [create(pool("b")), merge("b", {"metadata": {"labels": {"a": 9223372036854775808}}})],
    "whole floats": [
        create(pool("f", warmPool=2.0)),
        merge("f", {"spec": {"warmPool": 3.0}}),
        create(pool("g", replicas=2.0), kind="whole float"),
    ],
    "unknown fields": [
        *[
            create(_UNKNOWN % f"u{number}", query, content_type="application/json", kind="field validation")
            for number, query in enumerate(
                ("", "?fieldValidation=Warn", "?fieldValidation=Ignore", "?fieldValidation=Strict", "?fieldValidation=Bogus", "?fieldValidation=")
            )
        ],
        *[
            create(_UNKNOWN_YAML % f"y{number}", query, content_type=YAML, kind="field validation")
            for number, query in enumerate(("", "?fieldValidation=Warn", "?fieldValidation=Ignore", "?fieldValidation=Strict"))
        ],
        *[
            update("u0", _UNKNOWN % "u0", query, content_type="application/json", kind="field validation")
            for query in ("", "?fieldValidation=Ignore", "?fieldValidation=Strict")
        ],
        *[
            merge("u0", {"spec": {"bogus": 1, "replicas": 4}, "metadata": {"frob": 1}}, query, kind="field validation")
            for query in ("", "?fieldValidation=Ignore", "?fieldValidation=Strict", "?fieldValidation=Bogus")
        ],
        *[
            send(
                "field validation",
                "PATCH",
                f"{POOLS}/u0{query}",
                '[{"op":"add","path":"/spec/bogus","value":1},{"op":"replace","path":"/spec/replicas","value":6,"frob":1}]',
                "application/json-patch+json",
            )
            for query in ("", "?fieldValidation=Ignore", "?fieldValidation=Strict")
        ],
        merge("u0", '{"spec":{"replicas":1,"replicas":2}}', "", kind="field validation"),
        merge("u0", '{"spec":{"replicas":1,"replicas":2}}', "?fieldValidation=Strict", kind="field validation"),
    ],
    "many warnings": [
        create(_extended("m", *_UNKNOWN_NAMES)),
        create(_extended("l", *(f"{number}{'x' * 300}" for number in range(20)))),
        create(_extended("s", 'quo"te', "back\\slash", "tab\t", "new\nline", "\u00e9", "\x7f", "", " ")),
        merge("m", {"spec": {"a": 1, "b": {"c": [1]}}, "d": 1}),
        update("m", _extended("m", *_UNKNOWN_NAMES), "?fieldValidation=Strict"),
        create('{"apiVersion":"clrk.apoxy.dev/v1alpha1","kind":"WorkerPool","metadata":{"name":"t","name":"t","labels":{"a":"1","a":"2"}},"spec":{"template":{"image":"a","image":"a","env":[{"name":"A","name":"A"}]}},"spec":{"template":{"image":"a"}}}'),
        create('{"apiVersion":"clrk.apoxy.dev/v1alpha1","kind":"WorkerPool","metadata":{"name":"r","name":"r","labels":{"a":"1","a":"2"}},"spec":{"template":{"image":"a","image":"a"}}}', "?fieldValidation=Strict"),
    ],
    "dry run": [
        create(pool("d"), "?dryRun=All", kind="dry run"),
        get("d"),
        create(pool("d"), "?dryRun=Bogus", kind="dry run"),
        create(pool("d"), "?dryRun=All&dryRun=All", kind="dry run"),
        create(pool("d"), "?dryRun=", kind="dry run"),
        create(pool("e", metadata={"generateName": "gen-", "name": ""}), "?dryRun=All", kind="dry run"),
        create(pool("d")),
        create(pool("d"), "?dryRun=All", kind="dry run"),
        update("d", pool("d", replicas=7), "?dryRun=All", kind="dry run"),
        merge("d", {"spec": {"replicas": 8}}, "?dryRun=All", kind="dry run"),
        merge("d", {"spec": {"replicas": 8}}, "?dryRun=all", kind="dry run"),
        get("d"),
        send("dry run", "DELETE", POOLS + "/d?dryRun=All"),
        send("dry run", "DELETE", POOLS + "/d", {"dryRun": ["All"]}),
        send("dry run", "DELETE", POOLS + "/d", {"dryRun": ["Some"]}),
        send("dry run", "DELETE", POOLS + "?dryRun=All"),
        listed(),
    ],
    "YAML": [
        create(_YAML_POOL, content_type=YAML, kind="YAML"),
        get("y", headers={"Accept": "application/yaml"}, kind="YAML"),
        listed(headers={"Accept": "application/yaml"}),
        get("missing", headers={"Accept": "application/yaml"}, kind="YAML"),
        update("y", "spec: {template: {image: b}}\nmetadata: {name: y}\napiVersion: clrk.apoxy.dev/v1alpha1\nkind: WorkerPool\n", content_type=YAML, kind="YAML"),
        create("a: [", content_type=YAML, kind="YAML"),
        create("- a\n- b\n", content_type=YAML, kind="YAML"),
        create("just text", content_type=YAML, kind="YAML"),
        create("", content_type=YAML, kind="YAML"),
        create(_YAML_POOL.replace("name: y", "name: 12"), content_type=YAML, kind="YAML"),
        create(_YAML_POOL.replace("replicas: 2", "replicas: 0x10").replace("name: y", "name: hex"), content_type=YAML, kind="YAML"),
        create(_YAML_POOL.replace("replicas: 2", "replicas: 0o17").replace("name: y", "name: oct"), content_type=YAML, kind="YAML"),
        create(_YAML_POOL.replace("a: b", "a: yes").replace("name: y", "name: bool"), content_type=YAML, kind="YAML"),
        create(_YAML_POOL.replace("a: b", "a: 2024-01-01").replace("name: y", "name: date"), content_type=YAML, kind="YAML"),
        create(_YAML_POOL.replace("a: b", "a: ~").replace("name: y", "name: nil"), content_type=YAML, kind="YAML"),
        create(_YAML_POOL + "---\n" + _YAML_POOL, content_type=YAML, kind="YAML"),
    ],
    "status": [
        create({**pool("s"), "status": {"readyReplicas": 4}}),
        get("s/status", kind="status"),
        update("s/status", edited("s", lambda value: value.update(status={"readyReplicas": 2, "conditions": [condition("Ready")]})), kind="status"),
        update("s/status", edited("s", lambda value: value["spec"].update(replicas=9)), kind="status"),
        update("s", edited("s", lambda value: value.update(status={"readyReplicas": 7}))),
        update("s", edited("s", lambda value: value.pop("status", None))),
        get("s"),
        update("s/status", edited("s", lambda value: value["metadata"].update(labels={"a": "b"}, annotations={"x": "y"})), kind="status"),
        merge("s/status", {"status": {"readyReplicas": 3}, "spec": {"replicas": 12}}, kind="status"),
        merge("s/status", {"metadata": {"labels": {"l": "1"}}}, kind="status"),
        merge("s/status", {"metadata": {"finalizers": ["a.b/c"]}}, kind="status"),
        merge("s/status", {"status": {"readyReplicas": -3}}, kind="status"),
        merge("s/status", {"status": {"conditions": [{"type": "Ready"}]}}, kind="status"),
        merge("s/status", {"status": {"conditions": [condition("Ready", "Maybe")]}}, kind="status"),
        merge("s/status", {"status": {"conditions": [condition("Ready"), condition("Ready")]}}, kind="status"),
        merge("s/status", {"status": {"conditions": [condition("Ready", lastTransitionTime="yesterday")]}}, kind="status"),
        merge("s/status", {"status": {"conditions": [condition("-", reason="")]}}, kind="status"),
        merge("s/status", {"status": None}, kind="status"),
        merge("s/status", {"status": {"bogus": 1}}, "?fieldValidation=Strict", kind="status"),
        update("missing/status", {**pool("missing"), "status": {}}, kind="status"),
        send("status", "DELETE", POOLS + "/s/status"),
        send("status", "POST", POOLS + "/s/status", pool("s")),
        get("s"),
    ],
    "scale unchanged": [
        create(pool("s", replicas=2)),
        send("scale unchanged", "PATCH", POOLS + "/s/scale", {"spec": {"replicas": 2}}, "application/merge-patch+json"),
    ],
    "scale": [
        create(pool("s", replicas=2)),
        get("s/scale", kind="scale"),
        merge("s/status", {"status": {"readyReplicas": 1}}, kind="status"),
        get("s/scale", kind="scale"),
        get("missing/scale", kind="scale"),
        send("scale", "PATCH", POOLS + "/s/scale", {"spec": {"replicas": 5}}, "application/merge-patch+json"),
        get("s"),
        send("scale", "PATCH", POOLS + "/s/scale", {"spec": {"replicas": -1}}, "application/merge-patch+json"),
        send("scale", "PATCH", POOLS + "/s/scale", {"spec": {"replicas": "x"}}, "application/merge-patch+json"),
        send("scale", "PATCH", POOLS + "/s/scale", {"spec": {"replicas": None}}, "application/merge-patch+json"),
        send("scale", "PATCH", POOLS + "/s/scale", [{"op": "replace", "path": "/spec/replicas", "value": 6}], "application/json-patch+json"),
        send("scale", "PUT", POOLS + "/s/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "s", "namespace": "{{ns}}"}, "spec": {"replicas": 3}}),
        send("scale", "PUT", POOLS + "/s/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "s", "namespace": "{{ns}}", "resourceVersion": "{{rv s}}"}, "spec": {"replicas": 4}}),
        send("scale", "PUT", POOLS + "/s/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "s", "namespace": "{{ns}}", "resourceVersion": "{{rv s 1}}"}, "spec": {"replicas": 4}}),
        send("scale", "PUT", POOLS + "/s/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "other", "namespace": "{{ns}}"}, "spec": {"replicas": 3}}),
        send("scale", "PUT", POOLS + "/s/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "s"}, "spec": {"replicas": -3}}),
        send("scale", "PUT", POOLS + "/s/scale", pool("s")),
        send("scale", "PUT", POOLS + "/s/scale", {"spec": {"replicas": 3}}),
        send("scale", "PUT", POOLS + "/s/scale", "not json"),
        send("scale", "PUT", POOLS + "/s/scale", "null"),
        send("scale", "PUT", POOLS + "/s/scale", {"metadata": {"name": "s"}, "spec": None}),
        send("scale", "PUT", POOLS + "/s/scale", {"metadata": None, "spec": {"replicas": None}}),
        get("s/scale", headers={"Accept": "application/yaml"}, kind="scale"),
        get("s/scale", headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}, kind="scale"),
        get("s/scale", headers={"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}, kind="scale"),
        get("s/scale", headers={"Accept": "application/vnd.kubernetes.protobuf"}, kind="scale"),
        send("scale", "DELETE", POOLS + "/s/scale"),
        get("s"),
    ],
}
