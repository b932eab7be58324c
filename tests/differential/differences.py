"""The differences that are meant, as docs/differences.md lists them: each says exactly what it excuses.

A difference turns the real answer into the one that we would rather give; several may be met in one exchange. What is still unequal after
that has no explanation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qs

import yaml

from tests.differential.exchange import Request, Step, Watch
from tests.differential.of_ours import DOCUMENT
from tests.differential.side import Answer

_SELECTOR = re.compile(
    r',\s*\\*"selector\\*":\s*\\*"clrk\.apoxy\.dev/worker-pool=[^"\\]*\\*"|\n +selector: clrk\.apoxy\.dev/worker-pool=\S+'
)
_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u(003c|003e|0026|2028|2029)")
_KEY = re.compile(r'\[([a-z][^\]\s]*)\](?= in body|:)|\[([a-z][^\]\s]*)\](?=")')
_QUANTITY = "[numkMGTPE]"
_REVISION = re.compile(r"<revision \d+>")
_POOL_PATH = re.compile(r"/apis/clrk\.apoxy\.dev/v1alpha1/namespaces/[^/]+/workerpools(?P<name>/[^/?]+)?(?:\?.*)?")
_NULL = re.compile(r'Invalid value: "null": \S* in body must be of type (?:object|array|string|integer|boolean): "null"')
_LENIENT = re.compile(r"json: cannot unmarshal (\w+) into Go value of type jsonpatch\.(Patch|Operation)")
_LENIENT_FIELD = re.compile(r"error decoding patch: json: cannot unmarshal \w+ into Go struct field jsonPatchOp\.\w+ of type string")
_OWN_VERSION = re.compile(r' +"(?:gitVersion|gitCommit|gitTreeState|goVersion|compiler)":')
_ONE_CHECK = re.compile("/(?:livez|readyz|healthz)/ping$")
_OWN_CHECK = re.compile(r"^\[\+\].*\n", re.MULTILINE)
_LIST_OF_GROUPS = "APIGroupDiscoveryList"
_NULL_ITEMS = re.compile(r'^(items: |  "items": |.*,"items":)null\b', re.MULTILINE)
_NO_ITEMS = re.compile(r'\bitems"?: ?\[\]')
_SCHEME = re.compile(r' in scheme \\?"[^"]*"')

Rewrite = Callable[[Step, Answer, Answer], Answer]
"""Given the step and both answers: the real one as it would be if it were ours; unchanged where the difference does not concern it."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One difference. `id` is its heading in docs/differences.md."""

    id: str
    rewrite: Rewrite
    by_chance: bool = False
    """Whether a scenario need not meet it: it depends on the clock, on the order in which Go goes through a map, or on the cluster."""
    parts_ways: bool = False
    """Whether the two servers may hold something else from there on, so that they have to be brought together again."""


@dataclass(frozen=True, slots=True)
class Listing:
    """All differences that are meant."""

    differences: tuple[Listed, ...]

    def explanation(self, step: Step, real: Answer, ours: Answer) -> list[Listed] | None:
        """The differences that together make the answers equal; None when they do not."""
        met: list[Listed] = []
        for listed in self.differences:
            rewritten = listed.rewrite(step, real, ours)
            if rewritten != real:
                met.append(listed)
                real = rewritten
        return met if real == ours else None


def _json_escapes(step: Step, real: Answer, ours: Answer) -> Answer:
    return replace(real, text=_ESCAPE.sub(lambda found: found[1] + chr(int(found[2], 16)), real.text))


def _scale_selector(step: Step, real: Answer, ours: Answer) -> Answer:
    """Where kube-apiserver says nothing of the selector, ours is told."""
    if "/scale" not in step.path:
        return real
    without = _SELECTOR.sub("", ours.text)
    same = without == real.text or ('"Table"' in without and _same_value(without, real.text))
    return replace(real, text=ours.text) if same else real


