"""Every kind passes these by construction: its sample manifests are served, and come back everywhere as the same object.

A new kind needs a sample in manifests/samples and nothing here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import yaml

from apiserver import kinds
from apiserver.meta.resource import ResourceKind
from openapi import normalize
from openapi.accept import Acceptor
from openapi.structural import Schema

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAMPLES = Path(__file__).parents[3] / "manifests" / "samples"
KINDS = {(kind.api_version, kind.kind): kind for kind in kinds.load("apiserver.kinds")}


def read(file: Path) -> dict[str, Any]:
    value: dict[str, Any] = yaml.safe_load(file.read_bytes())
    return value


FILES = sorted(SAMPLES.glob("*.yaml"))
each_sample = pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=[kind.plural for kind in KINDS.values()])


def samples_of(kind: ResourceKind) -> list[dict[str, Any]]:
    return [value for value in map(read, FILES) if (value["apiVersion"], value["kind"]) == (kind.api_version, kind.kind)]


def unsaid(schema: Schema, values: list[Any], path: str, depth: int) -> list[str]:
    """The fields that none of the values sets, down to this depth."""
    if not depth:
        return []
    found: list[str] = []
    for name, member in schema.properties.items():
        given = [value[name] for value in values if isinstance(value, dict) and name in value]
        found += unsaid(member, given, f"{path}.{name}", depth - 1) if given else [f"{path}.{name}"]
    return found


@each_kind
async def test_the_samples_of_a_kind_show_all_of_its_fields(kind: ResourceKind) -> None:
    """What belongs to core types (affinity and below) is documented elsewhere."""
    specs = [value["spec"] for value in samples_of(kind)]
    assert specs, f"{kind.kind} has no sample in {SAMPLES}"
    assert unsaid(kind.schema.properties["spec"], specs, "spec", depth=2) == []


@each_kind
async def test_a_kind_has_a_sample_with_what_is_required_alone(kind: ResourceKind) -> None:
    required = set(kind.schema.properties["spec"].required)
    assert any(set(value["spec"]) == required for value in samples_of(kind))


@each_sample
async def test_a_sample_is_accepted_in_one_pass(file: Path) -> None:
    """Else each write of the kind would cost the walk of the schema and an instance of the model besides."""
    sample = read(file)
    kind = KINDS[sample["apiVersion"], sample["kind"]]
    normalize.compile(kind.schema)(sample)
    assert Acceptor(kind.model, kind.schema)(sample) == kind.model.model_validate(sample)


@each_sample
async def test_a_sample_comes_back_everywhere_as_the_same_object(client: aiohttp.ClientSession, file: Path) -> None:
    text = file.read_text()  # noqa: ASYNC240 - a small file, and nobody waits
    sample = yaml.safe_load(text)
    kind = KINDS[sample["apiVersion"], sample["kind"]]
    collection = f"/apis/{kind.api_version}/namespaces/samples/{kind.plural}"
    path = f"{collection}/{sample['metadata']['name']}"
    async with client.get(collection) as response:
        before = (await response.json())["metadata"]["resourceVersion"]
    async with client.post(collection, data=text, headers={"Content-Type": "application/yaml"}) as response:
        created = orjson.loads(await response.read())
        assert (response.status, response.headers.getall("Warning", [])) == (201, []), created
    assert {name: created["spec"][name] for name in sample["spec"]} == sample["spec"]
    assert {name: created["metadata"][name] for name in sample["metadata"]} == sample["metadata"]

    async with client.get(path) as response:
        assert orjson.loads(await response.read()) == created
    async with client.get(path, headers={"Accept": "application/yaml"}) as response:
        assert yaml.load(await response.read(), yaml.BaseLoader) == yaml.load(orjson.dumps(created), yaml.BaseLoader)
    async with client.get(collection) as response:
        listed = orjson.loads(await response.read())
        assert (listed["kind"], listed["apiVersion"], listed["items"]) == (kind.list_kind, kind.api_version, [created])
    async with client.get(collection, params={"watch": "true", "resourceVersion": before}) as response:
        event = orjson.loads(await response.content.readline())
        assert event == {"type": "ADDED", "object": created}
    async with client.put(path, json=created) as response:
        assert (response.status, orjson.loads(await response.read())) == (200, created)
    async with client.patch(path, json=sample, headers={"Content-Type": "application/merge-patch+json"}) as response:
        assert (response.status, orjson.loads(await response.read())) == (200, created)
    async with client.delete(path) as response:
        assert response.status == 200
