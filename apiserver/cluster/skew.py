"""How far apart clocks and versions may be, for `clrk-apiserver check`: what is said of them, given what was read.

Clocks are compared by the Date of answers, which has whole seconds and was written at some time between question and answer: what is said
is what is certain.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

CLOCKS_SECONDS: Final = 10.0
"""Beyond, certificates and tokens that have just been made are refused as not valid yet."""
OLDEST: Final = (1, 30)
"""The first kube-apiserver that asks for aggregated discovery in its stable form; what older ones ask for is on its way out."""
_NEWER_MINORS: Final = 3
"""As far as Kubernetes lets its own parts be apart."""


@dataclass(frozen=True, slots=True)
class Clock:
    """How far a clock is ahead of ours: somewhere between these seconds."""

    least: float
    most: float

    @classmethod
    def read(cls, date: str, *, asked_at: float) -> Clock:
        """What the Date of an answer says that has just come; `asked_at` is `time.time()` of before.

        Raises:
            ValueError: it is no date.
        """
        told = parsedate_to_datetime(date).timestamp()
        return cls(told - time.time(), told + 1 - asked_at)


HERE: Final = Clock(0.0, 0.0)


def of_clocks(one: str, clock: Clock, other: str, other_clock: Clock) -> str:
    """What is wrong between two clocks, which are named; empty: nothing."""
    ahead, behind = clock.least - other_clock.most, other_clock.least - clock.most
    if max(ahead, behind) <= CLOCKS_SECONDS:
        return ""
    first, second = (one, other) if ahead > behind else (other, one)
    return f"The clock of {first} is {max(ahead, behind):.0f} seconds ahead of that of {second}: certificates and tokens are refused."


def of_versions(told: Mapping[str, Any], built_for: str) -> str:
    """What is wrong with kube-apiserver's version (the answer at `/version`), for a server that keeps to `built_for`; empty: nothing."""
    # Some providers write a plus behind the minor number.
    numbers = re.match(r"(\d+)\.(\d+)", f"{told.get('major')}.{told.get('minor')}")
    name = told.get("gitVersion") or "of an unknown version"
    if numbers is None:
        return f"kube-apiserver is {name}, of which nothing can be said."
    version, (major, minor) = (int(numbers[1]), int(numbers[2])), map(int, built_for.split(".")[:2])
    if version < OLDEST:
        return f"kube-apiserver is {name}, older than {OLDEST[0]}.{OLDEST[1]}, the oldest that this server is meant to run beside."
    if version > (major, minor + _NEWER_MINORS):
        return f"kube-apiserver is {name}; this server keeps to {built_for}, which is too old beside it: look for a newer one."
    return ""
