"""What the generated pages need of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def text(words: str) -> str:
    """Return words as they are: outside of code, nothing in them is taken for HTML or for the end of a table's cell."""
    parts = " ".join(words.split()).split("`")
    return "`".join(part if at % 2 else part.replace("<", "&lt;") for at, part in enumerate(parts)).replace("|", "\\|")


def code(word: object) -> str:
    """Return one word as code."""
    return f"`{word}`".replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, or nothing when it has no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]) if lines else ""
