"""Server-side apply: managers, conflicts, giving up, lists by key, subresources, what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.differential.exchange import APPLY_PATCH, POOLS, Step, edited, send
from tests.differential.objects import apply, condition, create, get, json_patch, merge, pool, update

_M1, _M2, _M3 = "?fieldManager=m1", "?fieldManager=m2", "?fieldManager=m3"
_FORCE = "&force=true"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ENTRY = {"manager": "m9", "operation": "Apply", "apiVersion": "clrk.apoxy.dev/v1alpha1", "fieldsType": "FieldsV1", "fieldsV1": {}}


def _env(*names: str, **values: str) -> dict[str, Any]:
    return {"env": [{"name": name} for name in names] + [{"name": name, "value": value} for name, value in values.items()]}


def _bare(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "clrk.apoxy.dev/v1alpha1", "kind": "WorkerPool", "metadata": {"name": name}, **more}


def _status(**status: Any) -> dict[str, Any]:
    return _bare("s", status=status)


_YAML = """
apiVersion: clrk.apoxy.dev/v1alpha1
kind: WorkerPool
metadata: {name: y}
spec:
  replicas: 2
  template: {image: a}
"""

SCENARIOS: dict[str, Sequence[Step]] = {
    "T035 create and apply again": [
        apply("new", pool("new")),
        apply("new", pool("new")),
        get("new"),
        apply("y", _YAML),
        apply("y", _YAML.replace("replicas: 2", "replicas: 3")),
        apply("none", pool("none"), ""),
        apply("none", pool("none"), "?fieldManager="),
        apply("none", pool("none"), "?fieldManager=" + "m" * 128),
        apply("none", pool("none"), "?fieldManager=" + "m" * 129),
        apply("none", pool("none"), "?fieldManager=m%00"),
        apply("wrong", pool("other")),
        apply("wrong", {**pool("wrong"), "apiVersion": ""}),
        apply("wrong", {"kind": "WorkerPool", "metadata": {"name": "wrong"}}),
        apply("wrong", {"apiVersion": "clrk.apoxy.dev/v1alpha1", "metadata": {"name": "wrong"}}),
        apply("wrong", {**pool("wrong"), "kind": "Other"}),
        apply("wrong", {**pool("wrong"), "apiVersion": "v1"}),
        apply("wrong", {**pool("wrong"), "apiVersion": "clrk.apoxy.dev/v9"}),
        apply("wrong", pool("wrong", metadata={"namespace": "{{other}}"})),
        apply("nameless", {**pool("nameless"), "metadata": {}}),
        apply("nameless2", {key: value for key, value in pool("nameless2").items() if key != "metadata"}),
        apply("new", pool("new", metadata={"resourceVersion": "1"})),
        apply("new", pool("new", metadata={"resourceVersion": "{{rv new}}"})),
        apply("gone", pool("gone", metadata={"resourceVersion": "1"})),
        apply("gone", pool("gone", metadata={"uid": "00000000-0000-4000-8000-000000000000"})),
        apply("new", pool("new", metadata={"uid": "00000000-0000-4000-8000-000000000000"})),
        apply("Bad_Name", pool("Bad_Name")),
        apply("new", pool("new"), _M1 + "&dryRun=All"),
        apply("dry", pool("dry"), _M1 + "&dryRun=All"),
        get("dry"),
    ],
    "T036 nothing to write": [
        apply("n", pool("n", replicas=2, imageCache={"enabled": False}, template={**_env(A="1"), "resources": {"limits": {"cpu": "1"}}})),
        *[apply("n", pool("n", replicas=2, imageCache={"enabled": False}, template={**_env(A="1"), "resources": {"limits": {"cpu": "1"}}}))] * 3,
        apply("n", pool("n", replicas=2), _M2),
        apply("n", pool("n", replicas=2), _M2),
        get("n"),
    ],
    "T039 managed fields in an apply": [
        apply("m", pool("m")),
        apply("m", pool("m", metadata={"managedFields": []})),
        apply("m", pool("m", metadata={"managedFields": [{}]})),
        apply("m", pool("m", metadata={"managedFields": [_ENTRY]})),
        apply("m", pool("m", metadata={"managedFields": None})),
        get("m"),
    ],
    "T040 status": [
        apply("s", {**pool("s"), "status": {"readyReplicas": 9}}),
        apply("s/status", _status(conditions=[condition("Ready"), condition("Polling")]), _M2),
        apply("s/status", _status(conditions=[condition("Ready", "False")]), _M3),
        apply("s/status", _status(conditions=[condition("Ready", "False")]), _M3 + _FORCE),
        apply("s/status", _status(conditions=[condition("Polling")]), _M2),
        apply("s/status", _status(), _M2),
        apply("s/status", {**_status(readyReplicas=1), "spec": {"replicas": 9}}, _M2),
        apply("s/status", _bare("s"), _M2),
        apply("missing/status", _bare("missing", status={}), _M2),
        get("s"),
    ],
    "T043 lists by key": [
        apply("l", pool("l", template=_env(A="1", B="2"))),
        apply("l", pool("l", template=_env(B="2", A="1"))),
        apply("l", pool("l", template=_env("C", A="1")), _M2),
        apply("l", pool("l", template=_env("D", "C")), _M2),
        apply("l", pool("l", template=_env("A", "A"))),
        apply("l", pool("l", template={"env": [{"value": "x"}]})),
        apply("l", pool("l", template={"env": [{"name": 3}]})),
        apply("l", pool("l", template={"env": {}})),
        apply("l", pool("l", template={"env": [None]})),
        apply("l", pool("l", template={"env": []})),
        apply("l", pool("l", template={"tolerations": [{"key": "a"}, {"key": "a"}]})),
        apply("l", pool("l", template={"tolerations": [{"key": "b"}]}), _M2),
        apply("l", pool("l", template={"tolerations": [{"key": "b"}]}), _M2 + _FORCE),
        apply("l", pool("l", template={"nodeSelector": {"a": "1"}})),
        apply("l", pool("l", template={"nodeSelector": {"b": "1"}}), _M2),
        apply("l", pool("l", template={"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]})),
        apply("l", pool("l", template={"topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]}), _M2),
        apply("l", pool("l", template={"topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"}]}), _M2),
        apply("l", pool("l", template={"topologySpreadConstraints": [{"maxSkew": 2}]}), _M2),
        get("l"),
    ],
    "T044 unknown fields": [
        apply("u", pool("u")),
        *[apply("u", pool("u", timedThing={}), _M1 + query) for query in ("", "&fieldValidation=Ignore", "&fieldValidation=Warn", "&fieldValidation=Strict", "&dryRun=All")],
        apply("u", {**pool("u"), "extra": 1}),
        apply("u", pool("u", metadata={"frob": 1})),
        apply("u", '{"apiVersion":"clrk.apoxy.dev/v1alpha1","kind":"WorkerPool","metadata":{"name":"u"},"spec":{"replicas":1,"replicas":2,"template":{"image":"a"}}}'),
        apply("u", _YAML.replace("name: y", "name: u") + "  replicas: 4\n", _M1 + "&fieldValidation=Strict&force=true"),
        get("u"),
    ],
    "T045 giving up": [
        apply("g", pool("g", metadata={"labels": {"a": "1"}}, replicas=3, template=_env("A", "B"))),
        apply("g", _bare("g", spec={"replicas": 3}), _M2),
        apply("g", pool("g", template=_env("A"))),
        apply("g", _bare("g"), _M2),
        merge("g", {"metadata": {"labels": {"a": "2"}}}, "?fieldManager=kubectl-edit"),
        apply("g", pool("g", template=_env("A"))),
        apply("g", _bare("g"), _M3),
        get("g"),
    ],
    "conflicts": [
        create(pool("c", replicas=1, template={"imagePullPolicy": "Always"})),
        apply("c", pool("c", replicas=2, template={"imagePullPolicy": "Never"})),
        apply("c", pool("c", replicas=2, template={"imagePullPolicy": "Never"}), _M1 + "&force=false"),
        apply("c", pool("c", replicas=2, template={"imagePullPolicy": "Never"}), _M1 + _FORCE),
        apply("c", pool("c", replicas=3), _M2),
        update("c", edited("c", lambda value: value["spec"].update(replicas=7))),
        apply("c", pool("c", replicas=2, template={"imagePullPolicy": "Never"})),
        json_patch("c", [{"op": "replace", "path": "/spec/replicas", "value": 2}], "?fieldManager=m2"),
        apply("c", pool("c", replicas=2, template={"imagePullPolicy": "Never"})),
        apply("c", pool("c", replicas=2), _M1 + "&force=x"),
        send("scale", "PATCH", POOLS + "/c/scale?fieldManager=scaler", {"spec": {"replicas": 30}}, "application/merge-patch+json"),
        apply("c", pool("c", replicas=2)),
        send("scale", "PATCH", POOLS + "/c/scale?fieldManager=m5&force=true", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "c"}, "spec": {"replicas": 31}}, APPLY_PATCH),
        get("c"),
    ],
    "owners through other writes": [
        create(pool("o", metadata={"labels": {"a": "1"}}), "?fieldManager=m1"),
        merge("o", {"metadata": {"labels": {"b": "2"}}}, "?fieldManager=m2"),
        merge("o", {"metadata": {"labels": {"a": None}}}, "?fieldManager=m3"),
        merge("o", {"metadata": {"managedFields": [{}]}}),
        apply("o", pool("o", replicas=4)),
        merge("o", {"metadata": {"managedFields": []}}),
        merge("o", {"metadata": {"managedFields": None}}),
        merge("o", {"metadata": {"managedFields": [_ENTRY]}}),
        merge("o", {"metadata": {"managedFields": [_ENTRY | {"operation": "Frob"}]}}),
        merge("o", {"metadata": {"managedFields": [_ENTRY | {"fieldsV1": {"f:spec": 3}}]}}),
        json_patch("o", [{"op": "remove", "path": "/metadata/managedFields/0"}]),
        create(pool("ua"), headers={"User-Agent": "kubectl/v1.37 (linux)"}),
        create(pool("ub"), headers={"User-Agent": "x" * 200 + "/1"}),
        create(pool("uc"), headers={"User-Agent": ""}),
        create(pool("ud"), headers={"User-Agent": "no slash here"}),
        create(pool("uf"), headers={"User-Agent": "/leading"}),
    ],
    "more owners than are kept": [
        create(pool("o"), "?fieldManager=u00"),
        *[merge("o", {"metadata": {"labels": {f"l{number}": "x"}}}, f"?fieldManager=u{number:02}") for number in range(1, 14)],
        merge("o/status", {"status": {"readyReplicas": 1}}, "?fieldManager=u14"),
        apply("o", pool("o", metadata={"labels": {"l1": "x", "l2": "x"}}), "?fieldManager=u15"),
        apply("o", pool("o", metadata={"labels": {"l1": "y"}}), "?fieldManager=u16"),
        merge("o", {"metadata": {"labels": {"l1": "z"}}}, "?fieldManager=u17"),
    ],
    "kubectl begins to apply on the server": [
        create(pool("k", metadata={"annotations": {_LAST_APPLIED: json.dumps(pool("k"))}}, replicas=2), "?fieldManager=kubectl-client-side-apply"),
        merge("k", {"spec": {"replicas": 3}, "metadata": {"annotations": {_LAST_APPLIED: "{}"}}}, "?fieldManager=kubectl-client-side-apply"),
        apply("k", pool("k", replicas=4), "?fieldManager=kubectl"),
        apply("k", pool("k", replicas=4), "?fieldManager=kubectl&force=true"),
        apply("k", pool("k"), "?fieldManager=kubectl&force=true"),
        get("k"),
    ],
    "before the first apply": [
        create(pool("b", replicas=2)),
        merge("b", {"metadata": {"managedFields": [{}]}}),
        merge("b", {"spec": {"replicas": 3}}, "?fieldManager=m2"),
        apply("b", pool("b", replicas=4)),
        apply("b", pool("b", replicas=4), _M1 + _FORCE),
        merge("b/status", {"status": {"readyReplicas": 1}}, _M3),
        get("b"),
    ],
    "null": [apply("n", pool("n")), apply("n", {**_bare("n"), "spec": None}, _M2)],
    "a map that is given up": [apply("n", pool("n", imageCache={"enabled": True})), apply("n", pool("n", imageCache={}))],
    "empty metadata": [apply("e", pool("e", metadata={"labels": {}})), merge("e", {}, kind="empty metadata")],
    "broken bodies": [
        *[apply("b", text) for text in ("", "{", "[]", "text", "null", "3", "a: [", "a: b\na: c", "- a")],
        apply("b", {**pool("b"), "spec": []}),
        apply("b", {**pool("b"), "metadata": []}),
        apply("b", {**pool("b"), "metadata": "x"}),
        apply("b", pool("b", replicas="x")),
        apply("b", pool("b", replicas=-1)),
        apply("b", pool("b", metadata={"labels": {"bad key": "x"}})),
        apply("b", pool("b", metadata={"labels": {"a": 1}})),
    ],
}
