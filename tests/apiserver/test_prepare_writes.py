"""What the first write of a kind would hold the loop for has been made before it comes."""

from __future__ import annotations

import pytest

from apiserver import serve
from apiserver.access import standalone
from apiserver.app import build_app
from apiserver.certificates import Certificates
from apiserver.config import Config
from storage.memory import MemoryStore


async def test_a_server_that_is_ready_makes_ready_for_writes(
    pki: Certificates, store: MemoryStore, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = build_app(config, store, standalone([pki.authority.certificate]))
    told: list[str] = []
    async with app.running():
        await serve._announce(app, lambda: told.append("ready"))
        assert told == ["ready"]
        monkeypatch.delattr("openapi.accept._Rewriting")  # without which no first write would succeed that has to make it
        for resource in app.resources:
            kind = resource.kind
            value = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}, "spec": {"replicas": 1}}
            await resource.create("ns1" if kind.namespaced else "", value)