def _order_of_errors(step: Step, real: Answer, ours: Answer) -> Answer:
    """kube-apiserver goes through maps in the order that Go gives them, which is another each time."""
    if real.status not in (409, 422) or real.status != ours.status or sorted(real.text) != sorted(ours.text):
        return real
    try:
        values = [json.loads(answer.text) for answer in (real, ours)]
        causes = [sorted(value["details"].pop("causes"), key=str) for value in values]
    except (ValueError, KeyError):
        return real
    messages = [value.pop("message") for value in values]
    same = causes[0] == causes[1] and values[0] == values[1] and sorted(messages[0]) == sorted(messages[1])
    return replace(real, text=ours.text) if same and len(causes[0]) > 1 else real


def _scale_body(step: Step, real: Answer, ours: Answer) -> Answer:
    said = '"no kind is registered for the type v1.Scale in scheme'
    return ours if "/scale" in step.path and said in real.text and ours.status == real.status == 400 else real


def _faults_of_clients(step: Step, real: Answer, ours: Answer) -> Answer:
    """An error that kube-apiserver gives no reason becomes a 500, even if a client is to blame."""
    if real.status != 500 or not 400 <= ours.status < 500 or '"reason"' in real.text:
        return real
    if isinstance(step, Request) and step.method == "HEAD":
        return ours
    said = [_status(answer)[2] for answer in (real, ours)]
    return ours if said[0] and (said[0] in said[1] or "content is not a list" in said[0]) else real


def _key_order(step: Step, real: Answer, ours: Answer) -> Answer:
    """Metadata is cut out of the bytes that are kept, in which keys are sorted."""
    if "PartialObjectMetadata" not in ours.text and '"Table"' not in ours.text:
        return real
    if "PartialObjectMetadata" not in real.text and '"Table"' not in real.text:
        return real
    lines = real.text.splitlines(), ours.text.splitlines()
    if "\n" in ours.text.strip() and not ours.text.startswith(('{"type"', "TEXT {")):
        lines = [real.text], [ours.text]
    if len(lines[0]) != len(lines[1]) or not all(map(_same_value, *lines)):
        return real
    return replace(real, text=ours.text)


def _order_of_managers(step: Step, real: Answer, ours: Answer) -> Answer:
    """Owners are sorted by the second of their last change: between two answers a second may begin."""
    if "managedFields" not in real.text:
        return real
    same = _sorted_managers(real.text) == _sorted_managers(ours.text)
    if not same and real.status >= 400:  # an object inside of a message
        same = sorted(real.text) == sorted(ours.text)
    return replace(real, text=ours.text) if same else real


def _sorted_managers(text: str) -> list[Any]:
    pieces = text.splitlines() if text.startswith('{"') else [text]
    values = []
    for piece in pieces:
        try:
            values.append(json.loads(piece, object_hook=_sort_managers))
        except ValueError:
            values.append(piece)
    return values


def _sort_managers(value: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value.get("managedFields"), list):
        value["managedFields"].sort(key=lambda entry: json.dumps(entry, sort_keys=True))
    return value


def _same_value(one: str, other: str) -> bool:
    try:
        return bool(json.loads(one.removeprefix("TEXT ")) == json.loads(other.removeprefix("TEXT ")))
    except ValueError:
        return one == other


def _no_page(step: Step, real: Answer, ours: Answer) -> Answer:
    """A Status in place of the text that Go's router gives, which no client understands."""
    if isinstance(step, Request) and step.method == "HEAD" and real.status == ours.status == 404 and "text/plain" in real.headers[0]:
        return ours
    return ours if real.text == "404 page not found\n" and real.status == ours.status and '"NotFound"' in ours.text else real


def _names_and_verbs(step: Step, real: Answer, ours: Answer) -> Answer:
    """PUT and PATCH of a collection, POST to an object: addresses that nobody serves, and where kube-apiserver goes a part of the way."""
    if not isinstance(step, Request) or (found := _POOL_PATH.fullmatch(step.path)) is None:
        return real
    verb = {"PUT": "update", "PATCH": "patch", "POST": "create"}.get(step.method, "")
    if not verb or (step.method == "POST") != bool(found["name"]) or _status(ours)[:2] != (405, "MethodNotAllowed"):
        return real
    code, reason, message = _status(real)
    if step.method == "POST":
        met = real.status == 201 or (code == 400 and message.startswith("the object provided is unrecognized"))
    else:
        met = (code, message) == (400, "name must be provided") or (code, reason) == (415, "UnsupportedMediaType")
    said = f'{verb} is not supported on resources of kind "workerpools.clrk.apoxy.dev"'
    return ours if met and _status(ours)[2] == said else real


