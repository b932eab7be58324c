"""Names that the server makes itself.

Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/storage/names/generate.go
"""

from __future__ import annotations

import secrets
from typing import Final

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, so that no words come out, and nothing that looks like something else."""
_SUFFIX_LENGTH: Final = 5
_BASE_LIMIT: Final = 63 - _SUFFIX_LENGTH


def generate_name(base: str) -> str:
    """Return a name that begins with `base`, cut so that a DNS label holds it, and ends with five random characters."""
    return base[:_BASE_LIMIT] + "".join([secrets.choice(_ALPHABET) for _ in range(_SUFFIX_LENGTH)])
