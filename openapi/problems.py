"""What a rule finds wrong with a value: kept short until it is known where in the object that is.

Rules live beside this module, each compiled from a schema into a function that returns None for a good value, so that a good object costs
one short walk; paths and texts are made only for what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from openapi.structural import JSON, Violation

MOST_PROBLEMS: Final = 100
"""What is told of one list or map; a body of 3 MiB could otherwise hold a million mistakes, and each costs as much to tell."""


class Key(str):
    """A segment that is the key of a map, not the name of a property."""

    __slots__ = ()


@dataclass(slots=True)
class Problem:
    """A violation under way to the root; every level it passes adds its segment."""

    kind: Any
    value: JSON = ""
    text: str = ""
    """`{}` stands for the path."""
    supported: tuple[str, ...] = ()
    phase: int = 0
    """0: the schema's own rules, 1: rules of list types, 2: rules that a CustomResourceDefinition does not have."""
    pathless: bool = False
    """Upstream does not say the field of this one."""
    path: list[str | int] = field(default_factory=list)
    """From the innermost segment outwards."""

    def violation(self, at: str) -> Violation:
        """Say it, of an object whose checked part stands at the path `at`."""
        inner = self._joined(brackets=self.phase > 0)
        path = (at or "<nil>") if self.pathless else f"{at}.{inner}".strip(".") if not inner.startswith("[") else at + inner
        return Violation(self.kind, path, self.value, self.text.replace("{}", inner), self.supported)

    def _joined(self, *, brackets: bool) -> str:
        parts: list[str] = []
        for segment in reversed(self.path):
            indexed = segment.__class__ is int or (brackets and segment.__class__ is Key)
            parts.append(f"[{segment}]" if indexed else f".{segment}" if parts else str(segment))
        return "".join(parts)


Check = Callable[[Any, Any], "list[Problem] | None"]
"""Takes a value and what stood in its place before (ABSENT if nothing); returns what is wrong, None if nothing is."""


def too_many(size: int, most: int) -> Problem:
    """What is told of a list or map of this size."""
    return Problem("too_many", size, f"must have at most {most} {'item' if most == 1 else 'items'}")
