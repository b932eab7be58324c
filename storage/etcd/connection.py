"""The way to etcd: one member at a time, the next one when it fails, tokens, deadlines, errors.

Knows how calls end, and how the revisions of this etcd are shown (`Epoch`), nothing of keys and values.

Policy: a call is tried again at most once, and only when the first try is known to have changed nothing. While no member answers, calls
fail at once with what each member said, and a new round over all members begins a quarter of a second later at the earliest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from storage.errors import Compacted, StoreClosed, Unavailable, Unsupported
from storage.etcd.calls import CallError, StatusCode
from storage.etcd.config import EtcdConfig
from storage.etcd.failures import is_stale_token, store_error, text_of
from storage.etcd.link import AUTHENTICATE, RANGE, STATUS, Link, Method, has_ordered_progress, has_prompt_progress
from storage.etcd.messages import AuthenticateRequest, RangeRequest, StatusRequest

log = logging.getLogger(__name__)

_ROUND_PAUSE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Epoch:
    """How the revisions of this etcd are shown: ours are etcd's plus `offset`, and below `floor` (ours) there is no history.

    A new one begins when etcd is another one (restored from a backup, emptied, loaded): no revision of an old epoch can be resumed.
    """

    number: int
    cluster_id: int
    record: bytes
    offset: int
    floor: int


class Connection:
    """Calls on whichever member works. `on_epoch` is called when revisions of before have lost their meaning."""

    def __init__(self, config: EtcdConfig, *, on_epoch: Callable[[], None]) -> None:
        self.epoch = Epoch(0, 0, b"", 0, 0)
        self.highest_revision = 0
        self.closed = asyncio.Event()
        self.config = config
        self.record_key = b"clrk-apiserver/revisions" + config.prefix.encode()  # outside of every prefix with objects
        self._on_epoch = on_epoch
        self._record_request = RangeRequest(key=self.record_key)
        self._link: Link | None = None
        self._next_index = 0
        self._round: asyncio.Task[Link] | None = None
        self._round_failure = ""
        self._round_error = Unavailable
        self._round_after = 0.0
        self._failures_logged = False
        self._token_lock = asyncio.Lock()
        self._retiring: set[asyncio.Task[None]] = set()

    async def call(self, method: Method, request: Any, *, write: bool = False) -> Any:
        """Return the response to `request`. A read is linearizable unless the request says otherwise.

        Raises:
            Compacted, FutureRevision: without useful numbers; the caller knows them.
            Unavailable, Unknown, ValueTooLarge, Overloaded, Corrupted: see the table in `failures`.
        """
        link = self._link or await self.link()
        token = link.token
        try:
            response = await link.call(method, request)
        except CallError as error:
            response = await self._call_again(link, token, error, method, request, write=write)
        if response.header.revision > self.highest_revision:
            self.highest_revision = response.header.revision
        return response

    async def known_epoch(self) -> Epoch:
        """Return the epoch; connect first, if this has never been done.

        Raises:
            Unavailable: never connected, and no member answers.
        """
        if not self.epoch.number:
            await self.link()
        return self.epoch

    async def read_record(self) -> int:
        """Return etcd's current revision, linearizable, having made sure that `epoch` is right for it. The cheapest read there is."""
        response = await self.call(RANGE, self._record_request)
        record = response.kvs[0].value if response.kvs else b""
        if record != self.epoch.record:
            self._begin_epoch(self.epoch.cluster_id, record)
        return int(response.header.revision)

    async def compact_revision(self, compacted: int) -> int:
        """Return the oldest revision (etcd's) that can be read, knowing one that cannot. etcd tells it nowhere: find it by halving."""
        readable = await self.read_record()
        while readable - compacted > 1:
            middle = (readable + compacted) // 2
            try:
                await self.call(RANGE, RangeRequest(key=self.record_key, revision=middle, keys_only=True))
            except Compacted:
                compacted = middle
            else:
                readable = middle
        return readable

    async def link(self) -> Link:
        """Return a link that has just worked; try all members once, if need be.

        Raises:
            Unavailable: no member answers; says what each of them did.
            Unsupported: so it is, and one of them does, but is too old.
            StoreClosed: `close` was called.
        """
        if self.closed.is_set():
            raise StoreClosed("the store has been closed")
        if self._link is not None:
            return self._link
        if self._round is None:
            if asyncio.get_running_loop().time() < self._round_after:
                raise self._round_error(self._round_failure)
            self._round = asyncio.create_task(self._connect())
            self._round.add_done_callback(self._end_round)
        try:
            return await asyncio.shield(self._round)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise StoreClosed("the store has been closed") from error

    def lose(self, link: Link, error: CallError) -> None:
        """Use another member from now on, if `error` says that this one does not work. What is under way there may still end well."""
        code, only = error.code, len(self.config.endpoints) == 1
        if code not in (StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED):
            return
        if only and (code is StatusCode.DEADLINE_EXCEEDED or error.details.startswith("etcdserver:")):
            return
        if self._link is link:
            log.warning("etcd: %s is given up: %s", link.endpoint, error.details)
            self._link = None
            self._next_index = (link.index + 1) % len(self.config.endpoints)
            self._retire(link)

    async def renew_token(self, link: Link, stale: str) -> None:
        """Get a new token, unless somebody else has replaced the stale one meanwhile."""
        async with self._token_lock:
            if link.token == stale:
                await self._authenticate(link)

    async def close(self) -> None:
        """Let calls under way end, then close all connections."""
        self.closed.set()
        if self._round is not None:
            self._round.cancel()
            await asyncio.wait([self._round])
        if self._link is not None:
            link, self._link = self._link, None
            self._retire(link)
        if self._retiring:
            await asyncio.wait(self._retiring)

    async def _call_again(self, link: Link, token: str, error: CallError, method: Method, request: Any, *, write: bool) -> Any:
        try:
            if self.config.user is not None and is_stale_token(error.details):
                await self.renew_token(link, token)
            else:
                self.lose(link, error)
                known = store_error(error, write=write)
                if error.code is not StatusCode.UNAVAILABLE or not isinstance(known, Unavailable):
                    raise known from error
                link = await self.link()
            return await link.call(method, request)
        except CallError as last:
            self.lose(link, last)
            raise store_error(last, write=write) from last

    async def _connect(self) -> Link:
        count = len(self.config.endpoints)
        said = []
        self._round_error = Unavailable
        for offset in range(count):
            index = (self._next_index + offset) % count
            try:
                async with asyncio.timeout(self.config.connect_timeout_seconds):
                    link = await self._meet(index)
            except OSError as error:  # TimeoutError is one
                said.append(f"{self.config.endpoints[index]}: {'no answer in time' if isinstance(error, TimeoutError) else error}")
            except CallError as error:
                said.append(f"{self.config.endpoints[index]}: {text_of(error)}")
            except Unsupported as error:
                said.append(f"{self.config.endpoints[index]}: {error}")
                self._round_error = Unsupported
            else:
                log.info("etcd: connected to %s", link.endpoint)
                self._link, self._next_index, self._failures_logged = link, index, False
                return link
        self._round_failure = f"etcd cannot be {'used' if self._round_error is Unsupported else 'reached'}: {'; '.join(said)}"
        self._round_after = asyncio.get_running_loop().time() + _ROUND_PAUSE_SECONDS
        if not self._failures_logged:
            log.warning("%s; trying until it can", self._round_failure)
            self._failures_logged = True
        raise self._round_error(self._round_failure)

    async def _meet(self, index: int) -> Link:
        link = await Link.connect(index, self.config)
        try:
            await self._greet(link)
        except BaseException:
            await link.close()
            raise
        return link

    async def _greet(self, link: Link) -> None:
        """Prove that the member works and belongs to a cluster with a leader, and find out whether it is still the same etcd.

        Raises:
            Unsupported: it is too old.
            CallError: it does not work.
        """
        await self._authenticate(link)
        version = (await link.call(STATUS, StatusRequest())).version
        if not has_ordered_progress(version):
            raise Unsupported(f"its version is {version or 'not told'}; 3.4.25, 3.5.8, 3.6 and what came after each of them are supported")
        link.prompt_progress = has_prompt_progress(version)
        response = await link.call(RANGE, self._record_request)
        record = response.kvs[0].value if response.kvs else b""
        cluster_id, revision = response.header.cluster_id, response.header.revision
        if cluster_id != self.epoch.cluster_id or revision < self.highest_revision or record != self.epoch.record:
            self.highest_revision = revision
            self._begin_epoch(cluster_id, record)
        self.highest_revision = max(self.highest_revision, revision)

    async def _authenticate(self, link: Link) -> None:
        if self.config.user is None:
            return
        try:
            response = await link.call(AUTHENTICATE, AuthenticateRequest(name=self.config.user, password=self.config.password))
        except CallError as error:
            if "authentication is not enabled" not in error.details:
                raise
        else:
            link.token = response.token

    def _begin_epoch(self, cluster_id: int, record: bytes) -> None:
        offset, floor = (int(part) for part in record.split()) if record else (0, 0)
        old, self.epoch = self.epoch, Epoch(self.epoch.number + 1, cluster_id, record, offset, floor)
        if old.number:
            log.warning("etcd: its history is another one (cluster %x, revision %d)", cluster_id, self.highest_revision)
            self._on_epoch()

    def _end_round(self, task: asyncio.Task[Link]) -> None:
        self._round = None
        if not task.cancelled():
            task.exception()  # who waited has it; nobody may have

    def _retire(self, link: Link) -> None:
        task = asyncio.create_task(link.drain())
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)
