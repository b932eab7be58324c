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
