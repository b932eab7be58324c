"""Every failure of a store has its answer."""

from __future__ import annotations

import pytest

from apiserver.meta.errors import GroupResource
from apiserver.registry.errors import TABLE, api_error
from storage import errors
from storage.store import KeyValue

GADGETS = GroupResource("example.dev", "gadgets")


def kinds_of(base: type[errors.StoreError]) -> list[type[errors.StoreError]]:
    return [kind for child in base.__subclasses__() for kind in (child, *kinds_of(child))]


def test_every_store_error_has_an_entry() -> None:
    assert set(kinds_of(errors.StoreError)) <= set(TABLE)


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (errors.KeyNotFound("k"), 404, "NotFound"),
        (errors.KeyExists(KeyValue("k", b"v", 1)), 409, "AlreadyExists"),
        (errors.RevisionConflict(KeyValue("k", b"v", 1)), 409, "Conflict"),
        (errors.Compacted(1, 2), 410, "Expired"),
        (errors.FutureRevision(2, 1), 504, "Timeout"),
        (errors.ValueTooLarge("v"), 413, "RequestEntityTooLarge"),
        (errors.Overloaded("o"), 429, "TooManyRequests"),
        (errors.Unavailable("secret host"), 503, "ServiceUnavailable"),
        (errors.Unknown("u"), 504, "Timeout"),
        (errors.Corrupted("c"), 500, "InternalError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_a_store_error_becomes_a_status(error: errors.StoreError, code: int, reason: str) -> None:
    status = api_error(error, GADGETS, "x").to_status()
    assert (status["code"], status["reason"]) == (code, reason)
    assert "secret" not in status["message"]
