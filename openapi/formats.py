"""String formats: which of them Kubernetes checks in a CustomResourceDefinition, and how.

A format that is not here is ignored, as upstream ignores what it does not know. A few formats that upstream does know have no business in
an API of ours (ISBN, credit cards, colours and the like): `check_of` refuses them instead of pretending to check them.
Source: https://github.com/kubernetes/kube-openapi/blob/master/pkg/validation/strfmt/default.go
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Final

Check = Callable[[str], bool]

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_GO_DURATION: Final = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_LONG_DURATION: Final = re.compile(r"([0-9]{1,40})\s*([A-Za-zµ]+)", re.ASCII)
_UNITS: Final = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_UNIT_PREFIXES: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_SHORT_NAME: Final = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_HOST: Final = re.compile(r"[ls](?:-?[ls]{0,62})?|(?:[ls](?:[-ls]{0,61}[ls])?\.)+l{2,63}")
_SCHEME: Final = re.compile(r"[A-Za-z][-A-Za-z0-9+.]*:")
_AUTHORITY: Final = re.compile(r"(?:[^\s@/<>\"]*@)?(?:\[[0-9A-Fa-f:.]*(?:%25[^\]]*)?\]|[^\s@/<>\"%:\[\]]*)(?::[0-9]*)?")
_BAD_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")
_ATOMS: Final = r"[^\s<>@,;:.()\[\]\\\"]+(?:\.[^\s<>@,;:.()\[\]\\\"]+)*"
_PLAIN_ADDRESS: Final = rf"(?:{_ATOMS}|\"[^\"\\]+\")@(?:{_ATOMS}|\[[0-9A-Fa-f:.]+\])"
_ADDRESS: Final = re.compile(rf"{_PLAIN_ADDRESS}|(?:[^<>@,;:()\[\]\\]*\s*)?<{_PLAIN_ADDRESS}>")
_MONTH_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= month <= 12 and 1 <= day <= _MONTH_DAYS[month - 1] and (leap or (month, day) != (2, 29))


def _date_time(text: str) -> bool:
    date, _, rest = text.lower().partition("t")
    match = _TIME.fullmatch(rest.partition("t")[0])
    return _date(date) and match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _duration(text: str) -> bool:
    if _GO_DURATION.fullmatch(text):
        return True
    found = [(int(amount), unit.lower()) for amount, unit in _LONG_DURATION.findall(text)]
    return all(amount < 2**63 for amount, _ in found) and any(unit in _UNITS or unit.startswith(_UNIT_PREFIXES) for _, unit in found)


def _ip(text: str) -> bool:
    if "%" in text:
        return False
    head, colon, last = text.rpartition(":")
    if "." in last:
        last = re.sub("(?<![0-9])0+(?=[0-9])", "", last)  # Kubernetes still takes the leading zeros that Go once took
    try:
        ipaddress.ip_address(head + colon + last)
    except ValueError:
        return False
    return True


def _cidr(text: str) -> bool:
    address, slash, prefix = text.partition("/")
    return bool(slash) and _ip(address) and bool(re.fullmatch("[0-9]{1,3}", prefix)) and int(prefix) <= (128 if ":" in address else 32)


def _hostname(text: str) -> bool:
    return bool(_HOST.fullmatch("".join(map(_host_class, text)))) and len(text.encode()) <= 255


def _host_class(character: str) -> str:
    """l: a letter, s: what else may stand anywhere in a label (digits, and all symbols: upstream is generous)."""
    kind = unicodedata.category(character)[0]
    return "l" if kind == "L" else "s" if kind == "S" or character in "0123456789" else character if character in "-." else "!"


def _uri(text: str) -> bool:
    """What Go's url.ParseRequestURI takes: an absolute URI or an absolute path."""
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        return False
    match = _SCHEME.match(text)
    scheme = match[0] if match else ""
    rest = text[len(scheme) :].partition("?")[0]
    if not rest.startswith("/"):
        return bool(scheme) or text == "*"
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if not _AUTHORITY.fullmatch(authority):
            return False
        rest = slash + path
    return not _BAD_ESCAPE.search(rest)


def _email(text: str) -> bool:
    """An address, or a name and an address in angle brackets."""
    return _ADDRESS.fullmatch(text) is not None


def _matches(pattern: str, limit: int | None = None) -> Check:
    compiled = re.compile(pattern, re.IGNORECASE if pattern.startswith("[0-9a-f]") else 0)
    return lambda text: (limit is None or len(text) <= limit) and compiled.fullmatch(text) is not None


_CHECKS: Final[Mapping[str, Check]] = {
    "date": _date,
    "datetime": _date_time,
    "duration": _duration,
    "byte": _matches(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda text: True,
    "ipv4": lambda text: "." in text and _ip(text),
    "ipv6": lambda text: ":" in text and _ip(text),
    "cidr": _cidr,
    "mac": _matches(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5,19}|[0-9a-f]{2}(?:-[0-9a-f]{2}){5,19}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2,9}"),
    "hostname": _hostname,
    "uri": _uri,
    "email": _email,
    "uuid": _matches("[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
    "uuid3": _matches("[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
    "uuid4": _matches("[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}"),
    "uuid5": _matches("[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}"),
    "k8sshortname": _matches(_SHORT_NAME, 63),
    "k8slongname": _matches(rf"{_SHORT_NAME}(?:\.{_SHORT_NAME})*", 253),
}
_REFUSED: Final = frozenset({"bsonobjectid", "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor"})


def check_of(name: str) -> Check | None:
    """Return the check of a string format, or None for a name that Kubernetes does not check either.

    Raises:
        ValueError: a format that Kubernetes checks and this server does not.
    """
    plain = name.replace("-", "")
    if plain in _REFUSED:
        raise ValueError(f"the string format {name} is not supported")
    return _CHECKS.get(plain)
