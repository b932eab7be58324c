"""Spans of requests, as a collector gets them."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

from apiserver.access import standalone
from apiserver.app import build_app
from apiserver.certificates import Certificates, KeyPair
from apiserver.config import Config, StartupError
from storage.memory import MemoryStore
from tests.apiserver.running import listening

GADGETS = "/apis/example.dev/v1/namespaces/ns1/gadgets"
HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}


class Collector:
    """Takes spans on a free port."""

    def __init__(self) -> None:
        self.spans: list[Any] = []

        def export(request: Any, _: grpc.ServicerContext) -> Any:
            self.spans += [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]
            return service.ExportTraceServiceResponse()

        method = grpc.unary_unary_rpc_method_handler(
            export, service.ExportTraceServiceRequest.FromString, lambda answer: answer.SerializeToString()
        )
        handler = grpc.method_handlers_generic_handler("opentelemetry.proto.collector.trace.v1.TraceService", {"Export": method})
        self.server = grpc.server(futures.ThreadPoolExecutor(1))
        self.server.add_generic_rpc_handlers((handler,))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def attributes(self, name: str) -> list[dict[str, Any]]:
        spans = [span for span in self.spans if span.name == name]
        return [{one.key: one.value.string_value or one.value.int_value for one in span.attributes} for span in spans]


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.server.stop(None).wait()


async def serve(collector: Collector, pki: Certificates, store: MemoryStore, config: Config, user: KeyPair, *, rate: int) -> None:
    """Serve some requests; all spans have been sent when this returns."""
    file = config.data_dir / "tracing.yaml"
    file.write_text(f"{HEAD}endpoint: 127.0.0.1:{collector.port}\nsamplingRatePerMillion: {rate}\n")
    app = build_app(dataclasses.replace(config, tracing_file=file), store, standalone([pki.authority.certificate]))
    async with app.running():
        await app.wait_ready()
        async with listening(pki, app.handle, app=app) as running:
            async with running.client(pki.admin) as client:
                await client.get(f"{GADGETS}/a?x=1", headers={"Audit-ID": "one"})
                await client.get("/version", headers=PARENT)
            async with running.client(user) as alice:
                await alice.get(GADGETS, headers=PARENT)


async def test_requests_are_spans_named_without_what_tells_objects_apart(
    collector: Collector, pki: Certificates, store: MemoryStore, config: Config, user: KeyPair
) -> None:
    await serve(collector, pki, store, config, user, rate=1_000_000)
    assert collector.attributes("GET /apis/example.dev/v1/namespaces/{:namespace}/gadgets/{:name}") == [
        {"http.request.method": "GET", "http.target": f"{GADGETS}/a?x=1", "audit-id": "one", "http.response.status_code": 404}
    ]
    (version,) = (span for span in collector.spans if span.name == "GET")
    assert version.trace_id.hex() == TRACE
    (denied,) = (span for span in collector.spans if span.name.endswith("/gadgets"))
    assert denied.trace_id.hex() != TRACE
    assert [link.trace_id.hex() for link in denied.links] == [TRACE]
    assert collector.attributes(denied.name)[0]["http.response.status_code"] == 403


async def test_only_a_trusted_client_decides_that_it_is_sampled(
    collector: Collector, pki: Certificates, store: MemoryStore, config: Config, user: KeyPair
) -> None:
    await serve(collector, pki, store, config, user, rate=0)
    assert [span.name for span in collector.spans] == ["GET"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{HEAD}samplingRatePerMillion: 2000000\n", "samplingRatePerMillion: "),
        (f"{HEAD}endpoints: x\n", "endpoints: "),
        ("kind: Pod\n", "apiVersion: "),
        ("{", "is no YAML"),
    ],
)
async def test_what_cannot_be_used_is_told_in_one_line(
    config: Config, store: MemoryStore, pki: Certificates, text: str, problem: str
) -> None:
    file = config.data_dir / "tracing.yaml"
    await asyncio.to_thread(file.write_text, text)
    with pytest.raises(StartupError) as told:
        build_app(dataclasses.replace(config, tracing_file=file), store, standalone([pki.authority.certificate]))
    assert problem in str(told.value)
    assert "\n" not in str(told.value)


def test_a_file_that_is_not_there_is_told(config: Config, pki: Certificates, tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="cannot read"):
        build_app(dataclasses.replace(config, tracing_file=tmp_path / "none"), MemoryStore(), standalone([pki.authority.certificate]))