def _discovery_methods(step: Step, real: Answer, ours: Answer) -> Answer:
    """kube-apiserver answers any method at a group's address with the list, and so for health and metrics (or resets these)."""
    if not isinstance(step, Request) or step.method in ("GET", "HEAD") or ours.status != 405:
        return real
    whole, beginnings = ("ok", "metrics reset\n", DOCUMENT), ("# HELP ", '{"kind":"APIResourceList"', '{"kind":"APIGroup')
    return ours if real.status == 200 and (real.text in whole or real.text.startswith(beginnings)) else real


def _discovery_beta(step: Step, real: Answer, ours: Answer) -> Answer:
    """Kubernetes 1.37 has given up the beta of aggregated discovery, which clients and aggregators before 1.30 know alone."""
    beta = f"g=apidiscovery.k8s.io;v=v2beta1;as={_LIST_OF_GROUPS}"
    if beta not in step.headers.get("Accept", "") or real.status not in (200, 304, 406):
        return real
    return ours if ours.status == 304 or (ours.status == 200 and ours.headers[0].endswith(beta)) else real


def _documents(step: Step, real: Answer, ours: Answer) -> Answer:
    """Those of v3 are compressed too, but not there as protobuf; the index is JSON, with an entity tag; a refusal says why."""
    if step.kind != "document" or not real.headers:
        return real
    if not real.text and real.status == ours.status and any(reason in ours.text for reason in ("NotAcceptable", "NotFound")):
        return ours
    if real.headers[0].endswith(".spec.v3.v1.0+protobuf"):
        return ours if ours.status == 406 or ours.headers[0] == "Content-Type: application/json" else real
    expected = {header.replace("text/plain; charset=utf-8", "application/json") for header in real.headers}
    excused = {header for header in ours.headers if header.startswith(("Vary: Accept-Encoding", "Content-Encoding: gzip", "Etag: "))}
    return replace(real, headers=ours.headers) if expected | excused == set(ours.headers) else real


def _slash_at_end(step: Step, real: Answer, ours: Answer) -> Answer:
    """Here an address with a slash at its end is the same, also where kube-apiserver knows none."""
    if not step.path.partition("?")[0].endswith("/"):
        return real
    no_page = real.text == "404 page not found\n" and (real.status, ours.status) == (404, 200)
    not_aggregated = _LIST_OF_GROUPS in step.headers.get("Accept", "") and _LIST_OF_GROUPS not in real.text and ours.status in (200, 304)
    return ours if no_page or not_aggregated else real


def _of_the_server(step: Step, real: Answer, ours: Answer) -> Answer:
    """What a server says of itself: its version, its health checks (each alone is open here as all are), the type of its metrics."""
    if step.kind != "server" or not isinstance(step, Request):
        return real
    if step.path.rstrip("/") == "/version" and ours.status == 200:
        if step.method == "HEAD" and real.status == 405:
            return ours
        values = [[line for line in answer.text.splitlines() if not _OWN_VERSION.match(line)] for answer in (real, ours)]
        return replace(real, text=ours.text) if values[0] == values[1] else real
    if step.path == "/metrics" and real.headers[0] == f"{ours.headers[0]}; escaping=underscores":
        return replace(real, headers=ours.headers, text=ours.text)
    if _ONE_CHECK.match(step.path):
        return ours if ours.status == 200 and (real.text == "ok" or _status(real)[1] == "Forbidden") else real
    checks = [_OWN_CHECK.sub("", answer.text) for answer in (real, ours)]
    return replace(real, text=ours.text) if checks[0] == checks[1] else real


def _long_heads(step: Step, real: Answer, ours: Answer) -> Answer:
    """A Status in place of a text, as everywhere."""
    return ours if real.text == "431 Request Header Fields Too Large" and _status(ours)[:2] == (431, "BadRequest") else real


