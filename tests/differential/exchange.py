"""What is sent: requests with places for what each side answered before, and watches with what happens meanwhile.

A place is written `{{word}}` or `{{word name}}` in a path, header or body and filled in by each side's own memory: `{{ns}}` (the
namespace), `{{other}}` (a second one), `{{uid x}}`, `{{rv x}}`, `{{rv x 1}}` (the version of x before the last), `{{list}}` (the last
list's resourceVersion), `{{continue}}` (its token), `{{etag}}` (that of aggregated discovery as it was last read in JSON), `{{hash}}`
(that of the document of pools, by the index of documents).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.differential.memory import Memory

JSON = "application/json"
YAML = "application/yaml"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
AGGREGATED_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
USER_AGENT = "differential/1.0 (linux/amd64)"

POOLS = "/apis/clrk.apoxy.dev/v1alpha1/namespaces/{{ns}}/workerpools"
ALL_POOLS = "/apis/clrk.apoxy.dev/v1alpha1/workerpools"
WORKERS = "/apis/worker.saved.sh/v1alpha1/namespaces/{{ns}}/localworkers"

Body = bytes | str | Callable[["Memory"], bytes] | None
"""A callable makes it from what its side answered before."""

_PLACE = re.compile(r"\{\{([a-z]+)(?: ([^ }]+))?(?: (\d+))?\}\}")


@dataclass(frozen=True, slots=True)
class Request:
    """One request, the same for both sides."""

    kind: str
    """What it is counted as."""
    method: str
    path: str
    """With its query; already percent-encoded."""
    body: Body = None
    headers: Mapping[str, str] = field(default_factory=dict)
    identity: str = "admin"
    """Which client certificate is shown; empty for none."""
    from_cache: bool = False
    """Whether it may be answered from a cache that lags: then both sides are first made to catch up."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A watch that is open while other requests are made; then its events are compared."""

    kind: str
    path: str
    meanwhile: tuple[Request, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    until_closed: bool = False
    """Whether to read on until the server ends it; else until both sides have said the same and are quiet."""
    web_socket: bool = False
    bookmarks: bool = False
    """Whether an ordinary bookmark is compared too: what the first looks like, when both sides have sent one."""


Step = Request | Watch


def send(kind: str, method: str, path: str, body: Any = None, content_type: str = "", **more: Any) -> Request:
    """A request whose body, when it is no text, is written as JSON."""
    headers = dict(more.pop("headers", {}))
    if body is not None and not isinstance(body, bytes | str) and not callable(body):
        body = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    if content_type or body is not None:
        headers.setdefault("Content-Type", content_type or JSON)
    return Request(kind, method, path, body, headers, **more)


def filled(text: str, memory: Memory) -> str:
    """Put what this side answered before into the places of a text."""
    return _PLACE.sub(lambda place: memory.value(place[1], place[2] or "", int(place[3] or 0)), text)


def body_of(request: Request, memory: Memory) -> bytes | None:
    """The bytes that this side is sent."""
    if request.body is None or isinstance(request.body, bytes):
        return request.body
    if isinstance(request.body, str):
        return filled(request.body, memory).encode()
    return request.body(memory)


def edited(name: str, change: Callable[[dict[str, Any]], object]) -> Callable[[Memory], bytes]:
    """The object as it was last answered, changed: what a client that read it sends back."""

    def make(memory: Memory) -> bytes:
        value = json.loads(memory.last(name))
        change(value)
        return json.dumps(value, separators=(",", ":")).encode()

    return make
