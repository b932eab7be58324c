"""The audit logs of both servers: of each request the same events, but for what is listed here."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.differential.conftest import Pair, paired
from tests.differential.exchange import WORKERS, Request, filled
from tests.differential.lockstep import Tally
from tests.differential.memory import Memory
from tests.differential.objects import apply, create, delete, delete_all, get, json_patch, listed, merge, pool, update
from tests.differential.side import Side, side

pytestmark = [pytest.mark.differential, pytest.mark.slow]

Event = dict[str, Any]
LEVELS = ("Metadata", "Request", "RequestResponse")
_YAML = """
apiVersion: clrk.apoxy.dev/v1alpha1
kind: WorkerPool
metadata: {name: of-yaml}
spec: {replicas: 1, template: {image: registry.example/w:1}}
"""
_TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
_OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1"}
REQUESTS = {
    "create": create(pool("a", replicas=1)),
    "create-again": create(pool("a", replicas=1)),
    "create-yaml": create(_YAML, content_type="application/yaml"),
    "create-generated": create(pool("g", metadata={"generateName": "g-"}, replicas=1)),
    "create-dry": create(pool("d", replicas=1), "?dryRun=All&fieldManager=me"),
    "create-invalid": create(pool("i", replicas=-1)),
    "create-broken": create('{"kind":'),
    "create-of-no-type": create("x", content_type="text/x"),
    "create-unknown": create(pool("u", replicas=1, unknown=1)),
    "create-strict": create(pool("s", replicas=1, unknown=1), "?fieldValidation=Strict"),
    "get": get("a"),
    "get-nothing": get("nothing"),
    "get-yaml": get("a", headers={"Accept": "application/yaml"}),
    "get-table": get("a", headers=_TABLE),
    "get-metadata": get("a", headers={"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}),
    "get-of-no-type": get("a", headers={"Accept": "text/x"}),
    "get-status": get("a/status"),
    "get-scale": get("a/scale"),
    "get-no-subresource": get("a/nothing"),
    "get-forwarded": get("a", headers={"X-Forwarded-For": "10.0.0.1, 10.0.0.2", "X-Real-Ip": "10.0.0.3"}),
    "list": listed(),
    "list-selected": listed("?labelSelector=a%3Db&limit=3"),
    "list-one": listed("?fieldSelector=metadata.name%3Da"),
    "list-table": listed(headers=_TABLE),
    "list-wrong": listed("?labelSelector=("),
    "list-no-kind": listed(path=WORKERS.replace("localworkers", "nothing")),
    "watch": listed("?watch=1&timeoutSeconds=1"),
    "update": update("a", pool("a", replicas=2)),
    "update-stale": update("a", pool("a", metadata={"resourceVersion": "1"}, replicas=2)),
    "update-other": update("a", pool("b", replicas=2)),
    "patch": merge("a", {"spec": {"replicas": 4}}),
    "patch-status": merge("a/status", {"status": {"readyReplicas": 4}}),
    "patch-scale": merge("a/scale", {"spec": {"replicas": 8}}),
    "patch-json": json_patch("a", [{"op": "replace", "path": "/spec/replicas", "value": 5}]),
    "patch-json-wrong": json_patch("a", [{"op": "remove", "path": "/spec/nothing"}]),
    "apply-new": apply("ap", pool("ap", replicas=1)),
    "apply": apply("ap", pool("ap", replicas=3)),
    "apply-conflict": apply("ap", pool("ap", replicas=9), "?fieldManager=other"),
    "delete-no-verb": delete("a/status"),
    "forbidden": listed(identity="alice"),
    "forbidden-create": create(pool("f", replicas=1), identity="alice"),
    "unauthorized": listed(identity=""),
    "as-somebody": listed(headers={"Impersonate-User": "bob", "Impersonate-Group": "dev"}),
    "as-a-master": get("a", headers={"Impersonate-User": "bob", "Impersonate-Group": "system:masters"}),
    "delete-dry": delete("a", "?dryRun=All"),
    "delete-other": delete("a", value={**_OPTIONS, "preconditions": {"uid": "other"}}),
    "delete": delete("a", value={**_OPTIONS, "propagationPolicy": "Background"}),
    "delete-all": delete_all(),
}
DIFFERENCES = {
    # What the client has sent is told, with what is unknown in it, and when it is refused as a whole.
    "create-unknown ResponseComplete.requestObject.spec.unknown",
    "create-strict ResponseComplete.objectRef.name",
    "create-strict ResponseComplete.requestObject",
    "delete-other ResponseComplete.requestObject.apiVersion",
    "delete ResponseComplete.requestObject.apiVersion",
    # What the client has been told is told, where nobody reads it in kube-apiserver's chain.
    *(f"{name} ResponseComplete.responseObject" for name in ("get-of-no-type", "list-no-kind")),
    *(f"{name} ResponseComplete.responseStatus" for name in ("get-of-no-type", "list-no-kind")),
    "unauthorized stages",
    # docs/differences.md, `scale-selector`
    "get-scale ResponseComplete.responseObject.status.selector",
    "patch-scale ResponseComplete.responseObject.status.selector",
}

_LATENCY = "apiserver.latency.k8s.io/"
"""How the annotations begin that kube-apiserver adds to what takes long."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_AGE = re.compile(r"(\d+m)?\d+s")
_GENERATED = re.compile(r"\bg-[a-z0-9]{5}\b")


