"""The parameters of Kubernetes' operations: names and types are its own, the descriptions ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter in the path or the query."""

    name: str
    type: Literal["boolean", "integer", "string"]
    description: str
    place: Literal["path", "query"] = "query"


def _by_name(parameters: Iterable[Parameter]) -> Mapping[str, Parameter]:
    return MappingProxyType({parameter.name: parameter for parameter in parameters})


PRETTY: Final = Parameter(
    "pretty", "string", "`true` indents the answer. Without it, browsers, curl and wget get it indented, others do not."
)
NAMESPACE: Final = Parameter("namespace", "string", "Namespace that the request is about.", "path")


def name_of(kind: str) -> Parameter:
    """The name of an object of the kind, in the path."""
    return Parameter("name", "string", f"name of the {kind}", "path")


_DRY_RUN = Parameter("dryRun", "string", "`All`: do everything but store the result. Any other value is an error.")
_FIELD_VALIDATION = Parameter(
    "fieldValidation",
    "string",
    "What happens to fields that the schema does not know and to fields given twice: `Ignore` drops them, `Warn` (used when nothing is "
    "given) drops them and says so in a Warning header, `Strict` refuses the request.",
)
_FIELD_MANAGER = Parameter(
    "fieldManager",
    "string",
    "Name under which the written fields are owned: up to 128 printable characters. Without it, the part of the User-Agent before `/`.",
)
_RESOURCE_VERSION = Parameter(
    "resourceVersion",
    "string",
    "How new the answer must be: without it, the newest state; `0` means any state the server has; another value means not older than that "
    "version. A watch goes on from there.",
)

GET: Final = _by_name([_RESOURCE_VERSION])
WRITE: Final = _by_name([_DRY_RUN, _FIELD_MANAGER, _FIELD_VALIDATION])
PATCH: Final = _by_name(
    [
        _DRY_RUN,
        Parameter(
            "fieldManager",
            "string",
            "Name under which the written fields are owned: up to 128 printable characters. An apply must give it; other patches take the "
            "part of the User-Agent before `/` without it.",
        ),
        _FIELD_VALIDATION,
        Parameter("force", "boolean", "Take over fields that others own, instead of a conflict. Only for an apply."),
    ]
)
DELETE: Final = _by_name(
    [
        _DRY_RUN,
        Parameter("gracePeriodSeconds", "integer", "Seconds until the object goes; 0 means at once."),
        Parameter(
            "ignoreStoreReadErrorWithClusterBreakingPotential",
            "boolean",
            "Delete an object that cannot be read from the store any more, without finalizers and preconditions. Dangerous.",
        ),
        Parameter("orphanDependents", "boolean", "Old form of propagationPolicy: true keeps dependents."),
        Parameter(
            "propagationPolicy",
            "string",
            "What becomes of dependents: `Orphan` keeps them, `Background` deletes them afterwards, `Foreground` before the object itself.",
        ),
    ]
)
LIST: Final = _by_name(
    [
        Parameter("allowWatchBookmarks", "boolean", "For a watch: send BOOKMARK events, from which an interrupted watch can go on."),
        Parameter(
            "continue",
            "string",
            "Where the page begins: what the page before gave in metadata.continue, with the other parameters unchanged. A page that is "
            "too old is answered with 410.",
        ),
        Parameter("fieldSelector", "string", "Fields that the objects must have, as in `metadata.name=a`."),
        Parameter("labelSelector", "string", "Labels that the objects must have, as in `a=b,c in (d,e),!f`."),
        Parameter("limit", "integer", "How many objects one page holds at the most. All pages together show one state of the collection."),
        _RESOURCE_VERSION,
        Parameter(
            "resourceVersionMatch",
            "string",
            "How a list takes resourceVersion: `Exact`, or `NotOlderThan`. A watch with sendInitialEvents needs `NotOlderThan`.",
        ),
        Parameter(
            "sendInitialEvents",
            "boolean",
            "For a watch: begin with an ADDED event for each object there is, then a bookmark annotated with `k8s.io/initial-events-end`.",
        ),
        Parameter(
            "shardSelector", "string", "Part of the collection, by a hash of its objects. An alpha feature of Kubernetes that is off."
        ),
        Parameter("timeoutSeconds", "integer", "How many seconds a list or a watch may last."),
        Parameter("watch", "boolean", "Send changes, as a stream of events, instead of a list."),
    ]
)
