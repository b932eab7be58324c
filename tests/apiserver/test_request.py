"""What is found out from a method and an address: as kube-apiserver's RequestInfo, in every corner."""

from __future__ import annotations

import pytest

from apiserver.request import NO_QUERY, RequestInfo, is_true, parse_request

G = "/apis/example.dev/v1"


def resource(
    verb: str, name: str = "", *, method: str = "GET", namespace: str = "ns1", resource: str = "gadgets", subresource: str = ""
) -> tuple[str, ...]:
    return (verb, "example.dev", "v1", namespace, resource, name, subresource)


def found(info: RequestInfo) -> tuple[str, ...]:
    assert info.is_resource_request
    return (info.verb, info.group, info.version, info.namespace, info.resource, info.name, info.subresource)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", f"{G}/namespaces/ns1/gadgets", resource("list")),
        ("GET", f"{G}/namespaces/ns1/gadgets/", resource("list")),
        ("HEAD", f"{G}/namespaces/ns1/gadgets", resource("list")),
        ("GET", f"{G}/namespaces/ns1/gadgets?watch=1", resource("watch")),
        ("GET", f"{G}/namespaces/ns1/gadgets?watch", resource("watch")),
        ("GET", f"{G}/namespaces/ns1/gadgets?watch=false", resource("list")),
        ("GET", f"{G}/namespaces/ns1/gadgets?watch=0", resource("list")),
        ("GET", f"{G}/gadgets", resource("list", namespace="")),
        ("GET", f"{G}/watch/gadgets", resource("watch", namespace="")),
        ("GET", f"{G}/watch/namespaces/ns1/gadgets/x", resource("watch", "x")),
        ("POST", f"{G}/namespaces/ns1/gadgets", resource("create")),
        ("DELETE", f"{G}/namespaces/ns1/gadgets", resource("deletecollection")),
        ("GET", f"{G}/namespaces/ns1/gadgets/x", resource("get", "x")),
        ("GET", f"{G}/namespaces/ns1/gadgets/x?watch=1", resource("get", "x")),
        ("HEAD", f"{G}/namespaces/ns1/gadgets/x", resource("get", "x")),
        ("PUT", f"{G}/namespaces/ns1/gadgets/x", resource("update", "x")),
        ("PATCH", f"{G}/namespaces/ns1/gadgets/x", resource("patch", "x")),
        ("DELETE", f"{G}/namespaces/ns1/gadgets/x", resource("delete", "x")),
        ("OPTIONS", f"{G}/namespaces/ns1/gadgets/x", resource("", "x")),
        ("PUT", f"{G}/namespaces/ns1/gadgets/x/status", resource("update", "x", subresource="status")),
        ("GET", f"{G}/namespaces/ns1/gadgets/x/status/more", resource("get", "x", subresource="status")),
        ("GET", f"{G}/clustergadgets/x", resource("get", "x", namespace="", resource="clustergadgets")),
        ("GET", f"{G}/namespaces/ns1", resource("get", "ns1", resource="namespaces")),
        ("GET", f"{G}/namespaces/ns1/status", resource("get", "ns1", resource="namespaces", subresource="status")),
        ("GET", f"{G}/namespaces/ns1/gadgets?fieldSelector=metadata.name%3Dx", resource("list", "x")),
        ("GET", f"{G}/namespaces/ns1/gadgets?watch=1&fieldSelector=spec.a%3Db,metadata.name%3D%3Dx", resource("watch", "x")),
        ("GET", f"{G}/namespaces/ns1/gadgets?fieldSelector=metadata.name!%3Dx", resource("list")),
        ("GET", f"{G}/namespaces/ns1/gadgets?fieldSelector=metadata.name%3D..%2Fx", resource("list")),
        ("GET", f"{G}/namespaces/ns1/gadgets/a%2Fb", resource("get", "a", subresource="b")),
        ("GET", f"https://example.com{G}/namespaces/ns1/gadgets/x", resource("get", "x")),
    ],
)
def test_a_resource_is_found(method: str, path: str, expected: tuple[str, ...]) -> None:
    assert found(parse_request(method, path)) == expected


@pytest.mark.parametrize(
    "path", ["/", "", "*", "/apis", "/apis/example.dev", G, f"{G}/", "/api", "/api/v1", "/healthz/ping", f"/{G}/namespaces/ns1/gadgets"]
)
def test_other_addresses_are_no_resources(path: str) -> None:
    info = parse_request("GET", path)
    assert (info.is_resource_request, info.verb, info.path, info.query) == (False, "get", path, NO_QUERY)


def test_a_query_is_decoded_once() -> None:
    query = parse_request("GET", "/x?a=1&a=2&b=%2B+x&c&d=").query
    assert query == {"a": ["1", "2"], "b": ["+ x"], "c": [""], "d": [""]}


@pytest.mark.parametrize(
    ("values", "truth"), [(None, False), ([], False), (["0"], False), (["False"], False), ([""], True), (["1"], True), (["x"], True)]
)
def test_booleans_are_read_as_kubernetes_reads_them(values: list[str] | None, truth: bool) -> None:
    assert is_true(values) is truth
