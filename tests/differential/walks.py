"""Exchanges that nobody wrote: walks through what clients do to few objects in one namespace, with valid, odd and broken input.

Few names, few fields, several managers: so that steps meet each other. hypothesis draws what is chosen, and finds the shortest walk on
which a difference is met; the state that its requests refer to (versions, uids, tokens) is filled in by each side. Values stay clear of the
rules that the twin does not know.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.differential.exchange import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, POOLS, YAML, Request, Step, Watch, edited, send
from tests.differential.objects import IMAGE, condition, pool

_NAMES = ("a", "b", "c", "d.e")
_MANAGERS = ("m1", "m2", "m3")
_FINALIZERS = ("example.dev/f", "example.dev/g", "orphan", "foregroundDeletion")
_JUNK: tuple[Any, ...] = (
    *(None, True, -1, 1.5, "", "x", [], {}, [None], {"": None}),
    *(2**31, 2**63, "a" * 300, "\u00e9\u2028", [[1]], {"a": {"b": 1}}),
)
_ACCEPTS = (
    "application/json",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "text/html,*/*;q=0.1",
)
_NOT_SPOILED = ("image", "extraVolumeMounts")
"""What has rules that the twin does not know."""
STEPS = 25
"""How many steps a walk has; some are left out."""


def walks() -> st.SearchStrategy[list[Step]]:
    """Walks. A step whose number is drawn as 0 is left out: so a walk shrinks to the steps that matter.

    What is in a step comes of a seed that is drawn: hypothesis' own choices lean to the extremes, and take most of the time.
    """
    step = st.tuples(st.integers(0, 9), st.randoms(use_true_random=True))
    return st.lists(step, min_size=STEPS, max_size=STEPS).map(_walked)


def _walked(drawn: list[tuple[int, random.Random]]) -> list[Step]:
    walk = _Walk()
    return [walk.step(chance) for taken, chance in drawn if taken]


class _Walk:
    chance: random.Random

    def __init__(self) -> None:
        self.made: list[str] = []
        self.scaled = 100
        self._kinds: list[tuple[int, Callable[[], Step]]] = [
            (10, self.create),
            (8, self.read),
            (14, self.update),
            (14, self.merge),
            (12, self.json_patch),
            (24, self.apply),
            (8, self.status),
            (4, self.scale),
            (8, self.delete),
            (2, self.delete_collection),
            (8, self.list),
            (2, self.watch),
        ]

    def step(self, chance: random.Random) -> Step:
        """The next step; the first ones create something."""
        self.chance = chance
        if len(self.made) < 2:
            return self.create()
        ((_, make),) = chance.choices(self._kinds, [weight for weight, _ in self._kinds])
        return make()

    # What is in an object

    def one(self, *values: Any) -> Any:
        return self.chance.choice(values)

    def often(self, probability: float) -> bool:
        return self.chance.random() < probability

    def name(self) -> str:
        return str(self.one(*self.made) if self.made and self.often(0.9) else self.one(*_NAMES, "missing"))

    def labels(self) -> dict[str, Any]:
        return {key: self.one("1", "2", "") for key in self.chance.sample(("app", "tier", "example.dev/x"), self.one(1, 2))}

    def env(self) -> list[dict[str, Any]]:
        names = self.chance.sample(("A", "B", "C", "D"), self.one(0, 1, 2, 3))
        values: tuple[dict[str, Any], ...] = ({"value": "1"}, {"value": "2"}, {}, {"valueFrom": {"fieldRef": {"fieldPath": "x"}}})
        return [{"name": name} | self.one(*values) for name in names]

    def template(self) -> dict[str, Any]:
        fields: dict[str, Callable[[], Any]] = {
            "env": self.env,
            "imagePullPolicy": lambda: self.one("Always", "Never"),
            "nodeSelector": lambda: {key: self.one("x", "y") for key in self.chance.sample(("k1", "k2"), self.one(0, 1, 2))},
            "tolerations": lambda: [{"key": key, "operator": "Exists"} for key in self.chance.sample("tuv", self.one(0, 1, 2))],
            "resources": lambda: {"limits": {"cpu": self.one(1, "500m", "1")}, "requests": self.one({}, {"memory": "1Gi"})},
            "imagePullSecrets": lambda: [{"name": name} for name in self.chance.sample("xyz", self.one(0, 1, 2))],
            "topologySpreadConstraints": lambda: [
                {"maxSkew": self.one(1, 2), "topologyKey": key, "whenUnsatisfiable": self.one("DoNotSchedule", "ScheduleAnyway")}
                for key in self.chance.sample(("zone", "host"), self.one(1, 2))
            ],
            "metadata": lambda: {"labels": self.labels()},
            "affinity": lambda: {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": self.one("a", "b")}]}},
            "serviceAccountName": lambda: self.one("one", "two"),
        }
        return {"image": self.one(IMAGE, "registry.example/worker:2")} | {name: fields[name]() for name in self.some(fields)}

    def some(self, fields: dict[str, Any]) -> list[str]:
        return self.chance.sample(sorted(fields), self.one(0, 0, 1, 2, 3))

    def spec(self) -> dict[str, Any]:
        fields: dict[str, Callable[[], Any]] = {
            "replicas": lambda: self.one(0, 1, 3, 7),
            "warmPool": lambda: self.one(0, 2),
            "maxExecutionsPerWorker": lambda: self.one(1, 5),
            "imageCache": lambda: self.one({}, {"enabled": True}, {"enabled": False}),
        }
        return {"template": self.template()} | {name: fields[name]() for name in self.some(fields)}

    def metadata(self) -> dict[str, Any]:
        fields: dict[str, Callable[[], Any]] = {
            "labels": self.labels,
            "annotations": lambda: {"note": self.one("x", "y", "\u00e9"), "example.dev/n": ""},
            "finalizers": lambda: self.chance.sample(_FINALIZERS[:2], self.one(1, 2)),
            "ownerReferences": lambda: [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": f"1111111{self.one(1, 2)}-1111-4111-8111-111111111111"}
            ],
        }
        return {name: fields[name]() for name in self.some(fields)}

    def object(self, name: str) -> dict[str, Any]:
        value = pool(name, metadata=self.metadata())
        value["spec"] = self.spec()
        if self.often(0.1):
            value["status"] = {"readyReplicas": 1}
        return value

    def spoil(self, value: Any) -> Any:
        """Put something wrong somewhere into a copy."""
        value = json.loads(json.dumps(value))
        inner = value
        while isinstance(inner, dict | list) and inner:
            key: Any = self.one(*inner) if isinstance(inner, dict) else self.chance.randrange(len(inner))
            if key in _NOT_SPOILED:
                break
            if not isinstance(inner[key], dict | list) or not inner[key] or self.often(0.3):
                if isinstance(inner, dict) and self.often(0.3):
                    inner[self.one("bogus", "vlaue", "x-y")] = self.one(*_JUNK)
                elif isinstance(inner, dict) and self.often(0.2):
                    del inner[key]
                else:
                    inner[key] = self.one(*_JUNK)
                break
            inner = inner[key]
        return value

    def body(self, value: Any) -> Any:
        return self.spoil(value) if self.often(0.2) else value

    def query(self, **options: str) -> str:
        if self.often(0.15):
            options["fieldValidation"] = self.one("Ignore", "Warn", "Strict")
        if self.often(0.08):
            options["dryRun"] = "All"
        if self.often(0.15):
            options.setdefault("fieldManager", self.one(*_MANAGERS))
        return "?" + "&".join(f"{name}={value}" for name, value in options.items()) if options else ""

    # The steps

    def create(self) -> Step:
        name = self.one(*_NAMES)
        self.made.append(name)
        return send("create", "POST", POOLS + self.query(), self.body(self.object(name)))

    def read(self) -> Step:
        query = self.one("", "", "?resourceVersion=0", f"?resourceVersion={{{{rv {self.name()}}}}}", "?pretty=true")
        headers = {"Accept": self.one(*_ACCEPTS)} if self.often(0.3) else {}
        below = self.one("", "", "", "/status", "/scale") if not headers else ""
        return send("get", "GET", f"{POOLS}/{self.name()}{below}{query}", headers=headers, from_cache="Version" in query)

    def update(self) -> Step:
        name = self.name()
        path = f"{POOLS}/{name}{self.query()}"
        if self.often(0.2):
            return send("update", "PUT", path, self.body(self.object(name)))
        spec, metadata, what = self.spec(), self.metadata(), self.one("spec", "spec", "metadata", "version", "nothing", "both")
        junk = self.one(*_JUNK) if self.often(0.1) else None

        def change(value: dict[str, Any]) -> None:
            value.setdefault("metadata", {})
            if what in ("spec", "both"):
                value["spec"] = spec
            if what in ("metadata", "both"):
                value["metadata"].update(metadata)
            if what == "version":
                value["metadata"].pop("resourceVersion", None)
            if junk is not None:
                value["spec"] = junk

        return send("update", "PUT", path, edited(name, change))

    def merge(self) -> Step:
        part = self.one({"spec": self.spec()}, {"metadata": self.metadata()}, {"spec": {"replicas": self.one(1, 2, None)}})
        if self.often(0.2):
            part = {"metadata": {"labels": self.one(None, {"app": None}), "finalizers": self.one(None, [], ["example.dev/f"])}}
        if self.often(0.1):
            part.setdefault("metadata", {})["resourceVersion"] = f"{{{{rv {self.name()}{self.one('', ' 1')}}}}}"
        return send("merge patch", "PATCH", f"{POOLS}/{self.name()}{self.query()}", self.body(part), MERGE_PATCH)

    def json_patch(self) -> Step:
        values = ("1", 2, [], {"name": "E", "value": "5"}, {"a": "b"}, *_JUNK[:6])
        paths = (
            "/spec/replicas",
            "/spec/warmPool",
            "/spec/template/env",
            "/spec/template/env/0",
            "/spec/template/env/-",
            "/spec/template/env/0/value",
            "/spec/template/nodeSelector",
            "/spec/template/nodeSelector/k1",
            "/spec/template/tolerations/0",
            "/metadata/labels",
            "/metadata/labels/app",
            "/metadata/finalizers",
            "/metadata/annotations/note",
            "/status",
            "/spec/bogus",
        )
        operations = []
        for _ in range(self.one(1, 1, 2, 3)):
            operation = {"op": self.one("add", "add", "replace", "remove", "test", "copy", "move"), "path": self.one(*paths)}
            if operation["op"] in ("add", "replace", "test"):
                operation["value"] = self.one(*values)
            elif operation["op"] in ("copy", "move"):
                operation["from"] = self.one(*paths)
            operations.append(operation)
        return send("JSON patch", "PATCH", f"{POOLS}/{self.name()}{self.query()}", self.body(operations), JSON_PATCH)

    def apply(self) -> Step:
        name = self.one(*self.made, *_NAMES)
        value = self.object(name)
        if self.often(0.4):
            value = {**pool(name), "spec": self.one({}, {"replicas": self.one(1, 2)}, self.spec())}
        value.pop("status", None)
        if self.often(0.2):
            value = {key: value[key] for key in ("apiVersion", "kind", "metadata")}
        self.made.append(name)
        options = {"fieldManager": self.one(*_MANAGERS)} if self.often(0.97) else {}
        if self.often(0.5):
            options["force"] = self.one("true", "true", "false")
        below = "/status" if self.often(0.1) else ""
        if below:
            conditions = [condition(self.one("Ready", "Synced"), self.one("True", "False"))]
            value["status"] = {"readyReplicas": self.one(1, 2), "conditions": conditions}
        return send("apply", "PATCH", f"{POOLS}/{name}{below}{self.query(**options)}", self.body(value), APPLY_PATCH)

    def status(self) -> Step:
        kinds = self.chance.sample(("Ready", "Synced", "Polling"), self.one(0, 1, 2))
        conditions = [condition(kind, self.one("True", "False")) for kind in kinds]
        value = {"status": {"readyReplicas": self.one(0, 1, 2), "conditions": conditions}}
        name = self.name()
        if self.often(0.5):
            return send("status", "PATCH", f"{POOLS}/{name}/status{self.query()}", self.body(value), MERGE_PATCH)
        return send("status", "PUT", f"{POOLS}/{name}/status{self.query()}", edited(name, lambda found: found.update(value)))

    def scale(self) -> Step:
        self.scaled += 1  # never what it is already: kube-apiserver forgets owners then
        value = {"spec": {"replicas": self.one(self.scaled, self.scaled, -1)}}
        return send("scale", "PATCH", f"{POOLS}/{self.name()}/scale{self.query()}", value, MERGE_PATCH)

    def delete(self) -> Step:
        name = self.name()
        options: dict[str, Any] = self.one(
            {},
            {},
            {"propagationPolicy": self.one("Foreground", "Orphan", "Background")},
            {"preconditions": {"uid": f"{{{{uid {name}}}}}"}},
            {"preconditions": {"resourceVersion": f"{{{{rv {name}{self.one('', ' 1')}}}}}"}},
            {"dryRun": ["All"]},
            {"gracePeriodSeconds": self.one(0, 30)},
        )
        return send("delete", "DELETE", f"{POOLS}/{name}", self.body(options) if options or self.often(0.3) else None)

    def delete_collection(self) -> Step:
        query = self.one("", "?labelSelector=app%3D1", "?labelSelector=tier", "?fieldSelector=metadata.name%3Da", "?dryRun=All")
        return send("delete collection", "DELETE", POOLS + query)

    def list(self) -> Step:
        options = {
            "labelSelector": self.one("", "", "app%3D1", "app", "app+in+(1,2)", "!tier"),
            "fieldSelector": self.one("", "", "", "metadata.name%3Da", "metadata.name!%3Da"),
            "limit": self.one("", "", "1", "2"),
            "resourceVersion": self.one("", "", "0", "{{list}}", f"{{{{rv {self.name()}}}}}"),
            "resourceVersionMatch": self.one("", "", "", "Exact", "NotOlderThan"),
            "continue": self.one("", "", "", "{{continue}}"),
        }
        if options["fieldSelector"] == "metadata.name%3Da" and options["resourceVersion"] != "0":
            # kube-apiserver gives it a revision of its own (one-at-a-revision), from which a later step would go on: `{{list}}`.
            options["resourceVersion"] = options["resourceVersionMatch"] = ""
        query = "&".join(f"{name}={value}" for name, value in options.items() if value)
        headers = {"Accept": self.one(*_ACCEPTS, YAML)} if self.often(0.3) else {}
        return send("list", "GET", f"{POOLS}?{query}", headers=headers, from_cache=True)

    def watch(self) -> Step:
        options = {
            "labelSelector": self.one("", "", "app%3D1", "app"),
            "resourceVersion": self.one("", "0", "{{list}}", f"{{{{rv {self.name()}}}}}"),
        }
        if self.often(0.3):
            options |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        query = "&".join(f"{name}={value}" for name, value in options.items() if value)
        headers = {"Accept": self.one(*_ACCEPTS[:3])} if self.often(0.3) else {}
        makers = (self.create, self.update, self.merge, self.apply, self.delete)
        meanwhile = [step for step in (self.one(*makers)() for _ in range(5)) if isinstance(step, Request)]
        return Watch("watch", f"{POOLS}?watch=true&{query}", tuple(meanwhile), headers)
