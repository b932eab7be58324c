"""What the client wants to read, and the answers with one object.

The whole Accept list is read, with its q and parameters in any order, exactly as kube-apiserver reads it for custom resources: the first
clause that can be served wins. The common headers cost one dictionary look-up. What cannot be served is a 406 that names what can.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/handlers/negotiation/negotiate.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson
from multidict import CIMultiDict

from apiserver.meta import errors, protobuf, yaml_codec
from apiserver.registry.forms import PLAIN, PRETTY, Conversion, Form, MediaType
from apiserver.registry.partial import partial_bytes, partial_protobuf
from apiserver.response import WholeResponse

if TYPE_CHECKING:
    from apiserver.registry.stored_object import StoredObject
    from apiserver.registry.table import TableConvertor
    from apiserver.request import Call

SERVED: tuple[MediaType, ...] = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
"""What a 406 lists. The last one is for metadata and failures: kube-apiserver does not serve custom resources in it either."""
STREAMED = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")

_PRETTY_AGENTS = ("curl", "Wget", "Mozilla/5.0")
_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))
_GO_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_CONVERSIONS: dict[str, Conversion] = {
    "Table": "Table",
    "PartialObjectMetadata": "PartialObjectMetadata",
    "PartialObjectMetadataList": "PartialObjectMetadataList",
}

Target = tuple[str, str, str]
"""What a clause wants a document to be converted to: group, version and kind."""
_UNCONVERTED: frozenset[Target] = frozenset({("", "", "")})

_ACCEPT_CHARACTERS = 2048
"""What is read of an Accept header: browsers and client-go need some hundred, and sorting takes more time than reading."""
_WARNING_TOTAL_CHARACTERS = 4096
_WARNING_ITEM_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of an Accept header."""

    type: str
    subtype: str
    quality: float
    parameters: Mapping[str, str]

    def accepts(self, media_type: str) -> bool:
        """Whether the clause names this media type, or a range that holds it."""
        type_, _, subtype = media_type.partition("/")
        return (self.type in (type_, "*") and self.subtype == "*") or (self.type == type_ and self.subtype == subtype)

    def comes_before(self, other: Clause) -> bool:
        """The order in which clauses are tried: by quality, and what is exact before what has an asterisk."""
        return self.quality > other.quality or (self.type != "*" and other.type == "*") or (self.subtype != "*" and other.subtype == "*")


def accept_of(call: Call) -> str:
    """What the client says it takes; the beginning of it, where that is longer than anybody has reason to write."""
    return call.http.headers.get("Accept", "")[:_ACCEPT_CHARACTERS]


@lru_cache(maxsize=512)
def parse_accept(header: str) -> tuple[Clause, ...]:
    """The clauses of an Accept header in the order in which they are tried; malformed ones are left out.

    Source: https://github.com/munnerz/goautoneg/blob/a7dc8b61c822/autoneg.go
    """
    clauses: list[Clause] = []
    for part in header.split(","):
        range_, _, parameter_text = part.strip(" ").partition(";")
        type_, slash, subtype = range_.partition("/")
        type_, subtype = type_.strip(" "), subtype.strip(" ")
        if not slash and type_ == "*":
            subtype = "*"
        if not subtype or "/" in subtype:
            continue
        quality = 1.0
        parameters: dict[str, str] = {}
        for parameter in parameter_text.split(";"):
            name, equals, value = parameter.partition("=")
            if not equals or not value or "=" in value:
                continue
            if name.strip(" ") == "q":
                quality = _float_or_zero(value)
            else:
                parameters[name.strip(" ")] = value.strip(" ")
        clause = Clause(type_, subtype, quality, parameters)
        position = len(clauses)
        while position and clause.comes_before(clauses[position - 1]):
            position -= 1
        clauses.insert(position, clause)
    return tuple(clauses)


@lru_cache(maxsize=512)
def _choose(header: str, tables: bool) -> Form | None:
    """The form (without what comes from the query) of the first clause that can be served, or None."""
    for clause in parse_accept(header):
        for media_type in SERVED:
            if clause.accepts(media_type):
                form = _form_of(clause.parameters, media_type, tables)
                if form is not None:
                    return form
    return None