def _no_sniffing(step: Step, real: Answer, ours: Answer) -> Answer:
    """A refusal by admission forbids browsers to guess what it is, as one by authorization does in both."""
    header = "X-Content-Type-Options: nosniff"
    if not real.status == ours.status == 403 or header in real.headers or header not in ours.headers:
        return real
    position = ours.headers.index(header)
    return replace(real, headers=(*real.headers[:position], header, *real.headers[position:]))


def _refused_handshakes(step: Step, real: Answer, ours: Answer) -> Answer:
    """A Status in place of a bare line, or of nothing at all."""
    code, _, message = _status(ours)
    asked = step.headers.get("Upgrade") == "websocket" and code == real.status == ours.status >= 400 and not real.headers
    return ours if asked and real.text.strip() in ("", message) else real


def _one_gzip_member(step: Step, real: Answer, ours: Answer) -> Answer:
    """kube-apiserver begins a new member with what it flushes, and some clients stop at the end of the first."""
    told = "\n(one gzip member)\n" in ours.text
    return replace(real, text=real.text.replace("\n(several gzip members)\n", "\n(one gzip member)\n")) if told else real


def _long_values(step: Step, real: Answer, ours: Answer) -> Answer:
    """A value of more than some thousand characters is shown by its beginning only."""
    head, ellipsis, tail = ours.text.partition('\\"\u2026')
    shown = real.status == ours.status >= 400 and ellipsis and real.text.startswith(head) and real.text.endswith(f'\\"{tail}')
    return replace(real, text=ours.text) if shown else real


def _discovery_vary(step: Step, real: Answer, ours: Answer) -> Answer:
    if not isinstance(step, Request) or "Vary: Accept" not in ours.headers or "Vary: Accept" in real.headers:
        return real
    position = ours.headers.index("Vary: Accept")
    return replace(real, headers=(*real.headers[:position], "Vary: Accept", *real.headers[position:]))


def _unknown_methods(step: Step, real: Answer, ours: Answer) -> Answer:
    return ours if isinstance(step, Request) and step.method == "FROB" and ours.status == 400 else real


def _protobuf_bodies(step: Step, real: Answer, ours: Answer) -> Answer:
    """kube-apiserver fails without an answer when it is sent protobuf for a custom resource."""
    sent = step.headers.get("Content-Type") == "application/vnd.kubernetes.protobuf"
    return ours if sent and ours.status == 415 and real.status in (0, 400) else real


def _scheme_names(step: Step, real: Answer, ours: Answer) -> Answer:
    return replace(real, text=_SCHEME.sub("", real.text))


def _version_mismatch(step: Step, real: Answer, ours: Answer) -> Answer:
    """An object of another version has no schema there, so that kube-apiserver warns of its spec before it refuses the whole."""
    warning = 'Warning: 299 - "unknown field \\"spec\\""'
    if real.status < 400 or ours.status != real.status or warning in ours.headers:
        return real
    return replace(real, headers=tuple(header for header in real.headers if header != warning))


def _invalid_utf8(step: Step, real: Answer, ours: Answer) -> Answer:
    """kube-apiserver stores other text than it was sent."""
    return ours if step.kind == "invalid UTF-8" and real.status == 201 and ours.status == 400 else real


def _create_with_version(step: Step, real: Answer, ours: Answer) -> Answer:
    told = "resourceVersion should not be set on objects to be created"
    return ours if ours.status == 400 and told in ours.text and (told in real.text or step.kind == "create with a version") else real


def _quantity_paths(step: Step, real: Answer, ours: Answer) -> Answer:
    """A quantity is not said to be at `limits.cpu` but at `limits[cpu]`, as in a pod."""
    if not real.status == ours.status == 422 or _QUANTITY not in ours.text:
        return real
    return replace(real, text=ours.text) if _KEY.sub(lambda found: f".{found[1] or found[2]}", ours.text) == real.text else real


def _apply_empties(step: Step, real: Answer, ours: Answer) -> Answer:
    """A container of which an apply gives up every part becomes null there, and the object invalid; here it becomes empty."""
    return _without_null_causes(step, real, ours, ({}, []))


