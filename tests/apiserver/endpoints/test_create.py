"""POST of an object, over real HTTP."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import aiohttp
import pytest

from tests.apiserver.endpoints.gadget_requests import GADGETS, JSON, YAML, gadget
from tests.apiserver.status_assertions import assert_status


async def test_a_new_object_is_answered_with_201(client: aiohttp.ClientSession) -> None:
    async with client.post(GADGETS, json=gadget(spec={})) as response:
        created = await response.json()
        assert response.status == 201
    assert created["spec"] == {"replicas": 1}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", created["metadata"]["creationTimestamp"])
    async with client.get(f"{GADGETS}/x") as response:
        assert await response.json() == created


async def test_an_existing_name_is_told(client: aiohttp.ClientSession) -> None:
    """T019"""
    await client.post(GADGETS, json=gadget())
    async with client.post(GADGETS, json=gadget()) as response:
        status = await assert_status(response, 409, "AlreadyExists")
    assert status["message"] == 'gadgets.example.dev "x" already exists'
    assert status["details"] == {"name": "x", "group": "example.dev", "kind": "gadgets"}
    async with client.post(GADGETS, json=gadget(generateName="pool-")) as response:
        status = await assert_status(response, 409, "AlreadyExists")
    assert status["message"].startswith('gadgets.example.dev "x" already exists, the server was not able to generate a unique name')
    assert status["details"] == {"name": "x", "group": "example.dev", "kind": "gadgets", "retryAfterSeconds": 1}


async def test_generated_names_are_a_prefix_and_five_unambiguous_characters(client: aiohttp.ClientSession) -> None:
    """T019"""

    async def create(base: str) -> str:
        async with client.post(GADGETS, json=gadget("", generateName=base)) as response:
            assert response.status == 201, await response.text()
            name: str = (await response.json())["metadata"]["name"]
            return name

    names = await asyncio.gather(*(create("pool-") for _ in range(50)))
    assert len(set(names)) == 50
    assert all(re.fullmatch("pool-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)
    assert len(await create("b" * 100)) == 63


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            gadget(""), 'Gadget.example.dev "" is invalid: metadata.name: Required value: name or generateName is required', id="none"
        ),
        pytest.param(gadget("Bad_Name"), 'metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must', id="bad"),
        pytest.param(gadget("", generateName="g" * 300), "must be no more than 253 characters", id="long-prefix"),
        pytest.param({**gadget(), "kind": "Widget"}, 'kind: Invalid value: "Widget": must be Gadget', id="other-kind"),
    ],
)
async def test_names_and_kinds_that_cannot_be_are_invalid(client: aiohttp.ClientSession, body: dict[str, Any], message: str) -> None:
    """T019, T020"""
    async with client.post(GADGETS, json=body) as response:
        assert message in (await assert_status(response, 422, "Invalid"))["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            gadget(namespace="ns2"),
            "the namespace of the provided object does not match the namespace sent on the request",
            id="namespace",
        ),
        pytest.param(
            {**gadget(), "apiVersion": "example.dev/v2"},
            "the API version in the data (example.dev/v2) does not match the expected API version (example.dev/v1)",
            id="version",
        ),
        pytest.param(gadget(resourceVersion="5"), "resourceVersion should not be set on objects to be created", id="resource-version"),
    ],
)
async def test_what_is_not_meant_for_this_address_is_refused(client: aiohttp.ClientSession, body: dict[str, Any], message: str) -> None:
    """T018, T020"""
    async with client.post(GADGETS, json=body) as response:
        assert (await assert_status(response, 400, "BadRequest"))["message"] == message
    async with client.get(f"{GADGETS}/x") as response:
        await assert_status(response, 404, "NotFound")


async def test_what_a_saved_copy_says_of_its_past_is_overwritten(client: aiohttp.ClientSession) -> None:
    """T018"""
    past: dict[str, Any] = {"uid": "old", "creationTimestamp": "2020-01-01T00:00:00Z", "generation": 7, "selfLink": "/x"}
    deletion: dict[str, Any] = {"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    async with client.post(GADGETS, json={**gadget(**past, **deletion), "status": {"phase": "old"}}) as response:
        created = await response.json()
    metadata = created["metadata"]
    assert metadata["generation"] == 1
    assert metadata["uid"] != "old"
    assert not metadata["creationTimestamp"].startswith("2020")
    assert metadata.keys().isdisjoint({"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"})
    assert "status" not in created


UNKNOWN = {**gadget(spec={"replicaz": 2}), "other": 1}
WARNINGS = ['299 - "unknown field \\"other\\""', '299 - "unknown field \\"spec.replicaz\\""']


@pytest.mark.parametrize(("validation", "warnings"), [("Ignore", []), ("Warn", WARNINGS), ("", WARNINGS)])
async def test_unknown_fields_are_pruned_and_told_of_if_wanted(client: aiohttp.ClientSession, validation: str, warnings: list[str]) -> None:
    """T015"""
    async with client.post(GADGETS, params={"fieldValidation": validation}, json=UNKNOWN) as response:
        assert response.status == 201
        assert response.headers.getall("Warning", []) == warnings
        created = await response.json()
    assert created["spec"] == {"replicas": 1}
    assert "other" not in created


async def test_unknown_and_duplicate_fields_are_refused_in_strict_mode(client: aiohttp.ClientSession) -> None:
    """T015"""
    body = '{"apiVersion":"example.dev/v1","kind":"Gadget","metadata":{"name":"x","name":"y"},"spec":{"replicaz":2}}'
    async with client.post(f"{GADGETS}?fieldValidation=Strict", data=body, headers=JSON) as response:
        status = await assert_status(response, 400, "BadRequest")
    assert status["message"] == (
        'Gadget in version "v1" cannot be handled as a Gadget: strict decoding error: '
        'duplicate field "metadata.name", unknown field "spec.replicaz"'
    )
    async with client.post(f"{GADGETS}?fieldValidation=Bogus", json=gadget()) as response:
        assert "fieldValidation: Unsupported value" in (await assert_status(response, 422, "Invalid"))["message"]


async def test_yaml_is_read_as_kubernetes_reads_it(client: aiohttp.ClientSession) -> None:
    """T017"""
    body = "apiVersion: example.dev/v1\nkind: Gadget\nmetadata:\n  name: y\n  name: x\nspec: {replicas: 0o17, note: 2020-01-01}\n"
    async with client.post(GADGETS, data=body, headers=YAML) as response:
        created = await response.json()
        assert response.headers.getall("Warning") == ['299 - "line 5: key \\"name\\" already set in map"']
    assert created["metadata"]["name"] == "x"
    assert created["spec"] == {"replicas": 15, "note": "2020-01-01"}


@pytest.mark.parametrize(("written", "stored"), [("3.0", 3), ("1e2", 100), ("9007199254740993", None), ("2147483648", None)])
async def test_integers_stay_integers(client: aiohttp.ClientSession, written: str, stored: int | None) -> None:
    """T017"""
    body = f'{{"apiVersion":"example.dev/v1","kind":"Gadget","metadata":{{"name":"x"}},"spec":{{"replicas":{written}}}}}'
    async with client.post(GADGETS, data=body, headers=JSON) as response:
        if stored is None:
            await assert_status(response, 422, "Invalid")
        else:
            assert f'"replicas":{stored}}}' in await response.text()


@pytest.mark.parametrize(
    ("written", "code", "message"),
    [
        ("3.5", 422, "spec.replicas"),
        ('"3"', 422, 'spec.replicas in body must be of type integer: "string"'),
        ("true", 422, 'spec.replicas in body must be of type int32: ""'),
        ("NaN", 400, "invalid character 'N' looking for beginning of value"),
        ("Infinity", 400, "invalid character 'I' looking for beginning of value"),
    ],
)
async def test_what_is_no_integer_is_told(client: aiohttp.ClientSession, written: str, code: int, message: str) -> None:
    """T017"""
    body = f'{{"apiVersion":"example.dev/v1","kind":"Gadget","metadata":{{"name":"x"}},"spec":{{"replicas":{written}}}}}'
    async with client.post(GADGETS, data=body, headers=JSON) as response:
        status = await assert_status(response, code, "Invalid" if code == 422 else "BadRequest")
    assert message in status["message"]


async def test_nulls_are_pruned_and_defaults_applied(client: aiohttp.ClientSession) -> None:
    """T029"""
    async with client.post(GADGETS, json=gadget(spec={"replicas": None, "note": None})) as response:
        assert (await response.json())["spec"] == {"replicas": 1}


async def test_owner_references_that_are_there_twice_are_kept_once(client: aiohttp.ClientSession) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"}
    async with client.post(GADGETS, json=gadget(ownerReferences=[owner, owner])) as response:
        assert (await response.json())["metadata"]["ownerReferences"] == [owner]
        assert "duplicate UID(s) observed: u" in response.headers["Warning"]


async def test_a_dry_run_stores_nothing(client: aiohttp.ClientSession) -> None:
    """T014"""
    async with client.post(f"{GADGETS}?dryRun=All&dryRun=All", json=gadget()) as response:
        shown = await response.json()
        assert response.status == 201
    assert shown["metadata"]["uid"]
    assert "resourceVersion" not in shown["metadata"]
    async with client.get(f"{GADGETS}/x") as response:
        await assert_status(response, 404, "NotFound")
    async with client.post(f"{GADGETS}?dryRun=All", json=gadget(spec={"replicas": -1})) as response:
        await assert_status(response, 422, "Invalid")
    async with client.post(f"{GADGETS}?dryRun=true", json=gadget()) as response:
        status = await assert_status(response, 422, "Invalid")
    assert 'dryRun: Unsupported value: ["true"]: supported values: "All"' in status["message"]


async def test_a_media_type_with_a_broken_parameter_is_none(client: aiohttp.ClientSession) -> None:
    async with client.post(GADGETS, data=b"{}", headers={"Content-Type": "application/json;a"}) as response:
        await assert_status(response, 415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    ("body", "query", "told"),
    [
        ("{}", "", "the object provided is unrecognized (must be of type Gadget): Object 'Kind' is missing in '{}' ({})"),
        ("{}", "?fieldValidation=Ignore", "Gadget in version \"v1\" cannot be handled as a Gadget: Object 'Kind' is missing in '{}'"),
        (
            '{"apiVersion":null,"kind":"Gadget"}',
            "",
            'Gadget in version "" cannot be handled as a Gadget: .apiVersion accessor error: <nil> is of the type <nil>, expected string',
        ),
    ],
    ids=["no kind", "no kind, and leniently", "no version"],
)
async def test_what_does_not_say_what_it_is_is_refused(client: aiohttp.ClientSession, body: str, query: str, told: str) -> None:
    async with client.post(GADGETS + query, data=body, headers=JSON) as response:
        status = await assert_status(response, 400, "BadRequest")
    assert status["message"] == told
