"""Watches: where they begin, what they tell, selectors, forms, bookmarks, the end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tests.differential.exchange import ALL_POOLS, POOLS, Request, Step, Watch, edited, send
from tests.differential.objects import create, delete, listed, merge, pool, update

_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_PROTOBUF = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_ORIGIN = {"Origin": "https://127.0.0.1"}
_INITIAL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
_BOOKMARKS = "allowWatchBookmarks=true&resourceVersion={{rv w0}}"
_UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
_SETUP = [create(pool(f"w{number}", metadata={"labels": {"app": app}})) for number, app in enumerate("aab")]
_CHANGES: tuple[Request, ...] = (
    create(pool("n", metadata={"labels": {"app": "a"}})),
    merge("n", {"spec": {"replicas": 2}}),
    merge("n", {"metadata": {"labels": {"app": "b"}}}),
    merge("n", {"spec": {"replicas": 3}}),
    merge("n", {"metadata": {"labels": {"app": "a"}}}),
    merge("w2", {"metadata": {"labels": {"app": "a"}}}),
    merge("n/status", {"status": {"readyReplicas": 1}}),
    update("w0", edited("w0", lambda value: value["spec"].update(replicas=4))),
    update("w0", edited("w0", lambda value: value["spec"].update(replicas=4))),
    delete("w1"),
    delete("n"),
)


def _watch(query: str, *meanwhile: Request, path: str = POOLS, **more: object) -> Watch:
    return Watch("watch", f"{path}?watch=true{'&' if query else ''}{query}", tuple(meanwhile), **more)  # type: ignore[arg-type]


def _matrix() -> list[Step]:
    steps: list[Step] = []
    for version, match, initial, bookmarks in product(
        ("", "0", "{{rv w1}}", "{{list}}", "1", "abc", "-1"), ("", "NotOlderThan", "Exact"), ("", "true", "false"), ("", "true")
    ):
        options = {"resourceVersion": version, "resourceVersionMatch": match, "sendInitialEvents": initial, "allowWatchBookmarks": bookmarks}
        query = "&".join(f"{name}={value}" for name, value in options.items() if value)
        steps.append(_watch(query))
    return steps


SCENARIOS: dict[str, Sequence[Step]] = {
    "everything that changes": [*_SETUP, listed(), _watch("", *_CHANGES)],
    "from a version": [*_SETUP, listed(), _watch("resourceVersion={{list}}", *_CHANGES)],
    "from an older version": [*_SETUP, listed(), *_CHANGES, _watch("resourceVersion={{list}}"), _watch("resourceVersion={{rv n 2}}")],
    "by label": [*_SETUP, _watch("labelSelector=app%3Da", *_CHANGES)],
    "by label from history": [*_SETUP, listed(), *_CHANGES, _watch("labelSelector=app%3Da&resourceVersion={{list}}")],
    "by name": [*_SETUP, _watch("fieldSelector=metadata.name%3Dn", *_CHANGES)],
    "by namespace": [*_SETUP, _watch("fieldSelector=metadata.namespace%3D{{ns}}", *_CHANGES, path=ALL_POOLS)],
    "all namespaces": [*_SETUP, _watch("", *_CHANGES, path=ALL_POOLS)],
    "as a table": [*_SETUP, _watch("", *_CHANGES, headers={"Accept": _TABLE})],
    "as a table with objects": [*_SETUP, _watch("includeObject=Object", *_CHANGES, headers={"Accept": _TABLE})],
    "as a table without objects": [*_SETUP, _watch("includeObject=None", *_CHANGES, headers={"Accept": _TABLE})],
    "as metadata": [*_SETUP, _watch("", *_CHANGES, headers={"Accept": _PARTIAL})],
    "as metadata in protobuf": [
        *_SETUP,
        _watch("", *_CHANGES, headers={"Accept": _PROTOBUF}),
        _watch(_INITIAL, headers={"Accept": _PROTOBUF}),
        _watch("resourceVersion=1", headers={"Accept": _PROTOBUF}),
    ],
    "initial events as metadata": [
        *_SETUP,
        _watch(_INITIAL, *_CHANGES, headers={"Accept": _PARTIAL}),
        _watch(_INITIAL, *_CHANGES, headers={"Accept": _TABLE}),
    ],
    "where it begins": [*_SETUP, listed(), *_matrix()],
    "an empty namespace": [
        _watch(_INITIAL, create(pool("x"))),
        _watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=a%3Db"),
    ],
    "spelling": [
        *_SETUP,
        *[Watch("watch", f"{POOLS}?{query}", (create(pool(f"s{number}")),)) for number, query in enumerate(("watch", "watch=", "watch=1", "watch=True", "watch=t", "watch=yes", "watch=x"))],
        Watch("watch", "/apis/clrk.apoxy.dev/v1alpha1/watch/namespaces/{{ns}}/workerpools", (create(pool("legacy")),)),
        Watch("watch", "/apis/clrk.apoxy.dev/v1alpha1/watch/namespaces/{{ns}}/workerpools/w0", (create(pool("legacy2")),)),
        Watch("watch", f"{POOLS}/w0?watch=true", (create(pool("single")),)),
        Watch("watch", f"{POOLS}?watch=true&fieldSelector=metadata.name%3Dw0"),
    ],
    "that cannot begin": [
        *_SETUP[:1],
        *[
            _watch(query)
            for query in (
                "labelSelector=!!",
                "fieldSelector=spec.x%3D1",
                "resourceVersion=9999999999999999",
                "resourceVersion=99999999999999999999",
                "timeoutSeconds=x",
                "limit=1",
                "continue=x",
                "allowWatchBookmarks=x",
                "sendInitialEvents=x",
                "resourceVersionMatch=Bogus",
                "sendInitialEvents=true&resourceVersionMatch=Bogus",
            )
        ],
        *[
            _watch("", headers={"Accept": accept})
            for accept in (
                "text/plain",
                "application/yaml",
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                "application/json;as=Table;g=meta.k8s.io;v=v2",
                "application/json;stream=watch",
                "application/vnd.kubernetes.protobuf",
                "application/vnd.kubernetes.protobuf;stream=watch,application/json",
                "application/json;charset=utf-8",
            )
        ],
    ],
    "finalizers": [
        _watch(
            "",
            create(pool("f", metadata={"finalizers": ["a.b/c"]})),
            delete("f"),
            delete("f"),
            merge("f", {"metadata": {"labels": {"a": "b"}}}),
            merge("f", {"metadata": {"finalizers": None}}),
            create(pool("f")),
            delete("f", "?propagationPolicy=Foreground"),
            merge("f", {"metadata": {"finalizers": None}}),
            send("delete collection", "DELETE", POOLS),
            create(pool("g"), "?dryRun=All"),
        )
    ],
    "the end": [
        *_SETUP[:1],
        _watch("timeoutSeconds=1", until_closed=True),
        _watch("timeoutSeconds=3&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", until_closed=True),
        _watch("timeoutSeconds=1", headers={"Accept": _TABLE}, until_closed=True),
        _watch("timeoutSeconds=1", headers={"Accept-Encoding": "gzip"}, until_closed=True),
        *[
            _watch(f"{_BOOKMARKS}&timeoutSeconds=5", headers={"Accept": accept}, until_closed=True, bookmarks=True)
            for accept in ("application/json", _TABLE, _PROTOBUF)
        ],
        _watch("timeoutSeconds=1&resourceVersion=1", until_closed=True),
    ],
    "compressed": [
        *_SETUP,
        _watch(f"{_INITIAL}&timeoutSeconds=3", headers={"Accept-Encoding": "gzip"}, until_closed=True),
        _watch(f"{_INITIAL}&timeoutSeconds=3", headers={"Accept-Encoding": "gzip", "Accept": _PROTOBUF}, until_closed=True),
        _watch(f"{_INITIAL}&timeoutSeconds=8", *_CHANGES, headers={"Accept-Encoding": "gzip"}, until_closed=True),
    ],
    "over WebSocket": [
        *_SETUP,
        _watch("", web_socket=True),
        send("watch", "GET", f"{POOLS}?watch=true", headers=_UPGRADE),
        send("watch", "GET", f"{POOLS}?watch=true", headers={**_UPGRADE, **_ORIGIN, "Sec-WebSocket-Protocol": "a, b"}),
        send("watch", "GET", f"{POOLS}?watch=true", headers={**_UPGRADE, **_ORIGIN, "Sec-WebSocket-Version": "8"}),
        _watch("", *_CHANGES, headers=_ORIGIN, web_socket=True),
        _watch("timeoutSeconds=1", headers=_ORIGIN, until_closed=True, web_socket=True),
        _watch("", create(pool("t")), headers={"Accept": _TABLE, **_ORIGIN}, web_socket=True),
        _watch("resourceVersion=1", headers=_ORIGIN, web_socket=True),
        _watch("labelSelector=!!", headers=_ORIGIN, web_socket=True),
    ],
}