def _apply_null(step: Step, real: Answer, ours: Answer) -> Answer:
    """To apply null is to say nothing of a field: kube-apiserver notes an owner for it, once without a time, or stores the null."""
    body = _applied(step)
    nulls = list(_paths_of_nulls(body))
    if not nulls or not real.text.startswith("{"):
        return real
    if real.status == 422:
        return _without_null_causes(step, real, ours, (None,))
    if real.status != ours.status or real.status not in (200, 201):
        return real
    values = [json.loads(_REVISION.sub("", answer.text)) for answer in (real, ours)]
    for value in values:
        metadata = value["metadata"]
        metadata["managedFields"] = [kept for entry in metadata.get("managedFields", ()) if (kept := _entry_without(entry, step, nulls))]
    return ours if values[0] == values[1] else real


def _applied(step: Step) -> Any:
    """What a step applies, as far as it can be read."""
    try:
        return json.loads(step.body) if step.kind == "apply" and isinstance(step, Request) and isinstance(step.body, str) else None
    except ValueError:
        return None


def _paths_of_nulls(value: Any) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for name, item in value.items():
            if item is None:
                yield (name,)
            for path in _paths_of_nulls(item):
                yield name, *path
    elif isinstance(value, list):
        for item in value:
            for path in _paths_of_nulls(item):
                yield "[]", *path


def _entry_without(entry: dict[str, Any], step: Step, paths: list[tuple[str, ...]]) -> dict[str, Any] | None:
    """An entry of managedFields; without these fields, and without its time, if it is the applier's; None when nothing is left."""
    manager = parse_qs(step.path.partition("?")[2]).get("fieldManager", [""])[0]
    if (entry["manager"], entry["operation"]) != (manager, "Apply"):
        return entry
    fields = entry["fieldsV1"]
    for path in paths:
        fields = _fields_without(fields, path)
    return {**entry, "fieldsV1": fields, "time": None} if fields else None


