"""Watchers who want the same: the events of changes are made once for all of them.

Knows which changes concern it and what they are to its members, and nothing of connections.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from apiserver.registry.frames import ADDED, DELETED, MODIFIED, Frames, Framing, Pack

if TYPE_CHECKING:
    from apiserver.registry.forms import Form
    from apiserver.registry.selection import Selection
    from apiserver.registry.stored_object import StoredObject
    from apiserver.registry.watcher import Watcher
    from storage.history import Change

    Wanted = tuple[Selection, Form, Framing]
    """What members of a group have in common."""


class Group:
    """Watchers who want the same."""

    __slots__ = ("_everything", "frames", "members", "pending", "scope", "selection", "since", "users", "wanted")

    def __init__(self, selection: Selection, frames: Frames, wanted: Wanted) -> None:
        self.selection = selection
        self.scope = (selection.namespace, selection.name)
        self.frames = frames
        self.wanted = wanted
        self.users = 0
        """Watchers that name this group, members or not."""
        self.members: dict[Watcher, None] = {}
        """Those who have seen everything before what is pending."""
        self.pending: list[bytes] = []
        self.since = 0
        """The revision before the first of what is pending."""
        self._everything = selection.is_everything

    def line(self, change: Change[StoredObject], *, headers: bool = False) -> bytes | None:
        """The event that a change (inside the scope) is for this group, or None when it is none.

        What leaves the selection is deleted: in its last state that was selected, at the revision of the change.
        """
        entry, previous = change.entry, change.previous
        if not self._everything:
            matches = self.selection.matches
            if entry is not None and not matches(entry):
                entry = None
            if previous is not None and not matches(previous):
                previous = None
        if entry is not None:
            return self.frames.event(ADDED if previous is None else MODIFIED, entry, headers=headers)
        if previous is not None:
            return self.frames.event(DELETED, previous.at(change.revision), headers=headers)
        return None

    def packs(self, piece_bytes: int) -> Iterator[Pack]:
        """What is pending, packed in pieces: what TLS encrypts at once stays allocated to the connection."""
        lines: list[bytes] = []
        size = 0
        for line in self.pending:
            if lines and size + len(line) > piece_bytes:
                yield self.frames.pack(lines)
                lines, size = [], 0
            lines.append(line)
            size += len(line)
        yield self.frames.pack(lines)

    def covers(self, change: Change[StoredObject]) -> bool:
        """Whether a change is inside the scope."""
        obj = change.entry or change.previous
        assert obj is not None
        namespace, name = self.scope
        return (not namespace or obj.namespace == namespace) and (name is None or obj.name == name)
