"""What etcd and gRPC answer instead of a result, as errors of the store: one table, the first row that fits counts.

Policy: what is not known to have changed nothing is Unknown for a write.
"""

from __future__ import annotations

from typing import NamedTuple

from storage.errors import Compacted, Corrupted, FutureRevision, Overloaded, StoreError, StoreFull, Unavailable, Unknown, ValueTooLarge
from storage.etcd.calls import CallError, StatusCode


class Row(NamedTuple):
    """A status code (None: any), a part of its text, and what it means when it answers a read and a write."""

    code: StatusCode | None
    text: str
    read: type[StoreError]
    write: type[StoreError]
    advice: str = ""


FAILURES = (
    Row(StatusCode.OUT_OF_RANGE, "has been compacted", Compacted, Compacted),
    Row(StatusCode.OUT_OF_RANGE, "is a future revision", FutureRevision, FutureRevision),
    Row(StatusCode.INVALID_ARGUMENT, "request is too large", ValueTooLarge, ValueTooLarge, "etcd's --max-request-bytes is the limit"),
    Row(StatusCode.RESOURCE_EXHAUSTED, "larger than max", ValueTooLarge, ValueTooLarge, "etcd's --max-request-bytes is the limit"),
    Row(
        StatusCode.RESOURCE_EXHAUSTED,
        "database space exceeded",
        StoreFull,
        StoreFull,
        "etcd is full and takes no writes: raise --quota-backend-bytes or compact and defragment it, then disarm the NOSPACE alarm",
    ),
    Row(StatusCode.RESOURCE_EXHAUSTED, "too many requests", Overloaded, Overloaded),
    Row(StatusCode.DATA_LOSS, "", Corrupted, Corrupted),
    Row(
        StatusCode.PERMISSION_DENIED,
        "",
        Unavailable,
        Unavailable,
        "the etcd user needs a role with readwrite on the prefix and on compact_rev_key",
    ),
    Row(StatusCode.UNAUTHENTICATED, "", Unavailable, Unavailable),
    Row(StatusCode.INVALID_ARGUMENT, "", Unavailable, Unavailable),
    Row(StatusCode.FAILED_PRECONDITION, "", Unavailable, Unavailable),
    Row(StatusCode.UNIMPLEMENTED, "", Unavailable, Unavailable),
    Row(None, "", Unavailable, Unknown),
)

_STALE_TOKEN_TEXTS = ("invalid auth token", "user name is empty", "revision of auth store is old")


def row_of(error: CallError) -> Row:
    """Return the first row of the table that fits."""
    return next(row for row in FAILURES if row.code in (None, error.code) and row.text in error.details)


def store_error(error: CallError, *, write: bool) -> StoreError:
    """Return what to raise for `error`. Compacted and FutureRevision come without their numbers, which only the caller can know."""
    row = row_of(error)
    # What was not sent is a read as much as anything: every other lost connection may have lost the answer only.
    kind = row.write if write and error.sent else row.read
    return kind(0, 0) if kind in (Compacted, FutureRevision) else kind(text_of(error))


def text_of(error: CallError) -> str:
    """Return what to tell the operator: etcd's or gRPC's own words, and what to do about it where we know."""
    advice = row_of(error).advice
    words = f"etcd: {error.details or error.code.name}"
    return f"{words} ({advice})" if advice else words


def is_stale_token(text: str) -> bool:
    """Whether etcd refused the token that it gave, before doing anything."""
    return any(known in text for known in _STALE_TOKEN_TEXTS)
