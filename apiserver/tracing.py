"""Spans for OpenTelemetry, when they are asked for: one for each request that is sampled, sent to a collector by OTLP over gRPC.

The configuration is kube-apiserver's TracingConfiguration. Needs the extra `tracing`; nothing of it is imported without a configuration.
Source: https://kubernetes.io/docs/concepts/cluster-administration/system-traces/
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from apiserver.request import Call, RequestInfo

_SERVICE = "apiserver"
_EXPORT_SECONDS = 5
_MILLION = 1_000_000
_TRUSTED = frozenset(("system:masters", "system:monitoring"))
"""Who may say that their requests belong to a trace, and so are sampled; the traces of others are only referred to."""


class TracingError(Exception):
    """There can be no traces as they are wanted; the text is one line."""


class TracingConfiguration(BaseModel):
    """Where spans go, and how many."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    api_version: Literal["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"]
    kind: Literal["TracingConfiguration"]
    endpoint: str = "localhost:4317"
    """Host and port of the collector; spoken to without TLS."""
    sampling_rate_per_million: int = Field(0, ge=0, le=_MILLION)
    """How many requests are sampled that belong to no trace."""


class Span:
    """The span of one request; nothing when that is not sampled."""

    __slots__ = ("_span",)

    def __init__(self, span: Any) -> None:
        self._span = span

    def end(self, code: int) -> None:
        """Note what became of the request."""
        if self._span.is_recording():
            self._span.set_attribute("http.response.status_code", code)
            if code >= 500:
                from opentelemetry.trace import StatusCode

                self._span.set_status(StatusCode.ERROR)
        self._span.end()


class Tracer:
    """Begins spans. `run` must run for them to be sent."""

    def __init__(self, provider: Any) -> None:
        from opentelemetry.propagate import extract
        from opentelemetry.trace import Link, SpanKind, get_current_span

        self._provider = provider
        self._start = provider.get_tracer(_SERVICE).start_span
        self._extract = extract
        self._link, self._kind, self._current_span = Link, SpanKind.SERVER, get_current_span

    @classmethod
    def open(cls, file: Path) -> Tracer:
        """A tracer as a file wants it.

        Raises:
            TracingError: the file cannot be used, or the extra `tracing` is not installed.
        """
        config = _read(file)
        try:
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
        except ModuleNotFoundError as error:
            raise TracingError(f"--tracing-config-file needs the package {error.name}: install clrk-apiserver[tracing]") from error
        sampler = ParentBasedTraceIdRatio(config.sampling_rate_per_million / _MILLION)
        provider = TracerProvider(sampler=sampler, resource=Resource.create({"service.name": _SERVICE}), shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=config.endpoint, insecure=True, timeout=_EXPORT_SECONDS)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        return cls(provider)

    def begin(self, call: Call) -> Span:
        """Begin the span of a request whose user is known."""
        headers = call.http.headers
        context, links = None, None
        if "traceparent" in headers:
            context = self._extract({key.lower(): value for key, value in headers.items()})
            if _TRUSTED.isdisjoint(call.user.groups):
                context, links = None, [self._link(self._current_span(context).get_span_context())]
        info = call.info
        attributes = {
            "http.request.method": info.method,
            "http.target": call.http.raw_path.encode("utf-8", "backslashreplace").decode(),
            "audit-id": call.audit_id,
        }
        return Span(self._start(_name(info), context=context, kind=self._kind, links=links, attributes=attributes))

    async def run(self) -> None:
        """Send spans, until this is cancelled; then those that wait."""
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.to_thread(self._provider.shutdown)


def _name(info: RequestInfo) -> str:
    """The kind of request, as kube-apiserver names spans: without what tells one object from another."""
    if not info.is_resource_request:
        return info.method
    place = f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
    scope = "/namespaces/{:namespace}" if info.namespace else ""
    name = "/{:name}" if info.name else ""
    subresource = f"/{info.subresource}" if info.subresource else ""
    return f"{info.method} {place}{scope}/{info.resource}{name}{subresource}"


def _read(file: Path) -> TracingConfiguration:
    try:
        return TracingConfiguration.model_validate(yaml.safe_load(file.read_bytes()))
    except OSError as error:
        raise TracingError(f"cannot read {file}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise TracingError(f"{file} is no YAML") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise TracingError(f"{file}: {'.'.join(map(str, first['loc'])) or 'configuration'}: {first['msg']}") from error
