"""The order of keys: by the bytes of their UTF-8 form, which is the order of their code points. Knows nothing of a store."""

from __future__ import annotations

_LAST = "\U0010ffff"


def prefix_end(prefix: str) -> str | None:
    """Return the smallest string above all that begin with `prefix`; None when every string does, or none is above."""
    stem = prefix.rstrip(_LAST)
    if not stem:
        return None
    after = ord(stem[-1]) + 1
    # Surrogates are no characters: UTF-8 has no form for them.
    return stem[:-1] + chr(0xE000 if after == 0xD800 else after)