@lru_cache(maxsize=512)
def _choose_document(header: str, targets: frozenset[Target]) -> tuple[Form, Target] | None:
    """The form of what is no custom resource, for which each media type will do, and what it is converted to."""
    for clause in parse_accept(header):
        parameters = clause.parameters
        target = parameters.get("g", ""), parameters.get("v", ""), parameters.get("as", "")
        if target not in targets or parameters.get("sv"):
            continue
        for media_type in SERVED:
            if clause.accepts(media_type) and _streams(parameters, media_type):
                return _plain(media_type, parameters), target
    return None


def _plain(media_type: MediaType, parameters: Mapping[str, str]) -> Form:
    return Form(media_type, pretty=media_type == "application/json" and parameters.get("pretty") == "1")


def _streams(parameters: Mapping[str, str], media_type: MediaType) -> bool:
    """Whether a clause wants no stream, or one that is there."""
    return not parameters.get("stream") or (parameters["stream"] == "watch" and media_type != "application/yaml")


def _form_of(parameters: Mapping[str, str], media_type: MediaType, tables: bool) -> Form | None:
    if not _streams(parameters, media_type):
        return None
    if parameters.get("sv", "v1") != "v1":
        return None
    form = _plain(media_type, parameters)
    if not ("as" in parameters or "g" in parameters or "v" in parameters):
        return None if form.is_protobuf else form
    conversion = _CONVERSIONS.get(parameters.get("as", ""))
    version = parameters.get("v", "")
    if conversion is None or parameters.get("g") != "meta.k8s.io" or version not in ("v1", "v1beta1"):
        return None
    if conversion == "Table" and (not tables or form.is_protobuf):
        return None
    return replace(form, as_=conversion, version=version)


def negotiate(call: Call, *, tables: TableConvertor | None = None) -> Form:
    """Return the form that the client prefers of those that can be served; without `tables` there is no Table.

    A write that could not be answered in this form is refused here, before it has changed anything.

    Raises:
        APIError: 406 NotAcceptable; 400 for a wrong `includeObject` of a Table.
    """
    headers = call.http.headers
    accept = accept_of(call)
    query = call.info.query
    pretty = _wants_pretty(query, headers.get("User-Agent", ""))
    if not accept or accept in ("application/json", "*/*"):
        return PRETTY if pretty else PLAIN
    form = _choose(accept, tables is not None)
    if form is None:
        raise errors.not_acceptable(SERVED)
    if form.as_ == "Table":
        form = replace(form, tables=tables, include_object=_include_object(query))
    if call.info.verb in _WRITES:
        check_shape(call, form, is_list=call.info.verb == "deletecollection")
    return _indented(form) if pretty else form


def check_shape(call: Call, form: Form, *, is_list: bool) -> None:
    """Check that a form fits what is to be answered.

    Raises:
        APIError: 406 for the form of a list and a single object, or the other way round.
    """
    if form.as_ == ("PartialObjectMetadata" if is_list else "PartialObjectMetadataList"):
        single = "*v1.Scale" if call.info.subresource == "scale" else "*unstructured.Unstructured"
        found = "a list (*unstructured.UnstructuredList)" if is_list else f"not a list ({single})"
        raise errors.APIError(406, "NotAcceptable", f"you requested {form.as_}, but the requested object is {found}")


def negotiate_failure(call: Call) -> Form:
    """Return the form of a failure: the first that the client takes, else indented JSON, which everybody can read."""
    headers = call.http.headers
    accept = accept_of(call)
    pretty = _wants_pretty(call.info.query, headers.get("User-Agent", ""))
    if not accept or accept in ("application/json", "*/*"):
        return PRETTY if pretty else PLAIN
    chosen = _choose_document(accept, _UNCONVERTED)
    form = chosen[0] if chosen else PRETTY
    return _indented(form) if pretty else form


def negotiate_document(call: Call) -> Form:
    """Return the form of a document that is no object, and so not converted, but served as protobuf too.

    Raises:
        APIError: 406 NotAcceptable.
    """
    chosen = negotiate_conversion(call, _UNCONVERTED)
    if chosen is None:
        raise errors.not_acceptable(SERVED)
    return chosen[0]


def negotiate_conversion(call: Call, targets: frozenset[Target]) -> tuple[Form, Target] | None:
    """Return the form of a document, and what it is to be: the first of `targets` that a clause asks for. None when none does."""
    chosen = _choose_document(accept_of(call) or "*/*", targets)
    if chosen is None or not _wants_pretty(call.info.query, call.http.headers.get("User-Agent", "")):
        return chosen
    form, target = chosen
    return _indented(form), target


