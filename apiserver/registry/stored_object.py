"""One object as the server keeps it: the bytes that clients get, made once, and the few facts that selecting needs.

The store holds the object without its resourceVersion, since only the write itself decides that; clients get it with the resourceVersion
in place. Both forms differ in this one member, so only the wire form is kept and the stored form is cut out of it on demand. Keys are
sorted, as kube-apiserver writes custom resources: `metadata` ends with `uid`, and `resourceVersion` belongs right before it.

Of an object that has been overwritten only the difference to the newer state is kept, and unpacked on demand: most writes change little, so
the past takes a tenth of the room. One that has been deleted is kept compressed by itself.

Everything here is in canonical form (orjson, sorted keys): equal objects have equal bytes, whoever wrote them.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from isal import isal_zlib

from apiserver.meta import json_codec
from openapi.object_meta import MetadataTypeError, is_sound_at_a_glance, normalize_stored_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from apiserver.meta.resource import ResourceKind
    from storage.store import KeyValue

T = TypeVar("T")

_NO_LABELS: Mapping[str, str] = MappingProxyType({})
_ABSENT: Any = object()
_MAX_LINKS = 16
_WINDOW = 32_000
"""Of what is further away than this nothing is found again: see `zlib.MAX_WBITS`."""
_SHARED = ("name", "uid", "labels", "_fields", "_split", "_metadata_end", "_head_end")
_UNCHANGED = "unchanged by"
_MOST_CHANGES = 4
"""As many as there are who apply to one object in turn, mostly; each takes some hundred bytes."""
_PACKED = b"\0"
"""What no JSON begins with."""
_BOOKKEEPING = 500
"""Bytes of an object in the past and of the change that names it, its JSON apart."""


class StoredObject:
    """An immutable object at one revision; satisfies `storage.cache.Entry`. Made by an ObjectCodec only.

    At revision 0 it has not been stored (a dry run's answer) and carries no resourceVersion.
    """

    __slots__ = (
        "_fields",
        "_head_end",
        "_kept",
        "_links",
        "_memo",
        "_metadata_end",
        "_newer",
        "_split",
        "is_normal",
        "key",
        "labels",
        "name",
        "namespace",
        "revision",
        "uid",
    )

    def __init__(self, key: str, revision: int, encoded: EncodedObject) -> None:
        self.key = key
        self.revision = revision
        self.namespace = encoded.namespace
        self.name = encoded.name
        self.uid = encoded.uid
        self.labels = encoded.labels
        version = b'"resourceVersion":"%d",' % revision if revision else b""
        value, split = encoded.value, encoded.split
        self._kept = b"".join((value[:split], version, value[split:-1]))
        self._newer: StoredObject | None = None
        self._links = 0
        self._head_end = encoded.metadata_start
        self._split = split
        self._metadata_end = encoded.metadata_end + len(version)
        self._fields = encoded.fields
        self._memo: dict[str, Any] | None = None
        self.is_normal = encoded.is_normal
        """Whether it is known to be what the normalizer of today leaves as it is."""

    @property
    def wire(self) -> bytes:
        """The JSON of the whole object as clients get it, without a newline."""
        kept = self._kept
        return _unpacked(kept, self._newer) if kept.startswith(_PACKED) else kept

    def retire(self, newer: StoredObject | None) -> int:
        """Keep this state in less room, since `newer`, or nothing, has taken its place; return about how many bytes it still holds on to.

        To be called once, with an object whose own time has not passed. What can be seen of this object stays the same; reading its bytes
        takes some microseconds from now on.
        """
        self._memo = None
        kept = self._kept
        if newer is None:
            # Nothing is left to tell it from: by itself it takes less than half of the room.
            if len(kept) < _WINDOW and len(packed := isal_zlib.compress(kept, 1, -zlib.MAX_WBITS)) < len(kept) // 2:
                self._kept = kept = _PACKED + packed
            return _BOOKKEEPING + len(kept)
        newer._share(self)
        # Each state is read by way of the next: so every so many of them one is kept whole.
        if self._links < _MAX_LINKS and len(kept) < _WINDOW:
            packer = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS, 5, zlib.Z_DEFAULT_STRATEGY, newer.wire)
            packed = packer.compress(kept) + packer.flush()
            if len(packed) < len(kept) // 2:
                # In this order: threads may be reading.
                self._newer = newer
                self._kept = _PACKED + packed
                newer._links = self._links + 1
                return _BOOKKEEPING + len(packed)
        return _BOOKKEEPING + len(kept)

    def _share(self, older: StoredObject) -> None:
        """Name what is equal by the same objects as the state before, so that it is there once for all states."""
        self.key = older.key
        for name in _SHARED:
            value = getattr(older, name)
            if getattr(self, name) == value:
                setattr(self, name, value)

    @property
    def value(self) -> bytes:
        """The stored form: without resourceVersion, with a newline at the end."""
        wire = self.wire
        return b"".join((wire[: self._split], wire[self._uid_start :], b"\n"))

    @property
    def resource_version(self) -> str:
        """The revision as clients see it."""
        return str(self.revision) if self.revision else ""

    @property
    def metadata_wire(self) -> bytes:
        """The JSON of `metadata`, resourceVersion included."""
        return self.wire[self._head_end : self._metadata_end]

    @property
    def content(self) -> bytes:
        """The encoded members after metadata (`,"spec":…,"status":…}`): what the generation counts the changes of."""
        return self.wire[self._metadata_end :]

    @property
    def _uid_start(self) -> int:
        """Where `"uid":"U"}` begins, with which the metadata ends."""
        return self._metadata_end - len(self.uid) - 9

    def object(self) -> dict[str, Any]:
        """The object freshly parsed: the caller may change it."""
        value: dict[str, Any] = orjson.loads(self.wire)
        return value

    def field(self, path: str) -> str:
        """The value of a selectable field, as selectors compare it; empty when it is not set."""
        if path == "metadata.name":
            return self.name
        if path == "metadata.namespace":
            return self.namespace
        return self._fields.get(path, "")

    def memo(self, form: str, make: Callable[[StoredObject], T]) -> T:
        """What `make` derives from this object, made on first use and kept as long as the object."""
        memo = self._memo
        if memo is None:
            memo = self._memo = {}
        made: T = memo.get(form, _ABSENT)
        if made is _ABSENT:
            made = memo[form] = make(self)
        return made

    def note_unchanged_by(self, change: Hashable) -> None:
        """Remember that this change leaves the object as it is; the last few are known, as long as the object is the current one."""
        known = self.memo(_UNCHANGED, _nothing_yet)
        known[change] = None
        if len(known) > _MOST_CHANGES:
            del known[next(iter(known))]

    def is_unchanged_by(self, change: Hashable) -> bool:
        """Whether that has been remembered."""
        return change in self.memo(_UNCHANGED, _nothing_yet)

    def at(self, revision: int) -> StoredObject:
        """The same state under another revision, as a deletion reports it."""
        if revision == self.revision:
            return self
        end = self._metadata_end - (self._uid_start - self._split)
        encoded = EncodedObject(self.value, self._head_end, end, self.namespace, self.name, self.uid, self.labels, self._fields)
        return StoredObject(self.key, revision, encoded)


class UnreadableObject(StoredObject):
    """What lies under a key and is no object of this kind, whoever has put it there. It has an address, and nothing to select it by."""

    __slots__ = ("problem",)

    def __init__(self, stored: KeyValue, namespace: str, name: str, problem: str) -> None:
        super().__init__(stored.key, stored.revision, EncodedObject(b"", 0, 0, namespace, name, "", _NO_LABELS, _NO_LABELS))
        self._kept = stored.value
        self.problem = problem
        """Why it cannot be read."""

    @property
    def wire(self) -> bytes:
        """What is stored, as it is; no client gets it."""
        return self._kept

    @property
    def value(self) -> bytes:
        """The same."""
        return self._kept

    def retire(self, newer: StoredObject | None) -> int:
        """See `StoredObject.retire`."""
        return _BOOKKEEPING + len(self._kept)


@dataclass(slots=True)
class EncodedObject:
    """An object in stored form with what the encoder knew of it, so that its own write need not be parsed again."""

    value: bytes
    metadata_start: int
    metadata_end: int
    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str]
    fields: Mapping[str, str]
    is_normal: bool = False

    @property
    def split(self) -> int:
        """Where `"uid":"U"}` begins, which is where the resourceVersion goes in."""
        return self.metadata_end - len(self.uid) - 9

    def stored(self, written: KeyValue) -> StoredObject:
        """The entry for the cache, once the store has given the revision."""
        return StoredObject(written.key, written.revision, self)


class ObjectCodec:
    """Keys and bytes of one kind."""

    def __init__(self, kind: ResourceKind) -> None:
        self._root = f"/registry/{kind.group}/{kind.plural}/"
        self._namespaced = kind.namespaced
        self._head = b'{"apiVersion":%b,"kind":%b,"metadata":' % (orjson.dumps(kind.api_version), orjson.dumps(kind.kind))
        self._selectable = tuple((path.lstrip("."), path.strip(".").split(".")) for path in kind.selectable_fields)

    def key(self, namespace: str, name: str) -> str:
        """Where the object is stored: kube-apiserver's layout for custom resources."""
        return f"{self._root}{namespace}/{name}" if self._namespaced else self._root + name

    def prefix(self, namespace: str = "") -> str:
        """What all keys of a namespace, or of the resource, begin with; ends with a slash."""
        return f"{self._root}{namespace}/" if self._namespaced and namespace else self._root

    def encode_content(self, value: Mapping[str, Any]) -> bytes:
        """The members after metadata as they will stand in the object; compare with `StoredObject.content`."""
        # Top-level keys of a served kind all sort behind "metadata"; the schema's pruning has removed any other.
        content = {key: member for key, member in value.items() if key not in _TYPE_AND_METADATA}
        return b"," + _dumps(content)[1:] if content else b"}"

    def encode(self, value: Mapping[str, Any], *, content: bytes | None = None, is_normal: bool = False) -> EncodedObject:
        """Bring an object (with name and uid) into stored form; `content` saves encoding again what `encode_content` made.

        `is_normal` says that it has been normalized, and changed by nobody who does not keep it so. A resourceVersion in the object is left
        out. The labels are kept, not copied: the caller must not change them afterwards.
        """
        metadata = value["metadata"]
        if "resourceVersion" in metadata:
            metadata = {key: member for key, member in metadata.items() if key != "resourceVersion"}
        encoded_metadata = _dumps(metadata)
        if content is None:
            content = self.encode_content(value)
        start = len(self._head)
        return EncodedObject(
            value=b"".join((self._head, encoded_metadata, content, b"\n")),
            metadata_start=start,
            metadata_end=start + len(encoded_metadata),
            namespace=sys.intern(metadata.get("namespace", "")),
            name=metadata["name"],
            uid=metadata["uid"],
            labels=metadata.get("labels") or _NO_LABELS,
            fields=self._fields_of(value) if self._selectable else _NO_LABELS,
            is_normal=is_normal,
        )

    def decode(self, stored: KeyValue) -> StoredObject:
        """Read what is in the store, whoever wrote it: an UnreadableObject, if that is not an object with a name and a uid."""
        try:
            value = orjson.loads(stored.value)
            if not is_sound_at_a_glance(value["metadata"]):
                normalize_stored_metadata(value)
            encoded = self.encode(value)
            if not encoded.value.startswith(b'"uid":"', encoded.split):
                raise TypeError("a uid that is not written as it is")  # where it stands would not be known
            return encoded.stored(stored)
        except (orjson.JSONDecodeError, MetadataTypeError, AttributeError, KeyError, TypeError) as error:
            path = stored.key.removeprefix(self._root)
            namespace, name = path.split("/", 1) if self._namespaced and "/" in path else ("", path)
            return UnreadableObject(stored, namespace, name, _problem_of(stored.value, error))

    def _fields_of(self, value: Mapping[str, Any]) -> Mapping[str, str]:
        fields: dict[str, str] = {}
        for name, path in self._selectable:
            member: Any = value
            for step in path:
                member = member.get(step) if isinstance(member, dict) else None
            if member is not None:
                fields[name] = str(member).lower() if isinstance(member, bool) else str(member)
        return fields


def _problem_of(value: bytes, error: Exception) -> str:
    if not isinstance(error, orjson.JSONDecodeError):
        return "it has no name or no uid, or these are no texts"
    try:
        json_codec.decode(value)
    except ValueError as said:
        return str(said)
    return str(error)


def _nothing_yet(_: StoredObject) -> dict[Hashable, None]:
    return {}


def _unpacked(kept: bytes, newer: StoredObject | None) -> bytes:
    packed = kept[len(_PACKED) :]
    if newer is None:
        return zlib.decompress(packed, -zlib.MAX_WBITS)
    return zlib.decompressobj(-zlib.MAX_WBITS, zdict=newer.wire).decompress(packed)


def _dumps(value: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # nested deeper than orjson writes, though it reads it
        return json_codec.encode(value)[:-1]


_TYPE_AND_METADATA = frozenset({"apiVersion", "kind", "metadata"})
