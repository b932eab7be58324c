"""Lists: which objects at which revision, page by page.

A list is answered from a snapshot of the cache: now, or as of a revision inside its history. What is older comes from the store, and what
the store has forgotten is a 410. Gives blocks of a snapshot, not copies: what was derived from a block serves every list that holds it.
Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
"""

from __future__ import annotations

import base64
import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from apiserver.meta import errors, json_codec
from storage.errors import Compacted, FutureRevision
from storage.snapshot import Block, Snapshot

if TYPE_CHECKING:
    from apiserver.meta.options import ListOptions
    from apiserver.registry.resource_store import ResourceStore
    from apiserver.registry.selection import Selection
    from apiserver.registry.stored_object import StoredObject

ANY_REVISION = -1
"""In a continue token: go on at whatever the revision is then."""

_NOT_BASE64 = re.compile("[^A-Za-z0-9_-]")
_PAGE_OF_THE_PAST = 500
_BLOCKS_PER_STEP = 16
_MAX_REVISION = 2**64 - 1

_TOO_OLD_LIST = "The resourceVersion for the provided list is too old."
_TOO_OLD_PAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue "
    "parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token "
    "results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned "
    "and now may show up in the list."
)


@dataclass(slots=True)
class ObjectList:
    """The selected objects of one page in the order of their keys, in blocks that are not empty."""

    blocks: list[Block[StoredObject]]
    revision: int
    continue_token: str = ""
    remaining: int | None = None
    """How many come after this page; None when nothing does, or when a selector makes it costly to know."""
    objects: int = field(default=0)
    """How many there are on this page."""


@dataclass(frozen=True, slots=True)
class _Range:
    """What to read: everything under a prefix, from a key on."""

    prefix: str
    start_key: str | None = None


