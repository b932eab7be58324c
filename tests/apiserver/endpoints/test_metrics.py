"""What `/metrics` tells, under the names that dashboards for Kubernetes ask for."""

from __future__ import annotations

import json
from random import Random

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from apiserver.certificates import KeyPair
from storage.errors import Unavailable
from storage.memory import MemoryStore
from tests.apiserver.process import ROOT
from tests.apiserver.running import Listening
from tests.apiserver.status_assertions import assert_status

GADGETS = "/apis/example.dev/v1/namespaces/ns1/gadgets"
GADGET = {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": {"name": "a"}, "spec": {}}


class Scraped:
    """The samples of one scrape."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self.samples = [sample for family in self.families for sample in family.samples]

    def value(self, name: str, **labels: str) -> float:
        """The sum of the samples of this name with these labels among theirs."""
        return sum(sample.value for sample in self.samples if sample.name == name and labels.items() <= sample.labels.items())

    def series(self) -> set[tuple[str, str]]:
        return {(sample.name, json.dumps(sample.labels, sort_keys=True)) for sample in self.samples}


async def scrape(client: aiohttp.ClientSession) -> Scraped:
    async with client.get("/metrics") as response:
        assert response.status == 200
        assert response.content_type == "text/plain"
        return Scraped(await response.text())


@pytest.fixture
async def gadget(client: aiohttp.ClientSession) -> None:
    async with client.post(GADGETS, json=GADGET) as response:
        assert response.status == 201


async def test_requests_are_counted_with_the_labels_of_kube_apiserver(client: aiohttp.ClientSession, gadget: None) -> None:
    patch = {"Content-Type": "application/merge-patch+json"}
    apply = {"Content-Type": "application/apply-patch+yaml"}
    async with client.get(f"{GADGETS}/a") as response:
        size = len(await response.read())
    for path in (f"{GADGETS}/none", GADGETS, "/apis/example.dev/v1/gadgets", "/apis/example.dev/v1/gadgets?watch=1&timeoutSeconds=1"):
        await (await client.get(path)).read()
    await client.patch(f"{GADGETS}/a?dryRun=All", data=b"{}", headers=patch)
    await client.patch(f"{GADGETS}/a?fieldManager=me", json=GADGET, headers=apply)
    await client.delete(GADGETS)
    scraped = await scrape(client)
    common = {"group": "example.dev", "version": "v1", "resource": "gadgets", "subresource": "", "component": "apiserver"}
    for verb, scope, code, dry_run in (
        ("POST", "resource", "201", ""),
        ("GET", "resource", "200", ""),
        ("GET", "resource", "404", ""),
        ("LIST", "namespace", "200", ""),
        ("LIST", "cluster", "200", ""),
        ("WATCH", "cluster", "200", ""),
        ("PATCH", "resource", "200", "All"),
        ("APPLY", "resource", "200", ""),
        ("DELETE", "namespace", "200", ""),
    ):
        assert scraped.value("apiserver_request_total", **common, verb=verb, scope=scope, code=code, dry_run=dry_run) == 1, verb
        assert scraped.value("apiserver_request_duration_seconds_count", **common, verb=verb, scope=scope, dry_run=dry_run) >= 1
    assert scraped.value("apiserver_request_duration_seconds_bucket", verb="GET", le="60", **common) == 2
    assert scraped.value("apiserver_request_sli_duration_seconds_bucket", verb="GET", le="+Inf", **common) == 2
    assert scraped.value("apiserver_request_sli_duration_seconds_bucket", verb="PATCH", **common) == 0
    assert scraped.value("apiserver_response_sizes_sum", verb="GET", **common) > size
    assert scraped.value("apiserver_response_sizes_count", verb="LIST", **common) == 2


async def test_what_is_held_and_stored_is_told(client: aiohttp.ClientSession, gadget: None, store: MemoryStore) -> None:
    scraped = await scrape(client)
    labels = {"group": "example.dev", "resource": "gadgets"}
    revision = await store.current_revision()
    assert scraped.value("apiserver_storage_objects", resource="gadgets.example.dev") == 1
    assert scraped.value("apiserver_resource_objects", **labels) == 1
    assert scraped.value("apiserver_watch_cache_resource_version", **labels) == revision
    assert scraped.value("apiserver_watch_cache_events_received_total", **labels) == 1
    assert scraped.value("apiserver_watch_cache_initializations_total", **labels) == 1
    assert scraped.value("watch_cache_capacity", **labels) == 100_000
    assert scraped.value("apiserver_storage_size_bytes") == await store.size_bytes()
    assert scraped.value("etcd_request_duration_seconds_count", operation="create", **labels) == 1
    assert scraped.value("etcd_requests_total", operation="list", **labels) == 1
    assert scraped.value("etcd_request_errors_total") == 0
    assert scraped.value("apiserver_current_inflight_requests", request_kind="readOnly") == 1
    assert scraped.value("process_resident_memory_bytes") > 0
    assert scraped.value("process_start_time_seconds") > 0


async def test_watches_and_their_events_are_counted(client: aiohttp.ClientSession, gadget: None) -> None:
    labels = {"group": "example.dev", "version": "v1", "resource": "gadgets"}
    async with client.get(f"{GADGETS}?watch=1") as one, client.get(f"{GADGETS}?watch=1") as other:
        for watch in (one, other):
            size = len(await watch.content.readline())
        scraped = await scrape(client)
        assert scraped.value("apiserver_longrunning_requests", verb="WATCH", scope="namespace", **labels) == 2
        assert scraped.value("apiserver_watch_events_total", **labels) == 2
        async with client.delete(f"{GADGETS}/a") as response:
            assert response.status == 200
        for watch in (one, other):
            size += len(await watch.content.readline())
        scraped = await scrape(client)
        assert scraped.value("apiserver_watch_events_total", **labels) == 4
        assert scraped.value("apiserver_watch_events_sizes_count", **labels) == 4
        assert 2 * size - 4 <= scraped.value("apiserver_watch_events_sizes_sum", **labels) + size <= 3 * size + 4
    while (scraped := await scrape(client)).value("apiserver_request_total", verb="WATCH", code="200") < 2:
        pass
    assert scraped.value("apiserver_longrunning_requests") == 0


async def test_clients_cannot_make_the_series_grow(client: aiohttp.ClientSession) -> None:
    """CVE-2020-8552: verbs, paths, resources and parameters that mean nothing are counted together."""

    async def rubbish(random: Random) -> None:
        word = f"w{random.randrange(10**9)}"
        method = random.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS", f"X{word}".upper()])
        path = random.choice(
            [
                f"/{word}",
                f"/apis/{word}/v1/things",
                f"/apis/example.dev/v1/{word}",
                f"{GADGETS}/a/{word}",
                f"/apis/example.dev/{word}/gadgets/a",
            ]
        )
        query = random.choice([{}, {"dryRun": word}, {word: word}])
        async with client.request(method, path, params=query, headers={"User-Agent": word, "Content-Type": word}):
            pass

    random = Random(1)
    for _ in range(300):
        await rubbish(random)
    before = (await scrape(client)).series()
    for _ in range(300):
        await rubbish(random)
    after = await scrape(client)
    known = {json.dumps(sample.labels, sort_keys=True) for sample in after.samples}
    assert not any(f"w{digit}" in labels for labels in known for digit in range(10))
    # Only more combinations of the few values that there are.
    assert len(after.series()) <= len(before) * 1.2
    assert after.value("apiserver_request_total", resource="other") > 0
    assert after.value("apiserver_request_total", subresource="other") > 0
    assert after.value("apiserver_request_total", verb="other") > 0


async def test_the_page_has_each_of_them(client: aiohttp.ClientSession) -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    names = {f"{family.name}_total" if family.type == "counter" else family.name for family in (await scrape(client)).families}
    assert {name for name in names if not name.startswith("process_") and f"`{name}`" not in page} == set()


async def test_not_everybody_may_read_them(server: Listening, user: KeyPair) -> None:
    async with server.client(user) as alice, alice.get("/metrics") as response:
        await assert_status(response, 403, "Forbidden")
    async with server.client(None) as nobody, nobody.get("/metrics") as response:
        await assert_status(response, 401, "Unauthorized")


async def test_who_asks_and_whether_they_may_is_counted_with_the_labels_of_kube_apiserver(server: Listening, user: KeyPair) -> None:
    async with server.client(server.pki.admin) as admin, server.client(user) as alice, server.client(None) as nobody:
        for client, headers in (
            (alice, {}),
            (nobody, {}),
            (admin, {"Impersonate-User": "bob@example.dev"}),
            (alice, {"Impersonate-User": "bob"}),
        ):
            async with client.get(GADGETS, headers=headers) as response:
                assert response.status in (401, 403)
        scraped = await scrape(admin)
    # The last one is the scrape itself.
    for name, label, counts in (
        ("authentication_attempts", "result", {"success": 4, "failure": 1}),
        ("authentication_duration_seconds_count", "result", {"success": 4, "failure": 1}),
        ("authenticated_user_requests", "username", {"admin": 2, "other": 2}),
        ("authorization_attempts_total", "result", {"allowed": 1, "no-opinion": 3}),
        ("authorization_duration_seconds_count", "result", {"allowed": 1, "no-opinion": 3}),
        ("apiserver_impersonation_attempts_total", "mode", {"user-info": 1, "": 1}),
        ("apiserver_impersonation_authorization_attempts_total", "mode", {"user-info": 3, "legacy": 1}),
    ):
        found = {sample.labels[label] for sample in scraped.samples if sample.name == name and sample.value}
        assert {value: scraped.value(name, **{label: value}) for value in found} == counts, name
    assert scraped.value("apiserver_impersonation_authorization_attempts_total", mode="user-info", decision="denied") == 1
    assert scraped.value("authentication_duration_seconds_bucket", result="success", le="16.384") == 4


async def test_they_are_told_while_the_store_is_away(
    client: aiohttp.ClientSession, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> int:
        raise Unavailable("nobody is there")

    monkeypatch.setattr(store, "size_bytes", away)
    scraped = await scrape(client)
    assert ("apiserver_storage_size_bytes", "{}") not in scraped.series()
    assert scraped.value("apiserver_storage_objects") == 0


async def test_openmetrics_is_written_for_who_asks_for_it(client: aiohttp.ClientSession) -> None:
    async with client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}) as response:
        assert response.content_type == "application/openmetrics-text"
        assert (await response.text()).endswith("# EOF\n")
    async with client.post("/metrics") as response:
        await assert_status(response, 405, "MethodNotAllowed")
