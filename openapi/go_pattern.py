"""Patterns of Go's, which a schema holds, as Python reads them."""

from __future__ import annotations

import re
from collections.abc import Callable


def go_pattern(pattern: str) -> Callable[[str], re.Match[str] | None]:
    """Compile a pattern of Go's: `$` is the very end of the text there, and classes such as `\\d` are ASCII.

    Raises:
        ValueError: it uses what Python does not know, or is no pattern.
    """
    translated, position, in_class = [], 0, False
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            escape = pattern[position : position + 2]
            if escape in ("\\p", "\\P", "\\Q", "\\C"):
                raise ValueError(f"the pattern {pattern} uses {escape}, which Python does not know")
            translated.append("\\Z" if escape == "\\z" else escape)
            position += 2
            continue
        if in_class and pattern.startswith("[:", position):
            raise ValueError(f"the pattern {pattern} uses a POSIX class, which Python does not know")
        if character in "[]":
            in_class = character == "[" or (in_class and pattern[position - 1] in "[^" and pattern[position - 2 : position] in ("[", "[^"))
        translated.append("\\Z" if character == "$" and not in_class else character)
        position += 1
    try:
        return re.compile("".join(translated), re.ASCII).search
    except re.error as error:
        raise ValueError(f"the pattern {pattern} cannot be used: {error}") from error
