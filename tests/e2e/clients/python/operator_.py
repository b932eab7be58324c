"""A small operator made with kopf: it says in a worker's status that the worker asks for work, and lets go of it when it is deleted.

As `observe` it only tells of the events that it gets."""

from __future__ import annotations

import sys
from typing import Any

import kopf

from tests.e2e.clients.python.conversation import API_VERSION, PLURAL, tell


def _remember(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.persistence.finalizer = "example.dev/operator"
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix="example.dev", key="last-handled")
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="example.dev")
    settings.posting.enabled = False


def _polling(body: kopf.Body, patch: kopf.Patch, reason: str, diff: kopf.Diff, **_: Any) -> None:
    tell("handled", reason=str(reason), name=body.metadata.name, diff=[list(item[:2]) for item in diff])
    patch.status["conditions"] = [
        {
            "type": "Polling",
            "status": "True",
            "reason": "Asks",
            "message": f"The image is {body.spec.get('image')}",
            "lastTransitionTime": body.metadata.creation_timestamp,
            "observedGeneration": body.metadata["generation"],
        }
    ]


def _let_go(name: str, **_: Any) -> None:
    tell("handled", reason="delete", name=name, diff=[])


def _event(type: str | None, body: kopf.Body, **_: Any) -> None:
    tell("event", type=type or "LISTED", object={"metadata": dict(body.metadata)})


def _main(namespace: str, *, observes: bool) -> None:
    kopf.on.startup()(_remember)
    kopf.on.event(API_VERSION, PLURAL)(_event)
    if not observes:
        for decorator in (kopf.on.create, kopf.on.update, kopf.on.resume):
            decorator(API_VERSION, PLURAL)(_polling)
        kopf.on.delete(API_VERSION, PLURAL)(_let_go)
    kopf.run(standalone=True, namespaces=[namespace])


if __name__ == "__main__":
    _main(sys.argv[-1], observes="observe" in sys.argv[1:-1])
