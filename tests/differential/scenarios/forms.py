"""Negotiation: which form is wanted, what is accepted, tables, metadata alone, compression, discovery."""

from __future__ import annotations

from collections.abc import Sequence

from tests.differential.exchange import AGGREGATED_DISCOVERY, ALL_POOLS, POOLS, Step, send
from tests.differential.objects import condition, create, get, listed, merge, pool

_META = ";g=meta.k8s.io;v=v1"
ACCEPTS = (
    "application/json",
    "application/yaml",
    "*/*",
    "application/*",
    "text/*",
    "text/plain",
    "text/html,application/xhtml+xml,*/*;q=0.8",
    "application/json;q=0.1,application/yaml;q=0.9",
    "application/yaml, application/json",
    "application/json;pretty=1",
    "application/json;pretty=0",
    "application/json;charset=utf-8",
    "application/json;foo=bar",
    "application/json;as=Table" + _META,
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=Table;g=meta.k8s.io;v=v1beta1",
    "application/json;as=Table;g=meta.k8s.io;v=v9",
    "application/json;as=Table;g=meta.k8s.io",
    "application/json;as=Table;v=v1",
    "application/json;as=Table",
    "application/json;as=Bogus" + _META,
    "application/json;as=Table;g=meta.k8s.io;v=v9,application/json",
    "application/json;as=Table;g=meta.k8s.io;v=v1,application/json;as=Table;g=meta.k8s.io;v=v1beta1,application/json",
    "application/yaml;as=Table" + _META,
    "application/json;as=PartialObjectMetadata" + _META,
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1",
    "application/json;as=PartialObjectMetadataList" + _META,
    "application/yaml;as=PartialObjectMetadata" + _META,
    "application/yaml;as=PartialObjectMetadataList" + _META,
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata" + _META + ",application/json;as=PartialObjectMetadata" + _META,
    "application/vnd.kubernetes.protobuf,application/json",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "application/json;as=Table;g=meta.k8s.io;v=v1;pretty=1",
    "application/json;stream=watch",
    "application/json;stream=bogus",
    "application/json;export=1",
    "application/json;profile=x",
    "json",
    "/",
    ";",
    ",",
    "application/json;q=x",
    "application/json;q=0",
    "APPLICATION/JSON",
    "application/json;AS=Table;G=meta.k8s.io;V=v1",
    'application/json;as="Table";g="meta.k8s.io";v="v1"',
    "application/apply-patch+yaml",
    "application/json;as=APIResourceList;g=meta.k8s.io;v=v1",
)
_CONTENT_TYPES = (
    "application/json; charset=utf-8",
    "application/json;a",
    "APPLICATION/JSON",
    "text/json",
    "application/x-www-form-urlencoded",
    "application/vnd.kubernetes.protobuf",
    "nonsense",
    "/",
    "text/plain",
    "application/merge-patch+json",
    "*/*",
    "application/cbor",
    "application/apply-patch+yaml",
)
_FULL_METADATA = {
    "labels": {"z": "1", "a": ""},
    "annotations": {"b": "\u00e9", "a": "x"},
    "finalizers": ["example.dev/f"],
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "11111111-1111-4111-8111-111111111111", "controller": True}
    ],
}
_AGGREGATED = AGGREGATED_DISCOVERY.removeprefix("application/json")
_ROOT_ACCEPTS = (
    AGGREGATED_DISCOVERY,
    "application/yaml" + _AGGREGATED,
    "application/vnd.kubernetes.protobuf" + _AGGREGATED,
    "*/*" + _AGGREGATED,
    "application/*;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
    "application/json,application/yaml" + _AGGREGATED,
    "application/json;q=0.1,application/yaml;q=0.9" + _AGGREGATED,
    AGGREGATED_DISCOVERY + ";profile=nopeer,application/json" + _AGGREGATED + ",application/json",
    *(AGGREGATED_DISCOVERY + parameter for parameter in (";pretty=1", ";stream=watch", ";stream=x", ";sv=v1", ";foo=bar", ";q=x")),
    "application/yaml" + _AGGREGATED + ";stream=watch",
    *(AGGREGATED_DISCOVERY.replace("v2", "v2beta1") + rest for rest in ("", ",application/json", ",application/json" + _AGGREGATED)),
    AGGREGATED_DISCOVERY.replace("v2", "v3"),
    AGGREGATED_DISCOVERY.replace("v2", "v3") + ",application/json",
    "application/json;as=APIGroupDiscoveryList;v=v2",
    "application/json;as=APIGroupDiscoveryList" + _META,
    "application/cbor" + _AGGREGATED,
    "text/plain" + _AGGREGATED + ",application/yaml",
    "application/json;as=Table" + _META,
    "application/vnd.kubernetes.protobuf,application/json",
    *("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", ""),
)
_DOCUMENT_ACCEPTS = (
    "application/json",
    "*/*",
    "",
    "application/*",
    "text/plain",
    "application/yaml",
    "application/json;q=0.1,*/*",
    "application/json;as=Table" + _META,
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf,application/json",
)
_TABLE = {"Accept": "application/json;as=Table" + _META}

