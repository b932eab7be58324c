"""What gRPC and etcd answer instead of a result becomes the error that the contract promises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from storage.errors import (
    Compacted,
    Corrupted,
    FutureRevision,
    Overloaded,
    StoreClosed,
    StoreError,
    StoreFull,
    Unavailable,
    Unknown,
    ValueTooLarge,
)
from storage.etcd import EtcdConfig
from storage.etcd.calls import CallError, StatusCode
from storage.etcd.failures import is_stale_token, store_error, text_of
from storage.etcd.link import has_ordered_progress, has_prompt_progress
from tests.storage.etcd.conftest import OpenStore
from tests.tools.etcd import Etcd


@pytest.mark.parametrize(
    ("code", "details", "read", "write"),
    [
        pytest.param("OUT_OF_RANGE", "etcdserver: mvcc: required revision has been compacted", Compacted, Compacted, id="compacted"),
        pytest.param(
            "OUT_OF_RANGE", "etcdserver: mvcc: required revision is a future revision", FutureRevision, FutureRevision, id="future"
        ),
        pytest.param("INVALID_ARGUMENT", "etcdserver: request is too large", ValueTooLarge, ValueTooLarge, id="too-large"),
        pytest.param(
            "RESOURCE_EXHAUSTED", "grpc: received message larger than max (5 vs. 4)", ValueTooLarge, ValueTooLarge, id="message-too-large"
        ),
        pytest.param("RESOURCE_EXHAUSTED", "etcdserver: mvcc: database space exceeded", StoreFull, StoreFull, id="no-space"),
        pytest.param("RESOURCE_EXHAUSTED", "etcdserver: too many requests", Overloaded, Overloaded, id="too-many-requests"),
        pytest.param("DATA_LOSS", "etcdserver: corrupt cluster", Corrupted, Corrupted, id="corrupt"),
        pytest.param("PERMISSION_DENIED", "etcdserver: permission denied", Unavailable, Unavailable, id="permission"),
        pytest.param("UNAUTHENTICATED", "etcdserver: invalid auth token", Unavailable, Unavailable, id="token"),
        pytest.param("UNAVAILABLE", "Socket closed", Unavailable, Unknown, id="connection-lost"),
        pytest.param("UNAVAILABLE", "etcdserver: request timed out", Unavailable, Unknown, id="server-timeout"),
        pytest.param("UNAVAILABLE", "etcdserver: leader changed", Unavailable, Unknown, id="leader-changed"),
        pytest.param("DEADLINE_EXCEEDED", "Deadline Exceeded", Unavailable, Unknown, id="deadline"),
        pytest.param("UNKNOWN", "anything", Unavailable, Unknown, id="anything-else"),
    ],
)
def test_each_answer_has_its_error(code: str, details: str, read: type[StoreError], write: type[StoreError]) -> None:
    error = CallError(StatusCode[code], details)
    assert type(store_error(error, write=False)) is read
    assert type(store_error(error, write=True)) is write


@pytest.mark.parametrize("code", [code for code in StatusCode if code is not StatusCode.OK], ids=lambda code: cast(StatusCode, code).name)
def test_every_status_code_is_mapped(code: StatusCode) -> None:
    assert isinstance(store_error(CallError(code, ""), write=True), StoreError)


def test_a_write_that_was_not_sent_has_changed_nothing() -> None:
    assert type(store_error(CallError(StatusCode.UNAVAILABLE, "the connection was lost", sent=False), write=True)) is Unavailable


def test_the_text_says_what_to_do_about_a_full_etcd() -> None:
    assert "--quota-backend-bytes" in text_of(CallError(StatusCode.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded"))


def test_a_refused_permission_is_no_stale_token() -> None:
    assert is_stale_token("etcdserver: invalid auth token")
    assert not is_stale_token("etcdserver: permission denied")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"endpoints": ()}, "endpoint", id="no-endpoint"),
        pytest.param({"endpoints": ("localhost:2379",)}, "http://HOST:PORT", id="no-scheme"),
        pytest.param({"user": "root"}, "password", id="user-alone"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        EtcdConfig(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("version", "ordered", "prompt"),
    [
        ("", False, False),
        ("3.3.27", False, False),
        ("3.4.24", False, False),
        ("3.4.25", True, False),
        ("3.4.30", True, False),
        ("3.4.31", True, True),
        ("3.5.7", False, False),
        ("3.5.8", True, False),
        ("3.5.12", True, False),
        ("3.5.13", True, True),
        ("3.6.0-rc.0", True, True),
        ("3.7.3", True, True),
        ("4.0.0", True, True),
    ],
)
def test_progress_is_trusted_from_the_versions_that_keep_it_in_order(version: str, ordered: bool, prompt: bool) -> None:
    assert (has_ordered_progress(version), has_prompt_progress(version)) == (ordered, prompt)


def test_the_password_is_not_shown() -> None:
    assert "secret" not in repr(EtcdConfig(user="root", password="secret"))


@pytest.mark.etcd
async def test_a_value_above_etcds_limit_is_refused_and_nothing_is_written(etcd: Etcd, open_store: OpenStore) -> None:
    store = open_store(etcd)
    for size in (1_600_000, 5_000_000):
        with pytest.raises(ValueTooLarge, match="max-request-bytes"):
            await store.create("/registry/a/b", b"x" * size)
    assert (await store.list("/registry/")).items == []


@pytest.mark.etcd
async def test_a_full_etcd_says_so_and_still_answers_reads(make_etcd: Callable[..., Etcd], open_store: OpenStore) -> None:
    etcd = make_etcd(flags=("--quota-backend-bytes=1000000",))
    etcd.start()
    store = open_store(etcd)

    async def fill() -> None:
        for n in range(1000):
            await store.create(f"/registry/a/{n}", b"x" * 100_000)

    with pytest.raises(Unavailable, match=r"database space exceeded.*quota-backend-bytes"):
        await fill()
    assert (await store.list("/registry/")).items


@pytest.mark.etcd
async def test_a_write_under_way_when_etcd_stops_answering_is_unknown(etcd: Etcd, open_store: OpenStore) -> None:
    store = open_store(etcd, request_timeout_seconds=0.3)
    await store.create("/registry/a/b", b"1")
    etcd.pause()
    with pytest.raises(Unknown):
        await store.create("/registry/a/c", b"1")
    with pytest.raises(Unavailable):
        await store.get("/registry/a/b")
    etcd.resume()
    assert (await store.get("/registry/a/b")).value == b"1"


@pytest.mark.etcd
async def test_closing_lets_writes_end_and_refuses_new_ones(etcd: Etcd, open_store: OpenStore) -> None:
    store = open_store(etcd)
    await store.current_revision()
    writes = [asyncio.create_task(store.create(f"/registry/a/{n}", b"x")) for n in range(20)]
    await asyncio.sleep(0)
    await store.close()
    assert len({(await write).revision for write in writes}) == 20
    with pytest.raises(StoreClosed):
        await store.create("/registry/a/late", b"x")
    with pytest.raises(StoreClosed):
        store.watch("/registry/a/", after_revision=0)