def _fields_without(fields: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    first, *rest = path
    kept = {}
    for element, inner in fields.items():
        if element != f"f:{first}" and not (first == "[]" and element[0] in "kv"):
            kept[element] = inner
        elif rest and (inner_kept := _fields_without(inner, tuple(rest))):
            kept[element] = inner_kept
    return kept


def _without_null_causes(step: Step, real: Answer, ours: Answer, said: tuple[Any, ...]) -> Answer:
    """Our answer, when a refusal differs from it only in nulls at fields of which the applied object says this, or nothing.

    What was null may lack something here, where it is empty.
    """
    applied = _applied(step)
    if applied is None or _status(real)[:2] != (422, "Invalid"):
        return real
    nulls: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    for field, message in _causes(real):
        found = _found(applied, field)
        is_null = _NULL.fullmatch(message) is not None and (not found or any(value in said for value in found))
        (nulls if is_null else others).append((field, message))
    if not nulls:
        return real
    if ours.status in (200, 201):
        value = json.loads(ours.text)
        empty = all(_found(applied, field) or any(item in ({}, []) for item in _found(value, field)) for field, _ in nulls)
        return ours if empty and not others else real
    if _status(ours)[:2] != (422, "Invalid"):
        return real
    lacking = tuple(f"{field}." for field, _ in nulls)
    here = [(field, message) for field, message in _causes(ours) if not (message == "Required value" and f"{field}.".startswith(lacking))]
    return ours if sorted(here) == sorted(others) else real


def _found(value: Any, field: str) -> list[Any]:
    """What an object has at a field; of lists any item may be meant, since the live list has others too."""
    values = [value]
    for name in re.findall(r"[^.\[\]]+|\[", field):
        if name == "[":
            values = [item for value in values if isinstance(value, list) for item in value]
        elif not name.isdigit():
            values = [value[name] for value in values if isinstance(value, dict) and name in value]
    return values


def _causes(answer: Answer) -> list[tuple[str, str]]:
    return [(cause.get("field", ""), cause["message"]) for cause in json.loads(answer.text)["details"]["causes"]]


def _status(answer: Answer) -> tuple[int, str, str]:
    """Code, reason and message of a Status; nothing when it is none."""
    try:
        value = json.loads(answer.text.removesuffix("\n(end)"))
        return value["code"], value.get("reason", ""), value["message"]
    except (ValueError, KeyError, TypeError):
        return 0, "", ""


def _scale_patch_text(step: Step, real: Answer, ours: Answer) -> Answer:
    """What a patch made of a Scale is shown with its owners there, and in the order of Go's struct."""
    problem = "json: cannot unmarshal"
    if "/scale" not in step.path or not real.status == ours.status == 422 or problem not in real.text or problem not in ours.text:
        return real
    return ours if real.text.rsplit(problem, 1)[1] == ours.text.rsplit(problem, 1)[1] else real


def _watch_of_lists(step: Step, real: Answer, ours: Answer) -> Answer:
    """kube-apiserver ends such a watch without a word, but for that of another failure."""
    nothing_else = real.status == 200 and (real.text == "(end)" or real.text.startswith('{"type":"ERROR"'))
    return ours if isinstance(step, Watch) and ours.status == 406 and nothing_else else real


def _unfit_forms(step: Step, real: Answer, ours: Answer) -> Answer:
    """What cannot be answered as it is asked for is refused; kube-apiserver says so only after a write, and not of a Status."""
    if not isinstance(step, Request):
        return real
    asked = step.method == "DELETE" and "as=PartialObjectMetadataList" in step.headers.get("Accept", "")
    bogus = ours.status == 400 and "includeObject: Invalid value" in ours.text
    return ours if (asked and real.status == 200 and ours.status == 406) or (bogus and real.status in (200, 201, 404)) else real


def _scale_apply(step: Step, real: Answer, ours: Answer) -> Answer:
    """kube-apiserver fails to apply to the scale of a custom resource."""
    failed = real.status == 500 and "request to convert CR to an invalid group/version: autoscaling/v1" in real.text
    return ours if failed and "/scale" in step.path and ours.status == 200 else real


def _large_numbers(step: Step, real: Answer, ours: Answer) -> Answer:
    """An integer beyond 64 bits is shown as the number that was understood."""
    return replace(real, text=real.text.replace("9223372036854775808", "9223372036854776000")) if real.status >= 400 else real


def _owners_of_broken_objects(step: Step, real: Answer, ours: Answer) -> Answer:
    """A status of the wrong type is dropped; kube-apiserver then notes no owner of the rest either."""
    if not isinstance(step, Request) or real.status not in (200, 201) or real.status != ours.status:
        return real
    if not isinstance(step.body, str) or "status" not in step.body or not ours.text.startswith('{"apiVersion"'):
        return real
    return ours if _without_owners(ours.text) == _without_owners(real.text) else real


def _without_owners(text: str) -> Any:
    value = json.loads(text)
    value.get("metadata", {}).pop("managedFields", None)
    return value


def _lenient_patches(step: Step, real: Answer, ours: Answer) -> Answer:
    """With fieldValidation=Ignore kube-apiserver reads JSON patches by another decoder, which says other things."""
    if step.kind != "JSON patch" or "fieldValidation=Ignore" not in step.path:
        return real
    decoding = "error decoding patch: json: cannot unmarshal"
    if real.status == 400 and (found := _LENIENT.search(real.text)) is not None:
        type_ = {"Patch": "[]handlers.jsonPatchOp", "Operation": "handlers.jsonPatchOp"}[found[2]]
        return replace(real, text=_LENIENT.sub(f"{decoding} {found[1]} into Go value of type {type_}", real.text))
    nothing_said = (422, "Invalid", "the server rejected our request due to an error in our request")
    code, reason, message = _status(ours)
    told = (code, reason) == (400, "BadRequest") and _LENIENT_FIELD.fullmatch(message)
    return ours if _status(real) == nothing_said and told else real


def _null_items(step: Step, real: Answer, ours: Answer) -> Answer:
    return replace(real, text=_NULL_ITEMS.sub(r"\1[]", real.text)) if _NO_ITEMS.search(ours.text) else real


def _scale_unchanged(step: Step, real: Answer, ours: Answer) -> Answer:
    """kube-apiserver writes, and forgets who owned the replicas."""
    selector = _SELECTOR.sub("", ours.text)
    return ours if step.kind == "scale unchanged" and _REVISION.sub("", real.text) == _REVISION.sub("", selector) else real


def _empty_metadata(step: Step, real: Answer, ours: Answer) -> Answer:
    """kube-apiserver stores empty labels and finalizers as they came, and writes once more when they are gone on the next change."""
    owned_without_content = '"f:finalizers":{}' in ours.text or '"f:labels":{}' in ours.text
    return _but_for_revisions(real, ours) if owned_without_content or step.kind == "empty metadata" else real


def _but_for_revisions(real: Answer, ours: Answer) -> Answer:
    return ours if _REVISION.sub("", real.text) == _REVISION.sub("", ours.text) else real


def _one_at_revision(step: Step, real: Answer, ours: Answer) -> Answer:
    """Of one object kube-apiserver lists the newest version, whatever revision was asked for."""
    asked = "metadata.name%3D" in step.path and "resourceVersion=" in step.path
    if step.kind != "list" or not asked or not real.status == ours.status == 200:
        return real
    values = [yaml.safe_load(answer.text) for answer in (real, ours)]
    ranks = [int(value["metadata"].pop("resourceVersion").removeprefix("<revision ").removesuffix(">")) for value in values]
    for value in values:
        value.pop("rows" if value["kind"] == "Table" else "items")
    return ours if ranks[0] > ranks[1] and values[0] == values[1] else real


def _whole_floats(step: Step, real: Answer, ours: Answer) -> Answer:
    refused = real.status == 422 and "accessor error" in real.text and "is of the type float64, expected int64" in real.text
    return ours if refused and ours.status in (200, 201) and step.kind == "whole float" else real


LISTED: Final = Listing(
    (
        Listed("json-escapes", _json_escapes),
        Listed("scale-selector", _scale_selector),
        Listed("scale-body", _scale_body),
        Listed("faults-of-clients", _faults_of_clients),
        Listed("whole-floats", _whole_floats, parts_ways=True),
        Listed("apply-empties", _apply_empties, parts_ways=True),
        Listed("apply-null", _apply_null, parts_ways=True),
        Listed("lenient-patches", _lenient_patches),
        Listed("large-numbers", _large_numbers),
        Listed("owners-of-broken-objects", _owners_of_broken_objects, parts_ways=True),
        Listed("scale-apply", _scale_apply, parts_ways=True),
        Listed("watch-of-lists", _watch_of_lists),
        Listed("unfit-forms", _unfit_forms, parts_ways=True),
        Listed("scale-patch-text", _scale_patch_text),
        Listed("null-items", _null_items),
        Listed("scale-unchanged", _scale_unchanged, parts_ways=True),
        Listed("empty-metadata", _empty_metadata, parts_ways=True),
        Listed("one-at-a-revision", _one_at_revision),
        Listed("quantity-paths", _quantity_paths),
        Listed("order-of-errors", _order_of_errors, by_chance=True),
        Listed("no-page", _no_page),
        Listed("names-and-verbs", _names_and_verbs, parts_ways=True),
        Listed("discovery-methods", _discovery_methods),
        Listed("discovery-vary", _discovery_vary),
        Listed("discovery-beta", _discovery_beta),
        Listed("documents", _documents),
        Listed("slash-at-end", _slash_at_end),
        Listed("of-the-server", _of_the_server),
        Listed("long-heads", _long_heads),
        Listed("long-values", _long_values),
        Listed("one-gzip-member", _one_gzip_member),
        Listed("refused-handshakes", _refused_handshakes),
        Listed("no-sniffing", _no_sniffing, by_chance=True),
        Listed("unknown-methods", _unknown_methods),
        Listed("protobuf-bodies", _protobuf_bodies),
        Listed("scheme-names", _scheme_names),
        Listed("version-mismatch", _version_mismatch),
        Listed("invalid-utf8", _invalid_utf8, parts_ways=True),
        Listed("create-with-version", _create_with_version),
        Listed("key-order", _key_order),
        Listed("order-of-managers", _order_of_managers, by_chance=True),
    )
)
