"""What one side has said so far in one namespace: the values that later requests refer to, and the names that stand for them.

Two answers are the same when they are equal after each side's own names have been put in: uids by order of appearance, revisions by their
rank among all that objects were given, so that equal stays equal and order is kept. A list's revision lies at or after one of these:
other resources share the store, so that only its rank means something.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from bisect import bisect_right, insort
from datetime import UTC, datetime, timedelta

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_OBJECT_REVISION = re.compile(
    r'\\*"resourceVersion\\*":\s*\\*"(\d+)\\*",\s*\\*"(?:selfLink|uid)\\*"|\\*"uid\\*":\s*\\*"[^"]*",\s*\\*"resourceVersion\\*":\s*\\*"(\d+)\\*"'
    r"|resourceVersion: [\"'](\d+)[\"']\n\s+uid:|uid: \S+\n\s+resourceVersion: [\"'](\d+)[\"']"
)
_REVISION = re.compile(
    r'(resourceVersion\\*"?:\s*\\*"|ResourceVersion in precondition: |ResourceVersion in object meta: '
    r"|ResourceVersion in record \(|resource version: |current: "
    r"|current resource version: |object not decodable revision=|ResourceVersion in the precondition \()(\d+)(?=\D|$)"
)
_TOO_OLD = re.compile(r"(too old resource version: )\d+ \(\d+\)")
_CONTINUE = re.compile(r'(continue"?:\s*"?)([A-Za-z0-9_-]{8,}={0,2})')
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_GENERATED = re.compile(r"\b(?:gen-|Bad_|x{58})[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_AGE = re.compile(r'"(?:\d+m)?\d+s"')
_AGE_IN_YAML = re.compile(r"(?<=- )(?:\d+m)?\d+s$", re.MULTILINE)
_HASH_OF_POOLS = re.compile(r"/openapi/v3/apis/clrk\.apoxy\.dev/v1alpha1\?hash=([0-9A-F]{128})")
_HASH = re.compile(r"\b[0-9A-F]{128}\b")
_NOW = timedelta(minutes=30)


class Memory:
    """The memory of one side. `namespace` and `other` are the same on both."""

    def __init__(self, namespace: str) -> None:
        self._values = {"ns": namespace, "other": f"{namespace}-other", "list": "0", "continue": ""}
        self._objects: dict[str, list[str]] = {}
        self._revisions: list[int] = []
        self._uids: dict[str, str] = {}
        self._generated: dict[str, str] = {}

    def value(self, word: str, name: str, back: int) -> str:
        """What stands for a place in a request."""
        if word in ("uid", "rv"):
            versions = self._objects.get(name, [])
            if len(versions) <= back:
                return "0" if word == "rv" else "00000000-0000-4000-8000-000000000000"
            return str(json.loads(versions[-1 - back])["metadata"].get({"uid": "uid", "rv": "resourceVersion"}[word], "0"))
        if word == "generated":
            return list(self._generated)[int(name)]
        return self._values[word]

    def last(self, name: str) -> str:
        """The object of this name as it was last answered, as JSON."""
        return self._objects[name][-1] if name in self._objects else "{}"

    def learn(self, text: str) -> None:
        """Remember what an answer (or an event) says."""
        for found in _OBJECT_REVISION.finditer(text):
            revision = int(next(group for group in found.groups() if group))
            if revision not in self._revisions:
                insort(self._revisions, revision)
        for uid in _UID.findall(text):
            self._uids.setdefault(uid, f"<uid {len(self._uids)}>")
        for name in _GENERATED.findall(text):
            self._generated.setdefault(name, f"<generated {len(self._generated)}>")
        if text.startswith('{"kind":"APIGroupDiscoveryList"'):
            self._values["etag"] = _etag(text)
        elif text.startswith('{"paths":{') and (hash_ := _HASH_OF_POOLS.search(text)):
            self._values["hash"] = hash_[1]
        elif text.startswith(('{"apiVersion"', '{"kind"')):
            self._learn_value(text)

    def normal(self, text: str) -> str:
        """Return the text with this side's names put in."""
        text = _TOO_OLD.sub(r"\1<an old revision> (<the oldest>)", text)
        text = _CONTINUE.sub(self._token, text)
        text = _REVISION.sub(lambda found: f"{found[1]}<revision {self._rank(int(found[2]))}>", text)
        text = _UID.sub(lambda found: self._uids.get(found[0], found[0]), text)
        for word in ("etag", "hash"):
            if word in self._values:
                text = text.replace(self._values[word], f"<{word}>")
        text = _HASH.sub("<another hash>", text)
        text = _GENERATED.sub(lambda found: self._generated.get(found[0], found[0]), text)
        text = _TIME.sub(_now, text)
        if "kind: Table" in text:
            return _AGE_IN_YAML.sub("<age>", text)
        return _AGE.sub('"<age>"', text) if '"Table"' in text or '"cells"' in text else text

    def _learn_value(self, text: str) -> None:
        try:
            value = json.loads(text)
        except ValueError:
            return
        metadata = value.get("metadata")
        if not isinstance(metadata, dict):
            return
        if "uid" in metadata:
            if "spec" in value and value.get("kind") != "Scale":
                self._objects.setdefault(metadata["name"], []).append(text)
        elif "resourceVersion" in metadata:
            self._values["list"] = metadata["resourceVersion"]
            self._values["continue"] = metadata.get("continue", "")
        elif metadata.get("continue"):
            self._values["continue"] = metadata["continue"]

    def _rank(self, revision: int) -> int:
        return bisect_right(self._revisions, revision)

    def _token(self, found: re.Match[str]) -> str:
        try:
            token = json.loads(base64.urlsafe_b64decode(found[2] + "=" * (-len(found[2]) % 4)))
            revision = token["rv"] if token["rv"] <= 0 else self._rank(token["rv"])
            start = token["start"].removeprefix("/")  # which kube-apiserver writes when it lists from its cache
            return f"{found[1]}<token {token['v']} <revision {revision}> {start.rstrip(chr(0))} {len(start)}>"
        except (ValueError, KeyError, TypeError):
            return found[0]


def _etag(text: str) -> str:
    """What kube-apiserver makes of aggregated discovery: it is that of the content, whatever the version and the form.

    Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/discovery/aggregated/etag.go
    """
    content = {name: value for name, value in json.loads(text).items() if name not in ("kind", "apiVersion")}
    return hashlib.sha512(json.dumps(content, separators=(",", ":")).encode()).hexdigest().upper()


def _now(found: re.Match[str]) -> str:
    try:
        time = datetime.fromisoformat(found[0])
    except ValueError:
        return found[0]
    return "<now>" if abs(datetime.now(UTC) - time) < _NOW else found[0]