def encode_continue(start: str, revision: int) -> str:
    """The token that makes a list go on at `start` (relative to the list's prefix)."""
    token = orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def decode_continue(token: str, prefix: str) -> tuple[str, int]:
    """Return the key at which the list goes on, and its revision (`ANY_REVISION` or any other negative number: the current one).

    Raises:
        APIError: 400 for what is no token, or leads out of the prefix.

    Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/storage/continue.go
    """
    try:
        value = json_codec.decode(_from_base64(token))
        version, revision, start = value.get("v", ""), value.get("rv", 0), value.get("start", "")
    except ValueError as error:
        raise _bad_token(f"continue key is not valid: {error}") from error
    except AttributeError as error:
        raise _bad_token("continue key is not valid: it is not what this server gave") from error
    if version != "meta.k8s.io/v1":
        raise _bad_token(f"continue key is not valid: server does not recognize this encoded version {version}")
    if not isinstance(revision, int) or not isinstance(start, str):
        raise _bad_token("continue key is not valid")
    if revision == 0:
        raise _bad_token("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not start:
        raise _bad_token("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
    rooted = start if start.startswith("/") else "/" + start
    if posixpath.normpath(rooted) != rooted:
        raise _bad_token(f"continue key is not valid: {start}")
    return prefix + rooted[1:], revision


def _from_base64(token: str) -> bytes:
    """Decode base64 without padding, in the alphabet of addresses; the text of the ValueError is Go's."""
    wrong = _NOT_BASE64.search(token)
    if wrong is not None or len(token) % 4 == 1:
        raise ValueError(f"illegal base64 data at input byte {wrong.start() if wrong is not None else len(token) - 1}")
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


def _bad_token(problem: str) -> errors.APIError:
    return errors.bad_request(f"invalid continue token: {problem}")


def parse_revision(resource_version: str) -> int:
    """The revision that a client's resourceVersion means; 0 for none and for any.

    Raises:
        ValueError: it is not a number of 64 bits; the text is the one that Kubernetes gives.
    """
    if not resource_version:
        return 0
    problem = "invalid syntax"
    if resource_version.isascii() and resource_version.isdecimal():
        revision = int(resource_version)
        if revision <= _MAX_REVISION:
            return revision
        problem = "value out of range"
    quoted = orjson.dumps(resource_version).decode()
    raise ValueError(f"Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: {problem}")


async def list_objects(store: ResourceStore, selection: Selection, options: ListOptions) -> ObjectList:
    """Return the selected objects as the options ask: how fresh, from where on, how many.

    Reads one revision; a page that goes on reads the revision of the first one. Lets others run while it filters.

    Raises:
        APIError: 400 for a resourceVersion or continue token that makes no sense; 410 for one that is too old, with a token to go on if it
            was a page; 504 for a resourceVersion that has not been given yet.
        StoreError: the store could not be read.
    """
    prefix = store.codec.prefix(selection.namespace)
    cache = store.cache
    limit = 0 if options.resource_version == "0" else max(options.limit, 0)
    if options.continue_:
        start_key, revision = decode_continue(options.continue_, prefix)
        if options.resource_version not in ("", "0"):
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        where = _Range(prefix, start_key)
        if revision < 0:
            await cache.fresh()
            return await _from_snapshot(store, cache.snapshot(), where, selection, limit)
        return await _exactly_at(store, revision, where, selection, limit)
    try:
        revision = parse_revision(options.resource_version)
    except ValueError as error:
        raise errors.bad_request(f"invalid resource version: resourceVersion: {error}") from error
    match = options.resource_version_match
    if revision and (match == "Exact" or (not match and limit)):
        # One object has no further page.
        return await _exactly_at(store, revision, _Range(prefix), selection, 0 if selection.is_single else limit)
    if options.resource_version == "" or not cache.ready:
        await cache.fresh()
    elif revision:
        await _reach(store, revision)
    if selection.is_single:
        return _single(store, cache.snapshot(), selection)
    return await _from_snapshot(store, cache.snapshot(), _Range(prefix), selection, limit)


async def _reach(store: ResourceStore, revision: int) -> None:
    try:
        await store.cache.until(revision)
    except FutureRevision as error:
        raise errors.too_large_resource_version(error.revision, error.current_revision) from error


async def _exactly_at(store: ResourceStore, revision: int, where: _Range, selection: Selection, limit: int) -> ObjectList:
    if not store.cache.ready:
        await store.cache.fresh()
    await _reach(store, revision)
    try:
        return await _from_snapshot(store, store.cache.snapshot_at(revision), where, selection, limit)
    except Compacted:
        pass
    try:
        return await _from_store(store, revision, where, selection, limit)
    except Compacted as error:
        if where.start_key is None:
            raise errors.expired(_TOO_OLD_LIST) from error
        token = encode_continue(where.start_key.removeprefix(where.prefix), ANY_REVISION)
        raise errors.expired(_TOO_OLD_PAGE, continue_token=token) from error


def _single(store: ResourceStore, snapshot: Snapshot[StoredObject], selection: Selection) -> ObjectList:
    key = store.codec.key(selection.namespace, selection.name or "")
    found = snapshot.get(key)
    if found is not None:
        store.check_readable([found])
    if found is None or not selection.matches(found):
        return ObjectList([], snapshot.revision)
    return ObjectList([Block([key], [found])], snapshot.revision, objects=1)


async def _from_snapshot(
    store: ResourceStore, snapshot: Snapshot[StoredObject], where: _Range, selection: Selection, limit: int
) -> ObjectList:
    prefix, start_key = where.prefix, where.start_key
    store.check_readable(snapshot.iterate(prefix, start_key))
    if selection.is_everything:
        count = snapshot.count(prefix, start_key)
        blocks = list(snapshot.blocks(prefix, start_key, limit=limit or None))
        listed = ObjectList(blocks, snapshot.revision, objects=count)
        if limit and count > limit:
            listed.objects = limit
            listed.remaining = count - limit
            listed.continue_token = _token_after(blocks, where, snapshot.revision)
        return listed
    listed = ObjectList([], snapshot.revision)
    for number, block in enumerate(snapshot.blocks(prefix, start_key), 1):
        if limit and listed.objects >= limit:
            listed.continue_token = _token_after(listed.blocks, where, snapshot.revision)
            break
        rest = _add(listed, block, selection, limit)
        if rest:
            listed.continue_token = _token_after(listed.blocks, where, snapshot.revision)
            break
        if number % _BLOCKS_PER_STEP == 0:
            await store.turns.next()
    return listed


def _add(listed: ObjectList, block: Block[StoredObject], selection: Selection, limit: int) -> int:
    """Append what a block has of the selection, up to the limit; return how many entries of the block were not looked at."""
    matches = selection.matches
    chosen = [obj for obj in block.entries if matches(obj)]
    left = limit - listed.objects if limit else len(chosen)
    unseen = 0
    if limit and len(chosen) >= left:
        chosen = chosen[:left]
        unseen = len(block) - 1 - block.entries.index(chosen[-1])
    if chosen:
        whole = len(chosen) == len(block)
        listed.blocks.append(block if whole else Block([obj.key for obj in chosen], chosen))
        listed.objects += len(chosen)
    return unseen


async def _from_store(store: ResourceStore, revision: int, where: _Range, selection: Selection, limit: int) -> ObjectList:
    listed = ObjectList([], revision)
    start_key = where.start_key
    while True:
        size = min(limit, _PAGE_OF_THE_PAST) if limit and selection.is_everything else _PAGE_OF_THE_PAST
        page = await store.cache.list(where.prefix, start_key=start_key, limit=size, revision=revision)
        if not page.items:
            return listed
        entries = [store.decode(item) for item in page.items]
        store.check_readable(entries)
        unseen = _add(listed, Block([entry.key for entry in entries], entries), selection, limit)
        if limit and listed.objects >= limit:
            if page.remaining or unseen:
                listed.continue_token = _token_after(listed.blocks, where, revision)
                listed.remaining = page.remaining + unseen if selection.is_everything else None
            return listed
        if not page.remaining:
            return listed
        start_key = page.items[-1].key + "\0"


def _token_after(blocks: list[Block[StoredObject]], where: _Range, revision: int) -> str:
    return encode_continue(f"/{blocks[-1].keys[-1].removeprefix(where.prefix)}\0", revision)
