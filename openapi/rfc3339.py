"""RFC 3339 times as Go's time package reads them and metav1.Time writes them: UTC, whole seconds, `Z`.

Pure text; what is wrong is said in the words of Go's time.ParseError, since they reach users.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_LAYOUT = "2006-01-02T15:04:05Z07:00"
_DAY = r"(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31"
_CANONICAL = re.compile(rf"[0-9]{{4}}-(?:{_DAY})T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z")
"""What needs no work: already canonical, and on a day that its month has in every year."""
_STEPS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), label)
    for pattern, label in (
        (r"[0-9]{4}", "2006"),
        ("-", "-"),
        (r"[0-9]{2}", "01"),
        ("-", "-"),
        (r"[0-9]{2}", "02"),
        ("T", "T"),
        (r"[0-9]{2}", "15"),
        (":", ":"),
        (r"[0-9]{2}", "04"),
        (":", ":"),
        (r"[0-9]{2}(?:[.,][0-9]+)?", "05"),
        (r"Z|[+-][0-9]{2}:[0-9]{2}", "Z07:00"),
    )
)


def parse(text: str) -> datetime:
    """Return the moment, in UTC and without the fraction of the second, that metav1.Time does not keep.

    Raises:
        ValueError: not RFC 3339; the text is Go's, as in `parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`.
    """
    parts, position = [], 0
    for pattern, label in _STEPS:
        match = pattern.match(text, position)
        if match is None:
            raise ValueError(f'parsing time "{text}" as "{_LAYOUT}": cannot parse "{text[position:]}" as "{label}"')
        parts.append(match[0])
        position = match.end()
    if position != len(text):
        raise ValueError(f'parsing time "{text}": extra text: "{text[position:]}"')
    year, month, day, hour, minute, second = _numbers(parts)
    for name, value, low, high in (("month", month, 1, 12), ("hour", hour, 0, 23), ("minute", minute, 0, 59), ("second", second, 0, 59)):
        if not low <= value <= high:
            raise ValueError(f'parsing time "{text}": {name} out of range')
    zone = parts[-1]
    offset = timedelta() if zone == "Z" else timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6])) * (-1 if zone[0] == "-" else 1)
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC) - offset
    except ValueError:
        raise ValueError(f'parsing time "{text}": day out of range') from None
    except OverflowError:
        raise ValueError(f'parsing time "{text}": year out of range') from None


def _numbers(parts: list[str]) -> tuple[int, int, int, int, int, int]:
    year, month, day, hour, minute = (int(parts[index]) for index in (0, 2, 4, 6, 8))
    return year, month, day, hour, minute, int(parts[10][:2])


def canonical(text: str) -> str:
    """Return the same moment as metav1.Time prints it. Raises ValueError as `parse` does."""
    return text if _CANONICAL.fullmatch(text) else format(parse(text))


def format(moment: datetime) -> str:
    """Print a moment that knows its zone."""
    # Twice as fast as strftime; every write prints two of them.
    return moment.astimezone(UTC).isoformat(timespec="seconds").removesuffix("+00:00") + "Z"
