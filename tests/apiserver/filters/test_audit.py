"""The audit log of a real server: which requests are in it, in which stages, and how much of them."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from apiserver.access import standalone
from apiserver.app import build_app
from apiserver.audit.file import AuditLogConfig
from apiserver.audit.log import AuditConfig
from apiserver.certificates import Certificates, KeyPair
from apiserver.config import Config
from storage.errors import Unavailable
from storage.memory import MemoryStore
from tests.apiserver.running import Listening, listening

GADGETS = "/apis/example.dev/v1/namespaces/ns1/gadgets"
GADGET = {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": {"name": "a"}, "spec": {"note": "secret"}}
Event = dict[str, Any]


class Audited:
    """A server with an audit log."""

    def __init__(self, listener: Listening, client: aiohttp.ClientSession, file: Path) -> None:
        self.listener = listener
        self.client = client
        self.file = file

    async def events(self, audit_id: str, *, last: str = "ResponseComplete") -> list[Event]:
        """The events of a request, as soon as its last one has been written."""
        found: list[Event] = []
        try:
            async with asyncio.timeout(10):
                while not any(event["stage"] == last for event in found):
                    await asyncio.sleep(0.001)
                    lines = [line for line in self.file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
                    found = [event for event in map(json.loads, lines) if event["auditID"] == audit_id]
        except TimeoutError:
            pytest.fail(f"there is no {last} among {found}")
        return found


Serve = Callable[[str], Any]


@pytest.fixture
def audited(tmp_path: Path, pki: Certificates, store: MemoryStore, config: Config) -> Serve:
    """Serve with a policy, given as its rules in YAML."""

    @asynccontextmanager
    async def serve(policy: str) -> AsyncIterator[Audited]:
        tmp_path.joinpath("policy.yaml").write_text(f"apiVersion: audit.k8s.io/v1\nkind: Policy\n{policy}")
        file = tmp_path / "audit.log"
        audit = AuditConfig(policy_file=tmp_path / "policy.yaml", log=AuditLogConfig(path=str(file)))
        app = build_app(dataclasses.replace(config, audit=audit), store, standalone([pki.authority.certificate]))
        async with app.running():
            await app.wait_ready()
            async with listening(pki, app.handle, app=app) as listener, listener.client(pki.admin) as client:
                yield Audited(listener, client, file)

    return serve


async def test_a_write_has_its_stages_with_who_what_and_the_outcome(audited: Serve) -> None:
    async with audited("rules: [{level: Metadata}]") as here:
        headers = {"Audit-ID": "w", "User-Agent": "tester", "X-Forwarded-For": "192.0.2.7, rubbish"}
        async with here.client.post(f"{GADGETS}?fieldManager=me", json=GADGET, headers=headers) as response:
            assert response.headers["Audit-Id"] == "w"
        received, complete = await here.events("w")
    assert received["stage"] == "RequestReceived"
    assert received["stageTimestamp"] == received["requestReceivedTimestamp"] == complete["requestReceivedTimestamp"]
    assert "responseStatus" not in received
    assert complete["stageTimestamp"] > complete["requestReceivedTimestamp"]
    del complete["stageTimestamp"], complete["requestReceivedTimestamp"]
    assert complete["user"].pop("extra")["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")
    assert complete == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "w",
        "stage": "ResponseComplete",
        "requestURI": f"{GADGETS}?fieldManager=me",
        "verb": "create",
        "user": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "sourceIPs": ["192.0.2.7", "127.0.0.1"],
        "userAgent": "tester",
        "objectRef": {"resource": "gadgets", "namespace": "ns1", "name": "a", "apiGroup": "example.dev", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "annotations": {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""},
    }


async def test_bodies_are_in_it_at_the_levels_that_want_them(audited: Serve) -> None:
    policy = """