_DOCUMENT = "/openapi/v3/apis/clrk.apoxy.dev/v1alpha1"

SCENARIOS: dict[str, Sequence[Step]] = {
    "accepted forms": [
        create(pool("f", metadata={"labels": {"a": "b"}})),
        *[get("f", headers={"Accept": accept}, kind="negotiation") for accept in ACCEPTS],
        *[listed(headers={"Accept": accept}) for accept in ACCEPTS],
        *[get("missing", headers={"Accept": accept}, kind="negotiation") for accept in ACCEPTS],
    ],
    "accepted forms of writes": [
        step
        for number, accept in enumerate(ACCEPTS)
        if "as=PartialObjectMetadataList" not in accept
        for step in (
            create(pool(f"f{number}"), headers={"Accept": accept}),
            merge(f"f{number}", {"spec": {"replicas": 3}}, headers={"Accept": accept}),
            send("delete", "DELETE", f"{POOLS}/f{number}", headers={"Accept": accept}),
        )
    ],
    "forms that do not fit": [
        create(pool("a")),
        send("delete", "DELETE", f"{POOLS}/a", headers={"Accept": "application/json;as=PartialObjectMetadataList" + _META}),
    ],
    "content types": [
        *[create(pool(f"c{number}"), content_type=content_type, kind="negotiation") for number, content_type in enumerate(_CONTENT_TYPES)],
        send("negotiation", "POST", POOLS, b'{"a":1}', headers={"Content-Type": ""}),
        *[send("negotiation", "PUT", f"{POOLS}/c0", pool("c0"), content_type) for content_type in _CONTENT_TYPES],
        *[send("negotiation", "DELETE", f"{POOLS}/none", {}, content_type) for content_type in _CONTENT_TYPES],
    ],
    "metadata in protobuf": [
        create(pool("p0", metadata=_FULL_METADATA), "?fieldManager=m1"),
        create(pool("p1")),
        *[
            step
            for accept in ("", "List")
            for version in ("v1", "v1beta1")
            for headers in [{"Accept": f"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata{accept};g=meta.k8s.io;v={version}"}]
            for step in (get("p0", headers=headers), listed(headers=headers), listed("?limit=1", headers=headers), get("none", headers=headers))
        ],
        *[
            request
            for headers in [{"Accept": "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}]
            for request in (
                get("p0/status", headers=headers),
                get("p0/scale", headers=headers),
                merge("p0", {"metadata": {"labels": {"b": "c"}}}, headers=headers),
                create(pool("p2"), headers=headers),
                create(pool("p2"), headers=headers),
                create(pool("p3", replicas=-1), headers=headers),
                merge("p0", {"metadata": {"resourceVersion": "1"}}, headers=headers),
                send("delete", "DELETE", f"{POOLS}/p0", headers=headers),
                send("delete", "DELETE", f"{POOLS}/p1", headers=headers),
            )
        ],
    ],
    "tables": [
        create(pool("t0", replicas=3)),
        create(pool("t1", metadata={"labels": {"a": "b"}})),
        merge("t1/status", {"status": {"readyReplicas": 1, "activeExecutions": 0, "conditions": [condition("Ready")]}}, headers=_TABLE),
        *[listed(query, headers=_TABLE, kind="table") for query in ("", "?limit=1", "?includeObject=None", "?includeObject=Metadata", "?includeObject=Object", "?includeObject=Bogus", "?pretty=true")],
        *[get("t0", query, headers=_TABLE, kind="table") for query in ("", "?includeObject=None", "?includeObject=Object", "?includeObject=Bogus")],
        get("missing", headers=_TABLE, kind="table"),
        listed("", ALL_POOLS, headers=_TABLE, kind="table"),
        listed("?labelSelector=none", headers=_TABLE, kind="table"),
        send("table", "POST", POOLS, pool("t2"), headers=_TABLE),
        send("table", "POST", "/apis/worker.saved.sh/v1alpha1/namespaces/{{ns}}/localworkers", {"apiVersion": "worker.saved.sh/v1alpha1", "kind": "LocalWorker", "metadata": {"name": "w"}, "spec": {"image": "i"}}),
        send("table", "PATCH", "/apis/worker.saved.sh/v1alpha1/namespaces/{{ns}}/localworkers/w/status", {"status": {"conditions": [condition("Other"), condition("Polling", "False")]}}, "application/merge-patch+json"),
        send("table", "GET", "/apis/worker.saved.sh/v1alpha1/namespaces/{{ns}}/localworkers", headers=_TABLE),
        get("t0/status", headers=_TABLE, kind="table"),
    ],
    "compression": [
        *[create(pool(f"z{number}", metadata={"annotations": {"big": "x" * 20000}})) for number in range(8)],
        listed(headers={"Accept-Encoding": "gzip"}),
        listed("?limit=1", headers={"Accept-Encoding": "gzip"}),
        listed("?limit=6", headers={"Accept-Encoding": "gzip"}),
        listed(headers={"Accept-Encoding": "gzip, deflate, br"}),
        listed(headers={"Accept-Encoding": "br;q=1.0, gzip;q=0.8, *;q=0.1"}),
        listed(headers={"Accept-Encoding": "deflate"}),
        listed(headers={"Accept-Encoding": "gzip;q=0"}),
        listed(headers={"Accept-Encoding": "GZIP"}),
        listed(headers={"Accept-Encoding": "*"}),
        listed(headers={"Accept-Encoding": "identity"}),
        listed(headers={"Accept-Encoding": "gzip", "Accept": "application/yaml"}),
        listed("?includeObject=Object", headers={"Accept-Encoding": "gzip", **_TABLE}),
        listed("?pretty=1", headers={"Accept-Encoding": "gzip"}),
        send("negotiation", "DELETE", POOLS, headers={"Accept-Encoding": "gzip"}),
    ],
    "documents": [
        *[send("document", method, "/openapi/v3") for method in ("GET", "HEAD")],
        *[send("document", "GET", "/openapi/v3", headers={"Accept": accept}) for accept in ("application/json", "application/yaml", "text/plain")],
        *[send("document", "GET", path, headers={"Accept": accept}) for path in (_DOCUMENT, "/openapi/v2") for accept in _DOCUMENT_ACCEPTS],
        *[send("document", method, path) for path in (_DOCUMENT, "/openapi/v2") for method in ("HEAD", "POST", "DELETE")],
        *[send("document", "GET", f"{_DOCUMENT}?hash={value}") for value in ("{{hash}}", "x", "")],
        *[send("document", "GET", _DOCUMENT, headers={"If-None-Match": tags}) for tags in ('"{{hash}}"', 'W/"{{hash}}"', '"x", "{{hash}}"', "*", '"x"', "{{hash}}")],
        send("document", "GET", f"{_DOCUMENT}?hash={{{{hash}}}}", headers={"If-None-Match": '"{{hash}}"'}),
        *[send("document", "GET", path, headers={"Accept-Encoding": "gzip"}) for path in (_DOCUMENT, "/openapi/v2", "/openapi/v3/version", "/openapi/v3")],
        *[send("document", "GET", f"/openapi/{name}") for name in ("v3/apis", "v3/version", "v3/apis/worker.saved.sh/v1alpha1", "v3/nothing", "v3/apis/clrk.apoxy.dev/v9", "v4", "v2?hash=x")],
    ],
    "discovery": [
        *[
            send("discovery", "GET", path, headers={"Accept": accept} if accept else {})
            for path in ("/apis/clrk.apoxy.dev", "/apis/clrk.apoxy.dev/v1alpha1", "/apis/worker.saved.sh", "/apis/worker.saved.sh/v1alpha1")
            for accept in ("", "application/json", "application/yaml", "text/plain", "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json", AGGREGATED_DISCOVERY)
        ],
        *[
            send("discovery", "GET", path, headers={"Accept": accept, **more})
            for path, accepts in (("/apis", _ROOT_ACCEPTS), ("/apis?pretty=true", _ROOT_ACCEPTS[:3]), ("/apis/", _ROOT_ACCEPTS[:2]))
            for accept in accepts
            for more in ({}, {"If-None-Match": '"{{etag}}"'})
        ],
        *[
            send("discovery", "GET", "/apis", headers={"Accept": AGGREGATED_DISCOVERY, "If-None-Match": tags})
            for tags in ("{{etag}}", "*", '"x"', 'W/"{{etag}}"', '"x", "{{etag}}"')
        ],
        *[send("discovery", method, "/apis", headers={"Accept": accept}) for method in ("HEAD", "POST") for accept in ("application/json", AGGREGATED_DISCOVERY)],
        send("discovery", "GET", "/apis", headers={"User-Agent": "curl/8.0", "Accept": AGGREGATED_DISCOVERY}),
        send("discovery", "GET", "/apis/clrk.apoxy.dev/v2"),
        send("discovery", "GET", "/apis/nothing.example"),
        send("discovery", "GET", "/apis/clrk.apoxy.dev/v1alpha1?pretty=true"),
        send("discovery", "POST", "/apis/clrk.apoxy.dev/v1alpha1", {}),
        send("discovery", "GET", "/apis/clrk.apoxy.dev/"),
        send("discovery", "GET", "/apis/clrk.apoxy.dev/v1alpha1/"),
    ],
}
