"""Requests that are refused: addresses, methods, identities."""

from __future__ import annotations

from collections.abc import Sequence

from tests.differential.exchange import ALL_POOLS, POOLS, Step, send
from tests.differential.objects import create, pool

_BASE = "/apis/clrk.apoxy.dev/v1alpha1"
_PATHS = (
    "/nothing",
    "/apis/clrk.apoxy.dev/v1alpha1/nothing",
    "/apis/clrk.apoxy.dev/v1alpha1/namespaces/{{ns}}/nothing",
    "/apis/clrk.apoxy.dev/v1alpha1/namespaces/{{ns}}/nothing/x",
    "/apis/clrk.apoxy.dev/v1alpha1/namespaces/{{ns}}/workerpools/e/nothing",
    "/apis/clrk.apoxy.dev/v1alpha1/namespaces/{{ns}}/workerpools/e/status/x",
    "/apis/clrk.apoxy.dev/v1alpha1/namespaces/{{ns}}/workerpools/e/scale/x",
    "/apis/clrk.apoxy.dev/v1alpha1/workerpools/e",
    "/apis/clrk.apoxy.dev/v2/namespaces/{{ns}}/workerpools",
    "/apis/nothing.dev/v1/namespaces/{{ns}}/workerpools",
    "/api/v2/x",
    "//apis",
    "/apis//clrk.apoxy.dev",
)
_OF_THE_SERVER = (
    *("/healthz", "/healthz/", "/livez", "/livez/", "/readyz", "/livez?verbose", "/healthz?verbose&exclude=nothing", "/healthz?exclude=ping"),
    *("/livez/ping", "/livez/ping/", "/livez/nothing", "/readyz/ping", "/version", "/version/", "/logs", "/metrics/", "/openapi/v2/"),
)
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FROB")

SCENARIOS: dict[str, Sequence[Step]] = {
    "addresses": [create(pool("e")), *[send("error", "GET", path) for path in _PATHS]],
    "methods": [
        create(pool("e")),
        *[
            send("error", method, path, {} if method in ("POST", "PUT", "PATCH") else None)
            for path in (POOLS, POOLS + "/e/status", POOLS + "/e/scale", ALL_POOLS, _BASE, POOLS + "/none")
            for method in _METHODS
            if not (method == "DELETE" and path in (POOLS, ALL_POOLS))
        ],
    ],
    "addresses of the server": [
        *[send("server", "GET", path) for path in _OF_THE_SERVER],
        *[send("server", method, path) for path in ("/healthz", "/version", "/nothing") for method in _METHODS if method != "GET"],
        *[send("server", method, "/metrics") for method in ("HEAD", "POST", "DELETE")],
        *[send("server", method, POOLS) for method in ("TRACE", "CONNECT", "PROPFIND")],
        *[send("server", "GET", path, identity="alice") for path in ("/healthz", "/readyz/ping", "/metrics", "/nothing", "/logs/x")],
        *[send("server", "GET", path, identity="") for path in ("/version", "/metrics", "/openapi/v2", "/nothing")],
    ],
    "identities": [
        *[
            send("error", "GET", POOLS, identity="", headers={"Authorization": value})
            for value in ("Bearer x", "Bearer ", "Bearer a.b.c", "Basic eDp5", "x", "")
        ],
        send("error", "GET", POOLS, identity="", headers={"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}),
        send("error", "GET", POOLS, identity="alice", headers={"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}),
    ],
    "acting as somebody else": [
        *[
            send("error", method, POOLS, {} if method == "POST" else None, headers=headers)
            for method in ("GET", "POST")
            for headers in (
                {"Impersonate-User": "bob"},
                {"Impersonate-User": "bob", "Impersonate-Group": "dev"},
                {"Impersonate-User": "system:serviceaccount:default:default"},
                {"Impersonate-User": "system:anonymous"},
                {"Impersonate-User": "bob", "Impersonate-Uid": "1", "Impersonate-Extra-a": "b"},
            )
        ],
        send("list", "GET", POOLS, headers={"Impersonate-User": "bob", "Impersonate-Group": "system:masters"}),
    ],
    "long heads": [
        *[send("error", "GET", f"{POOLS}/{'x' * length}") for length in (254, 7000, 20000, 1100000)],
        *[send("error", "GET", f"{POOLS}?labelSelector={'x' * length}") for length in (7000, 20000)],
        *[send("error", "GET", f"{POOLS}/e", headers={"X-Long": "x" * length}) for length in (7000, 20000, 1100000)],
        send("error", "GET", "/healthz", headers={f"X-{number}": "x" for number in range(200)}),
    ],
    "origins": [
        send("error", "OPTIONS", POOLS, headers={"Origin": "https://x.example", "Access-Control-Request-Method": "GET"}),
        send("error", "GET", f"{POOLS}/e", headers={"Origin": "https://x.example"}),
    ],
    "somebody who may do nothing": [
        *[
            send("error", method, path, {} if method in ("POST", "PUT", "PATCH") else None, identity="alice", headers=headers)
            for path in (POOLS, POOLS + "/e", POOLS + "/e/status", ALL_POOLS, "/apis/clrk.apoxy.dev/v1alpha1/nothing/x", "/nothing")
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
            for headers in ({}, {"Accept": "application/yaml"})
        ],
        send("error", "GET", POOLS + "?watch=true", identity="alice"),
    ],
    "nobody": [
        send("error", method, path, {} if method in ("POST", "PUT", "PATCH") else None, identity="")
        for path in (POOLS, POOLS + "/e", ALL_POOLS, "/nothing")
        for method in ("GET", "POST", "DELETE")
    ],
}
