"""The steps of a path into an object, as fieldsV1 writes them: `f:name`, `k:{"name":"A"}`, `v:"a"`, `i:0`.

Two elements are the same exactly when their texts are: the JSON in them is written one way only.
Source: https://github.com/kubernetes-sigs/structured-merge-diff/blob/v6.4.2/fieldpath/element.go and serialize-pe.go
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from apiserver.meta import json_codec
from openapi import gotext

is_plain: Final = re.compile(r"[A-Za-z0-9_./-]*").fullmatch
"""Text that is written as it is: names, mostly."""


class PathElementError(ValueError):
    """Text that is no path element."""


def key_element(keys: dict[str, Any]) -> str:
    """The path element of an item of a map list."""
    if len(keys) == 1:
        for name, value in keys.items():
            if value.__class__ is str and is_plain(value):
                return f'k:{{"{name}":"{value}"}}'
    return "k:" + _json(keys)


def value_element(value: Any) -> str:
    """The path element of an item of a set list."""
    return f'v:"{value}"' if value.__class__ is str and is_plain(value) else "v:" + _json(value)


def _json(value: Any) -> str:
    return json_codec.encode(value)[:-1].decode()


def element_text(element: str) -> str:
    """One element of a path as messages show it."""
    kind, content = element[:2], element[2:]
    if kind == "f:":
        return f".{content}"
    if kind == "k:":
        keys = orjson.loads(content)
        return "[" + ",".join(f"{name}={_value_text(keys[name])}" for name in sorted(keys)) + "]"
    return f"[={_value_text(orjson.loads(content))}]" if kind == "v:" else f"[{content}]"


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return gotext.quote(value)
    if isinstance(value, list):
        return f"[{','.join(map(_value_text, value))}]"
    if isinstance(value, dict):  # no key can be one, but the message that says so names it
        return "".join(f"{name}={_value_text(item)}" for name, item in value.items())
    return gotext.number(value) if isinstance(value, float) else orjson.dumps(value).decode()


def order(element: str) -> tuple[Any, ...]:
    """Fields come first, then keys, values and places; numbers before texts before truths."""
    kind, content = element[:2], element[2:]
    if kind == "f:":
        return 0, content
    if kind == "k:":
        keys = orjson.loads(content)
        return 1, [(name, _value_order(keys[name])) for name in sorted(keys)]
    return (2, _value_order(orjson.loads(content))) if kind == "v:" else (3, int(content))


def _value_order(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, (int, float)):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, orjson.dumps(value))


def canonical(element: str) -> str | None:
    """The element written our way; None for one of a kind that nobody knows.

    Raises:
        PathElementError: it is none.
    """
    kind, content = element[:2], element[2:]
    if len(kind) < 2 or kind[1] != ":":
        raise PathElementError(f"no path element: {element}")
    try:
        if kind == "f:":
            return element
        if kind == "i:":
            return f"i:{int(content)}"
        if kind not in ("k:", "v:"):
            return None
        value = json_codec.decode(content.encode())
    except ValueError as error:
        raise PathElementError(f"no path element: {element}") from error
    if kind == "v:":
        return value_element(value)
    if value.__class__ is not dict:
        raise PathElementError(f"no path element: {element}")
    return key_element(value)
