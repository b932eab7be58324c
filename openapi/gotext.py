"""Values as Go prints them (fmt's `%q` and `%v`, encoding/json), because Kubernetes' messages and bodies are made with it."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

_PLAIN: Final = re.compile(r"[ !#-\[\]-~]*")
_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", '"': '\\"', "\\": "\\\\"}


def quote(text: str) -> str:
    """Return the text as a Go string literal: strconv.Quote."""
    return f'"{text}"' if _PLAIN.fullmatch(text) else '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    if (escape := _ESCAPES.get(character)) is not None:
        return escape
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def text(value: Any) -> str:
    """Return a JSON value as `%v` prints it: `map[a:1 b:[x y]]`, `<nil>`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{text(item)}' for name, item in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return number(value)
    return "<nil>" if value is None else str(value)


def number(value: float | int) -> str:
    """Return a number as `%v` prints it: a float of 2 is `2`, of two million `2e+06`."""
    return str(value) if isinstance(value, int) else _float(value, exponent_from=6, exponent_digits=2)


def json_float(value: float) -> str:
    """Return a float as encoding/json writes it: `3`, `0.5`, `1e+21`, `1e-7`."""
    return _float(value, exponent_from=21, exponent_digits=1)


def _float(value: float, *, exponent_from: int, exponent_digits: int) -> str:
    """Lay out the shortest digits that give the value back; Python and Go find the same ones."""
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + int(exponent)  # where the decimal point stands, counted from the first digit
    if text == "0":
        point = 1
    power = point - 1
    prefix = "-" if sign else ""
    if power < (-4 if exponent_digits == 2 else -6) or power >= exponent_from:
        mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
        return f"{prefix}{mantissa}e{'-' if power < 0 else '+'}{abs(power):0{exponent_digits}}"
    if point <= 0:
        return f"{prefix}0.{'0' * -point}{text}"
    whole, fraction = text[:point].ljust(point, "0"), text[point:]
    return f"{prefix}{whole}.{fraction}" if fraction else prefix + whole
