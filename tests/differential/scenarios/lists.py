"""Reading: get and list with every combination of their options, pages, selectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tests.differential.exchange import ALL_POOLS, POOLS, Request, Step, send
from tests.differential.objects import create, delete, get, listed, merge, pool

_LABELS: tuple[dict[str, str], ...] = ({"app": "a", "n": "1"}, {"app": "a", "n": "2"}, {"app": "b"}, {}, {"app": "b", "n": "3"})
_SETUP = [create(pool(f"l{number}", metadata={"labels": labels})) for number, labels in enumerate(_LABELS)]
_VERSIONS = ("", "0", "{{rv l1}}", "{{list}}", "9999999999999999", "abc", "-1")
_MATCHES = ("", "Exact", "NotOlderThan", "Bogus")
_LIMITS = ("", "2", "0", "-1", "x")


def _query(**options: str) -> str:
    given = "&".join(f"{name}={value}" for name, value in options.items() if value)
    return f"?{given}" if given else ""


def _matrix() -> list[Step]:
    steps: list[Step] = []
    for version, match, limit in product(_VERSIONS, _MATCHES, _LIMITS):
        if version == "9999999999999999" and limit:
            continue  # each waits three seconds for the future
        steps.append(listed(_query(resourceVersion=version, resourceVersionMatch=match, limit=limit), from_cache=version != ""))
    return steps


_SELECTORS = (
    "labelSelector=app%3Da",
    "labelSelector=app%3D%3Da",
    "labelSelector=app!%3Da",
    "labelSelector=app",
    "labelSelector=!app",
    "labelSelector=app+in+(a,b)",
    "labelSelector=app+notin+(a)",
    "labelSelector=n%3E1",
    "labelSelector=n%3C3",
    "labelSelector=n%3Ex",
    "labelSelector=app%3Da,n%3D2",
    "labelSelector=app%3D",
    "labelSelector=,",
    "labelSelector=app+in+()",
    "labelSelector=app+in+a",
    "labelSelector=app+in",
    "labelSelector=bad+key!",
    "labelSelector=%3Da",
    "labelSelector=app%3Da%3Db",
    "labelSelector=a/b/c%3Dd",
    "labelSelector=app%3Da+b",
    "labelSelector=" + "x" * 64,
    "labelSelector=",
    "fieldSelector=metadata.name%3Dl1",
    "fieldSelector=metadata.name!%3Dl1",
    "fieldSelector=metadata.name%3D%3Dl1",
    "fieldSelector=metadata.namespace%3D{{ns}}",
    "fieldSelector=metadata.namespace%3Dother",
    "fieldSelector=metadata.name%3Dl1,metadata.namespace%3D{{ns}}",
    "fieldSelector=metadata.name%3Dl1,metadata.name%3Dl2",
    "fieldSelector=metadata.name%3D",
    "fieldSelector=metadata.name",
    "fieldSelector=spec.replicas%3D1",
    "fieldSelector=metadata.uid%3D1",
    "fieldSelector=status.phase%3Dx",
    "fieldSelector=%3D",
    "fieldSelector=metadata.name%3Da%5C,b",
    "fieldSelector=metadata.name%3Da%5Cb",
    "fieldSelector=metadata.name%3DUPPER",
    "fieldSelector=metadata.name%3Da%3Db",
    "fieldSelector=metadata.name%3Dl1&labelSelector=app%3Db",
)


def _next(query: str, **more: object) -> Request:
    return listed(f"?{query}&continue={{{{continue}}}}", from_cache=True)


SCENARIOS: dict[str, Sequence[Step]] = {
    "versions, matches and limits": [*_SETUP, listed(), *_matrix()],
    "the empty list": [
        listed(),
        listed(headers={"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}),
        listed("?limit=5"),
        listed("?resourceVersion=0", from_cache=True),
        listed("?labelSelector=a%3Db"),
    ],
    "selectors": [*_SETUP, *[listed(f"?{selector}") for selector in _SELECTORS], *[listed(f"?{s}&limit=1") for s in _SELECTORS[:8]]],
    "one at a revision": [
        create(pool("l0")),
        merge("l0", {"spec": {"replicas": 5}}),
        listed("?fieldSelector=metadata.name%3Dl0&resourceVersion={{rv l0 1}}&limit=2"),
    ],
    "pages": [
        *_SETUP,
        listed("?limit=2"),
        _next("limit=2"),
        _next("limit=2"),
        listed("?limit=1"),
        create(pool("l00")),
        delete("l1"),
        _next("limit=1"),
        _next("limit=10"),
        listed("?limit=1"),
        merge("l2", {"spec": {"replicas": 9}}),
        _next("limit=0"),
        listed("?limit=1"),
        _next("limit=2&resourceVersion=0"),
        listed("?limit=1"),
        _next("limit=2&resourceVersion={{list}}"),
        listed("?limit=1"),
        _next("limit=2&resourceVersionMatch=Exact"),
        listed("?limit=1&labelSelector=app%3Db"),
        _next("limit=1&labelSelector=app%3Db"),
        _next("limit=1&labelSelector=app%3Db"),
        listed("?limit=1&labelSelector=app%3Da"),
        _next("limit=1"),
        listed("?limit=1&resourceVersion=0", from_cache=True),
        listed("?limit=1&resourceVersion={{list}}&resourceVersionMatch=Exact", from_cache=True),
        _next("limit=1"),
        listed("?limit=1", ALL_POOLS),
        listed("?limit=1&continue={{continue}}", ALL_POOLS),
        *[
            listed(f"?limit=2&continue={token}", from_cache=True)
            for token in ("x", "e30", "e30%3D", "bm90anNvbg", "eyJ2IjoidjEifQ", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0",
                          "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYSJ9", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiIn0",
                          "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vYSJ9")
        ],
        listed("?continue=%00"),
    ],
    "get": [
        *_SETUP[:2],
        get("l0", "?resourceVersion=0", from_cache=True),
        get("l0", "?resourceVersion={{rv l0}}", from_cache=True),
        get("l0", "?resourceVersion={{rv l1}}", from_cache=True),
        get("l0", "?resourceVersion=abc"),
        get("l0", "?resourceVersion=-1"),
        get("l0", "?resourceVersion=9999999999999999"),
        get("l0", "?resourceVersionMatch=Exact"),
        get("l0", "?pretty=true"),
        get("l0", "?pretty=1"),
        get("l0", "?pretty=false"),
        get("l0", "?pretty="),
        get("l0", "?pretty=x"),
        get("l0", "?unknown=1"),
        get("l0", headers={"User-Agent": "curl/8.0"}),
        get("l0", headers={"User-Agent": "Mozilla/5.0"}),
        get("l0", "?pretty=false", headers={"User-Agent": "curl/8.0"}),
        get("missing"),
        get("missing", "?resourceVersion=0", from_cache=True),
        get("missing", "?resourceVersion=x"),
        get("l0", "?%zz"),
        get("l0", "?a;b"),
        get("l0/nothing"),
        get("l0/status/nothing"),
        get("l%30"),
        get("L0"),
        get("l0/"),
        listed("/"),
        get("l0", headers={"Accept": ""}),
    ],
    "all namespaces": [
        *_SETUP[:2],
        create(pool("elsewhere"), "", POOLS.replace("{{ns}}", "{{other}}")),
        listed("", ALL_POOLS),
        listed("?limit=2", ALL_POOLS),
        listed("?limit=2&continue={{continue}}", ALL_POOLS),
        listed("?fieldSelector=metadata.namespace%3D{{other}}", ALL_POOLS),
        listed("?fieldSelector=metadata.name%3Dl0", ALL_POOLS),
        listed("?fieldSelector=metadata.namespace!%3D{{other}}", ALL_POOLS),
        listed("?resourceVersion=0", ALL_POOLS, from_cache=True),
        listed("?labelSelector=app", ALL_POOLS),
        listed("", POOLS.replace("{{ns}}", "{{ns}}-oth")),
        listed("", POOLS.replace("{{ns}}", "Bad_Name")),
        send("list", "GET", "/apis/clrk.apoxy.dev/v1alpha1/namespaces/{{ns}}"),
        send("list", "GET", "/apis/clrk.apoxy.dev/v1alpha1/namespaces//workerpools"),
    ],
    "list options that are odd": [
        *_SETUP[:1],
        *[
            listed(query)
            for query in (
                "?timeoutSeconds=5",
                "?timeoutSeconds=x",
                "?timeoutSeconds=-1",
                "?allowWatchBookmarks=true",
                "?allowWatchBookmarks=x",
                "?sendInitialEvents=true",
                "?sendInitialEvents=false",
                "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
                "?sendInitialEvents=x",
                "?watch=false",
                "?watch=0",
                "?watch=False",
                "?limit=99999999999999999999",
                "?limit=1.5",
                "?limit=2&limit=3",
                "?resourceVersion=0&resourceVersion=1",
                "?resourceVersion=01",
                "?resourceVersion=1.0",
                "?resourceVersion=99999999999999999999",
                "?resourceVersion=%20",
                "?shardSelector=x",
                "?includeObject=None",
                "?pretty=true",
                "?timeout=5s",
                "?timeout=x",
                "?timeout=99h",
                "?timeout=-1s",
                "?fieldValidation=Bogus",
                "?dryRun=Bogus",
                "?LIMIT=x",
            )
        ],
    ],
}
