"""The part of Kubernetes' JSONPath that printer columns use: members, indexes, `[*]`, and filters that compare with a literal.

A path is read once, when the server starts; a path outside of this part is a ValueError then, not an empty cell later.
Source: https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

Step = Callable[[Iterable[Any]], list[Any]]

_TOKEN = re.compile(
    r"""
      \.(?P<member>(?:\\.|[^.\[\]\\'"(){}\s])+)
    | \['(?P<quoted>[^']+)'\]
    | \[(?P<index>-?\d+)\]
    | (?P<all>\[\*\]|\.\*)
    | \[\?\( @(?P<inner> (?: \. (?:\\.|[^.\[\]\\'"(){}\s=!<>])+ )+ ) \s*
        (?: (?P<operator>==|!=) \s* (?P<literal> "[^"]*" | '[^']*' | -?\d+ | true | false ) )? \s* \)\]
    """,
    re.VERBOSE,
)


class JSONPath:
    """A path that has been read."""

    __slots__ = ("_members", "_steps")

    def __init__(self, text: str) -> None:
        self._steps: list[Step] = []
        members: list[str] | None = []
        position = 0
        while position < len(text):
            token = _TOKEN.match(text, position)
            if token is None:
                raise ValueError(f"cannot read the JSONPath {text!r} from {text[position:]!r} on")
            position = token.end()
            if token["all"]:
                self._steps.append(_all)
                members = None
            elif token["index"]:
                self._steps.append(_index(int(token["index"])))
                members = None
            elif token["inner"]:
                self._steps.append(_filter(JSONPath(token["inner"]), token["operator"], token["literal"]))
                members = None
            else:
                name = token["quoted"] or re.sub(r"\\(.)", r"\1", token["member"])
                self._steps.append(_member(name))
                if members is not None:
                    members.append(name)
        self._members = members

    def find(self, value: Any) -> list[Any]:
        """All that the path leads to; empty where something on the way is missing."""
        if self._members is not None:
            for name in self._members:
                if not isinstance(value, dict) or name not in value:
                    return []
                value = value[name]
            return [value]
        found = [value]
        for step in self._steps:
            found = step(found)
        return found


def _member(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _index(index: int) -> Step:
    return lambda values: [value[index] for value in values if isinstance(value, list) and -len(value) <= index < len(value)]


def _all(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            found.extend(value.values())
        elif isinstance(value, list):
            found.extend(value)
    return found


def _filter(inner: JSONPath, operator: str | None, literal: str | None) -> Step:
    wanted = _literal(literal) if literal else None

    def holds(item: Any) -> bool:
        found = inner.find(item)
        if operator is None:
            return bool(found)
        equal = bool(found) and type(found[0]) is type(wanted) and found[0] == wanted
        return equal if operator == "==" else bool(found) and not equal

    return lambda values: [item for value in values if isinstance(value, list) for item in value if holds(item)]


def _literal(text: str) -> str | int | bool:
    if text[0] in "\"'":
        return text[1:-1]
    return text == "true" if text in ("true", "false") else int(text)
