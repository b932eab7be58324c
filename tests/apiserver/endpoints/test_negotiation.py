"""The Accept header, and what accompanies every answer."""

from __future__ import annotations

import aiohttp
import orjson
import pytest
import yaml

from apiserver.endpoints.negotiation import parse_accept, warning_headers
from tests.apiserver.reading import GADGETS, create


@pytest.mark.parametrize(
    ("header", "order"),
    [
        ("application/json", ["application/json"]),
        ("text/html, application/yaml;q=0.9, */*;q=0.8", ["text/html", "application/yaml", "*/*"]),
        ("*/*, application/json;q=0.5", ["application/json", "*/*"]),
        ("application/json;q=0.1, application/yaml", ["application/yaml", "application/json"]),
        ("*, application", ["*/*"]),
        ("a/b/c, application/json", ["application/json"]),
    ],
    ids=["one", "browser", "asterisk last", "quality", "asterisk alone", "malformed"],
)
def test_clauses_are_tried_by_quality_and_exactness(header: str, order: list[str]) -> None:
    assert [f"{clause.type}/{clause.subtype}" for clause in parse_accept(header)] == order


def test_parameters_come_in_any_order() -> None:
    """T002."""
    (clause,) = parse_accept("application/json; v=v1 ;as=Table;g=meta.k8s.io;q=0.3")
    assert clause.parameters == {"v": "v1", "as": "Table", "g": "meta.k8s.io"}
    assert clause.quality == 0.3


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "application/json"),
        ("application/yaml", "application/yaml"),
        ("application/vnd.kubernetes.protobuf,application/json", "application/json"),
        ("application/json;as=Table;v=v7;g=meta.k8s.io,application/yaml", "application/yaml"),
        ("application/json;as=Table;v=v1;g=example.dev,application/json", "application/json"),
    ],
)
async def test_first_clause_that_can_be_served_wins(client: aiohttp.ClientSession, accept: str, content_type: str) -> None:
    made = await create(client, "a")
    async with client.get(f"{GADGETS}/a", headers={"Accept": accept}) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == content_type
        body = await response.read()
    assert (yaml.safe_load(body) if content_type.endswith("yaml") else orjson.loads(body)) == made


async def test_not_acceptable_names_what_is(client: aiohttp.ClientSession) -> None:
    await create(client, "a")
    async with client.get(f"{GADGETS}/a", headers={"Accept": "image/png"}) as response:
        assert response.status == 406
        status = orjson.loads(await response.read())
    assert status["message"] == (
        "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


@pytest.mark.parametrize(
    ("query", "agent", "pretty"),
    [("", "curl/8.0", True), ("pretty=0", "curl/8.0", False), ("pretty=true", "x", True), ("", "kubectl/v1.37", False)],
)
async def test_people_get_indented_json(client: aiohttp.ClientSession, query: str, agent: str, pretty: bool) -> None:
    await create(client, "a")
    async with client.get(f"{GADGETS}/a?{query}", headers={"User-Agent": agent}) as response:
        assert ((await response.read()).count(b"\n") > 1) is pretty


async def test_every_answer_carries_its_audit_id_and_is_not_cached(client: aiohttp.ClientSession) -> None:
    await create(client, "a")
    async with client.get(f"{GADGETS}/a", headers={"Audit-Id": "mine"}) as response:
        assert response.headers["Audit-Id"] == "mine"
        assert response.headers["Cache-Control"] == "no-cache, private"


def test_warnings_are_escaped_and_sent_once() -> None:
    assert warning_headers(['unknown field "a"', 'unknown field "a"', "back\\slash", "", "two\nlines"]) == [
        '299 - "unknown field \\"a\\""',
        '299 - "back\\\\slash"',
    ]


def test_warnings_are_bounded() -> None:
    values = warning_headers([f"{number}" + "x" * 500 for number in range(100)])
    assert len(values) == 16
    assert all(len(value) == 256 + len('299 - ""') for value in values)