def _indented(form: Form) -> Form:
    return form if form.pretty or form.media_type != "application/json" else replace(form, pretty=True)


def _wants_pretty(query: Mapping[str, list[str]], user_agent: str) -> bool:
    if query and query.get("pretty", [""])[0]:
        return query["pretty"][0] in _GO_TRUE
    return user_agent.startswith(_PRETTY_AGENTS)


def _include_object(query: Mapping[str, list[str]]) -> str:
    value = query.get("includeObject", [""])[0]
    if value not in ("", "None", "Metadata", "Object"):
        problem = f"includeObject: Invalid value: {orjson.dumps(value).decode()}: must be 'Metadata', 'Object', 'None', or empty"
        raise errors.bad_request(f"Unable to convert to Table as requested: {problem}")
    return value


def accepts_gzip(call: Call) -> bool:
    """Whether the client takes gzip: the bare word in Accept-Encoding, as kube-apiserver reads it."""
    encodings = call.http.headers.get("Accept-Encoding", "")
    return "gzip" in encodings and any(token.strip() == "gzip" for token in encodings.split(","))


def response_headers(call: Call, content_type: str) -> CIMultiDict[str]:
    """The headers that every answer carries."""
    headers = CIMultiDict[str]()
    headers["Audit-Id"] = call.audit_id
    headers["Cache-Control"] = "no-cache, private"
    headers["Content-Type"] = content_type
    if call.warnings:
        headers.extend(("Warning", value) for value in warning_headers(call.warnings))
    return headers


def warning_headers(texts: list[str]) -> list[str]:
    """The values of the Warning headers: each text once, escaped; cut to 256 characters each when all are longer than 4096.

    Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/filters/warning.go
    """
    distinct = [text for text in dict.fromkeys(texts) if text]
    if sum(map(len, distinct)) > _WARNING_TOTAL_CHARACTERS:
        distinct = [text[:_WARNING_ITEM_CHARACTERS] for text in distinct]
    values: list[str] = []
    written = 0
    for text in distinct:
        if written >= _WARNING_TOTAL_CHARACTERS:
            break
        if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in text):
            continue
        written += len(text)
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        values.append(f'299 - "{escaped}"')
    return values


def respond_object(call: Call, form: Form, obj: StoredObject, *, code: int = 200) -> WholeResponse:
    """Answer with one object. In the plain case the bytes that are kept for it go out as they are.

    Raises:
        APIError: 406 for a list form of a single object.
    """
    if form.is_plain:
        return WholeResponse(status=code, body=obj.wire + b"\n", headers=response_headers(call, "application/json"))
    if not form.as_:
        return _respond(call, form, obj.object, code)
    check_shape(call, form, is_list=False)
    if form.as_ == "Table" and form.tables is not None:
        body = form.tables.single(obj, form)
    elif form.is_protobuf:
        body = protobuf.envelope(form.meta_api_version, form.as_, partial_protobuf(obj))
        return WholeResponse(status=code, body=body, headers=response_headers(call, form.media_type))
    else:
        body = partial_bytes(obj, form.version)
    return _respond(call, form, lambda: orjson.loads(body), code, json=body)


def respond_value(call: Call, form: Form, value: dict[str, Any], *, code: int = 200) -> WholeResponse:
    """Answer with a value that is not stored, such as a Status; conversions do not apply to it, and in protobuf it is a Status."""
    if form.is_protobuf:
        return WholeResponse(status=code, body=protobuf.status(value), headers=response_headers(call, form.media_type))
    return _respond(call, form, lambda: value, code)


def _respond(call: Call, form: Form, value: Callable[[], Any], code: int, *, json: bytes = b"") -> WholeResponse:
    return WholeResponse(status=code, body=render(form, value, json=json), headers=response_headers(call, form.media_type))


def render(form: Form, value: Callable[[], Any], *, json: bytes = b"") -> bytes:
    """The body of an answer: YAML, indented JSON (which upstream ends without a newline), or one line of JSON (`json`, if it is made)."""
    if form.media_type == "application/yaml":
        return yaml_bytes(value())
    if form.pretty:
        return orjson.dumps(value(), option=orjson.OPT_INDENT_2)
    return (json or orjson.dumps(value())) + b"\n"


def yaml_bytes(value: Any) -> bytes:
    """A value as YAML, as `sigs.k8s.io/yaml` writes it."""
    return yaml_codec.encode(value)


def _float_or_zero(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