omitManagedFields: true
omitStages: [RequestReceived]
rules:
- {level: RequestResponse, verbs: [create, list]}
- {level: Request, verbs: [patch], omitManagedFields: false}
- {level: Metadata, verbs: [get]}
"""
    async with audited(policy) as here:
        await here.client.post(GADGETS, json=GADGET, headers={"Audit-ID": "c"})
        (event,) = await here.events("c")
        assert event["requestObject"] == GADGET
        assert event["responseObject"]["metadata"]["uid"]
        assert "managedFields" not in event["responseObject"]["metadata"]
        patch = {"Content-Type": "application/apply-patch+yaml", "Audit-ID": "p"}
        await here.client.patch(
            f"{GADGETS}/a?fieldManager=me&force=true", data=b"apiVersion: example.dev/v1\nkind: Gadget\n", headers=patch
        )
        (event,) = await here.events("p")
        assert event["requestObject"] == {"apiVersion": "example.dev/v1", "kind": "Gadget"}
        assert "responseObject" not in event
        await here.client.get(f"{GADGETS}/a", headers={"Audit-ID": "g"})
        (event,) = await here.events("g")
        assert not event.keys() & {"requestObject", "responseObject"}
        accept = {"Audit-ID": "l", "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        await here.client.get(f"{GADGETS}?includeObject=Object", headers=accept)
        (event,) = await here.events("l")
        assert event["responseObject"]["kind"] == "Table"
        assert "managedFields" not in event["responseObject"]["rows"][0]["object"]["metadata"]
        await here.client.delete(f"{GADGETS}/a", headers={"Audit-ID": "d"})
        await here.client.get(f"{GADGETS}/a", headers={"Audit-ID": "last"})
        await here.events("last")
        assert b'"d"' not in here.file.read_bytes()


async def test_a_deletion_is_told_at_every_level(audited: Serve) -> None:
    async with audited("rules: [{level: Metadata}]") as here:
        await here.client.post(GADGETS, json=GADGET)
        async with here.client.delete(f"{GADGETS}/a", headers={"Audit-ID": "d"}) as response:
            told = await response.json()
        event = (await here.events("d"))[-1]
        assert event["responseStatus"] == {"metadata": {}, "status": "Success", "details": told["details"], "code": 200}
        assert "responseObject" not in event


async def test_whoever_was_turned_away_is_in_it(audited: Serve, user: KeyPair) -> None:
    async with audited("rules: [{level: Metadata}]") as here:
        async with here.listener.client(user) as alice:
            await alice.get(f"{GADGETS}/a", headers={"Audit-ID": "denied"})
        async with here.listener.client(None) as nobody:
            await nobody.get(f"{GADGETS}/a", headers={"Audit-ID": "unknown"})
        await here.client.get(f"{GADGETS}/a?timeout=nonsense", headers={"Audit-ID": "refused"})
        denied = (await here.events("denied"))[-1]
        assert denied["user"]["username"] == "alice"
        assert denied["responseStatus"]["reason"] == "Forbidden"
        assert denied["responseStatus"]["code"] == 403
        assert denied["annotations"] == {"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""}
        unknown = await here.events("unknown")
        assert unknown[-1]["user"] == {}
        assert unknown[-1]["responseStatus"]["code"] == 401
        (refused,) = await here.events("refused")
        assert refused["responseStatus"]["code"] == 400


async def test_who_acts_as_somebody_else_is_in_it(audited: Serve) -> None:
    async with audited("rules: [{level: Metadata}]") as here:
        await here.client.get(f"{GADGETS}/a", headers={"Audit-ID": "as", "Impersonate-User": "bob", "Impersonate-Group": "dev"})
        event = (await here.events("as"))[-1]
        assert event["user"]["groups"] == ["system:masters", "system:authenticated"]
        assert event["impersonatedUser"] == {"username": "bob", "groups": ["dev", "system:authenticated"]}
        assert event["authenticationMetadata"] == {"impersonationConstraint": "impersonate:user-info"}
        assert event["responseStatus"]["code"] == 403


async def test_a_watch_is_told_of_when_it_begins(audited: Serve) -> None:
    async with audited("rules: [{level: RequestResponse}]") as here:
        async with here.client.get(f"{GADGETS}?watch=1", headers={"Audit-ID": "w"}):
            received, started = await here.events("w", last="ResponseStarted")
            assert (received["stage"], started["stage"]) == ("RequestReceived", "ResponseStarted")
            assert started["responseStatus"] == {"metadata": {}, "code": 200}
        # The client goes without a word: that is the end of the request too.
        assert (await here.events("w"))[-1]["responseStatus"]["code"] == 200


async def test_a_failure_of_the_server_is_a_panic(
    audited: Serve, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret of the inside")

    async def away(*_: object) -> None:
        raise Unavailable("nobody is there")

    async with audited("rules: [{level: Metadata}]") as here:
        monkeypatch.setattr(store, "create", broken)
        await here.client.post(GADGETS, json=GADGET, headers={"Audit-ID": "bug"})
        panic = (await here.events("bug", last="Panic"))[-1]
        assert panic["responseStatus"]["code"] == 500
        assert panic["responseStatus"]["message"] == "APIServer panic'd: ZeroDivisionError"
        monkeypatch.setattr(store, "create", away)
        await here.client.post(GADGETS, json=GADGET, headers={"Audit-ID": "away"})
        assert (await here.events("away"))[-1]["responseStatus"]["code"] == 503


async def test_a_client_that_goes_and_a_request_out_of_time_have_their_ends(
    audited: Serve, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def never() -> int:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with audited("rules: [{level: Metadata}]") as here:
        monkeypatch.setattr(store, "current_revision", never)
        await here.client.get(f"{GADGETS}/a?timeout=10ms", headers={"Audit-ID": "slow"})
        assert (await here.events("slow"))[-1]["responseStatus"]["code"] == 504
        gone = asyncio.create_task(here.client.get(f"{GADGETS}/a", headers={"Audit-ID": "gone"}))
        await here.events("gone", last="RequestReceived")
        gone.cancel()
        assert (await here.events("gone"))[-1]["responseStatus"]["code"] == 499


async def test_clients_cannot_forge_a_line(audited: Serve) -> None:
    async with audited("rules: [{level: Metadata}]") as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.listener.port, ssl=here.listener.tls(here.listener.pki.admin))
        agent = b"\xff\xc2\x85" + b"x" * 5000
        writer.write(b"GET /livez?%0a%22 HTTP/1.1\r\nHost: x\r\nAudit-ID: f\r\nUser-Agent: " + agent + b"\r\nConnection: close\r\n\r\n")
        await reader.read()
        writer.close()
        event = (await here.events("f"))[-1]
        assert event["requestURI"] == "/livez?%0a%22"
        assert event["userAgent"].endswith("...TRUNCATED")
        assert len(event["userAgent"]) < 1100


async def test_each_of_many_requests_has_each_of_its_events_once(audited: Serve, pki: Certificates) -> None:
    async with audited("rules: [{level: Metadata, omitStages: [RequestReceived]}]") as here:
        paths = ["/livez", GADGETS, f"{GADGETS}/none", "/nowhere", "/metrics", f"{GADGETS}?limit=x"]
        ids = [f"r{number}" for number in range(300)]
        answers = await asyncio.gather(
            *(here.client.get(paths[number % len(paths)], headers={"Audit-ID": audit_id}) for number, audit_id in enumerate(ids))
        )
        for audit_id, answer in zip(ids, answers, strict=True):
            (event,) = await here.events(audit_id)
            assert event["responseStatus"]["code"] == answer.status