@dataclass(frozen=True, slots=True)
class Audited:
    """The two servers, with an audit log each."""

    pair: Pair
    logs: tuple[Path, Path]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """For each level there is a namespace: `metadata` and so on."""
    folder = tmp_path_factory.mktemp("audited")
    rules = [{"level": level, "namespaces": [level.lower()]} for level in LEVELS]
    policy = folder / "policy"
    policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
    logs = folder / "real.log", folder / "ours.log"
    real_flags, our_flags = ((f"--audit-policy-file={policy}", f"--audit-log-path={log}") for log in logs)
    with paired(folder, real_flags=real_flags, our_flags=our_flags) as pair:
        yield Audited(pair, logs)


@pytest.mark.parametrize("level", LEVELS)
async def test_both_write_down_the_same(audited: Audited, tally: Tally, level: str) -> None:
    namespace, pair = level.lower(), audited.pair
    body = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}).encode()
    async with side("kube-apiserver", pair.real_url, pair.contexts) as real, side("this server", pair.our_url, pair.contexts) as ours:
        await real.ask("POST", "/api/v1/namespaces", body, {"Content-Type": "application/json"}, "admin")
        for name, request in REQUESTS.items():
            for one in (real, ours):
                await _send(one, replace(request, headers={**request.headers, "Audit-ID": f"{level}-{name}"}), namespace)
            tally.exchanges["audited"] += 1
    found = set()
    for name in REQUESTS:
        events = [await _events(log, f"{level}-{name}") for log in audited.logs]
        found |= {f"{name} {where}" for where in _differences(*events)}
    assert found <= DIFFERENCES
    if level == "RequestResponse":
        assert found == DIFFERENCES


async def _send(one: Side, request: Request, namespace: str) -> None:
    assert request.body is None or isinstance(request.body, str)
    body = request.body.encode() if request.body is not None else None
    await one.ask(request.method, filled(request.path, Memory(namespace)), body, request.headers, request.identity)


async def _events(log: Path, audit_id: str) -> dict[str, Event]:
    """The events of a request by their stage, as soon as the last one has been written."""
    async with asyncio.timeout(60):
        while True:
            written = await asyncio.to_thread(log.read_bytes)
            lines = [line for line in written.splitlines(keepends=True) if line.endswith(b"\n")]
            events = {event["stage"]: event for event in map(json.loads, lines) if event["auditID"] == audit_id}
            # Of whom it does not know, kube-apiserver writes no more than that.
            if "ResponseComplete" in events or ("ResponseStarted" in events and "RequestReceived" not in events):
                return events
            await asyncio.sleep(0.01)


def _differences(real: dict[str, Event], ours: dict[str, Event]) -> Iterator[str]:
    if real.keys() != ours.keys():
        yield "stages"
    for stage in real.keys() & ours.keys():
        yield from _compared(_settled(real[stage]), _settled(ours[stage]), stage)


def _settled(value: Any) -> Any:
    """Without what cannot be the same."""
    if isinstance(value, dict):
        kept = {key: inner for key, inner in value.items() if not key.startswith(_LATENCY)}
        return {key: "(a version)" if key == "resourceVersion" else _settled(inner) for key, inner in kept.items()}
    if isinstance(value, list):
        return [_settled(inner) for inner in value]
    if not isinstance(value, str):
        return value
    if _AGE.fullmatch(value):
        return "(an age)"
    return _GENERATED.sub("(a name)", _UID.sub("(a uid)", _TIME.sub(r"(a time\1)" if "." not in value else "(a time in µs)", value)))


def _compared(real: Any, ours: Any, path: str) -> Iterator[str]:
    if isinstance(real, dict) and isinstance(ours, dict) and not path.endswith(".responseStatus"):
        for key in real.keys() | ours.keys():
            yield from _compared(real.get(key), ours.get(key), f"{path}.{key}")
    elif real != ours:
        yield path
