"""Clocks and versions that are too far apart are told, others are not."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from apiserver.cluster.skew import HERE, Clock, of_clocks, of_versions


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (Clock(-0.5, 0.5), HERE, ""),
        # Somewhere between 2 and 40 seconds: perhaps it is well.
        (Clock(2.0, 40.0), HERE, ""),
        (Clock(60.0, 61.0), Clock(55.0, 58.0), ""),
        (Clock(60.0, 61.0), HERE, "The clock of the one is 60 seconds ahead of that of the other"),
        (Clock(-61.0, -60.0), HERE, "The clock of the other is 60 seconds ahead of that of the one"),
        (Clock(-30.0, -29.0), Clock(30.0, 31.0), "The clock of the other is 59 seconds ahead"),
    ],
)
def test_clocks(one: Clock, other: Clock, told: str) -> None:
    found = of_clocks("the one", one, "the other", other)
    assert found.startswith(told) if told else found == ""


def test_a_date_is_as_exact_as_the_answer_was_quick() -> None:
    now = time.time()
    clock = Clock.read(formatdate(now + 3600, usegmt=True), asked_at=now - 5)
    assert clock.least <= 3600 <= clock.most
    assert clock.most - clock.least >= 6


@pytest.mark.parametrize("date", ["", "yesterday", "99 Xyz 2026"])
def test_what_is_no_date_is_refused(date: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Clock.read(date, asked_at=0)


@pytest.mark.parametrize(
    ("major", "minor", "told"),
    [
        ("1", "37", ""),
        ("1", "30", ""),
        ("1", "34+", ""),
        ("1", "40", ""),
        ("1", "29", "older than 1.30"),
        ("1", "29+", "older than 1.30"),
        ("1", "41", "this server keeps to 1.37.2"),
        ("2", "0", "this server keeps to 1.37.2"),
        ("", "", "of which nothing can be said"),
    ],
)
def test_versions(major: str, minor: str, told: str) -> None:
    found = of_versions({"major": major, "minor": minor, "gitVersion": f"v{major}.{minor}.1"}, "1.37.2")
    assert told in found if told else found == ""
