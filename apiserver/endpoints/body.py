"""Bodies of requests: read up to the limit, decoded as JSON or YAML, checked for what kind they are of, normalized.

The only place where a client's bytes become a value. What cannot be understood is a 400 in kube-apiserver's words, what is too long a 413;
fields that nobody knows are told of, refused or passed over as `fieldValidation` says, and are gone afterwards in any case.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/handlers/rest.go and
https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/runtime/serializer/json/json.go
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal

from aiohttp import HttpVersion11

from apiserver.meta import errors, json_codec, yaml_codec
from apiserver.meta.json_codec import JSONSyntaxError
from apiserver.meta.options import delete_options, delete_options_from_body
from apiserver.meta.yaml_codec import YAMLError
from openapi.normalize import MetadataTypeError

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.meta.options import DeleteOptions
    from apiserver.meta.resource import ResourceKind
    from apiserver.request import Call
    from openapi.normalize import Normalize

LIMIT_BYTES: Final = 3 * 1024 * 1024
"""The largest body that is taken, inclusive; twice what etcd stores in one value by default."""
ACCEPTED: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
"""What a 415 lists; protobuf is named for the sake of equal messages, kube-apiserver cannot read it for custom resources either."""

Format = Literal["json", "yaml"]

_FORMATS: Final[dict[str, Format]] = {"": "json", "application/json": "json", "application/yaml": "yaml"}
_LONG_BYTES: Final[dict[Format, int]] = {"json": 256 * 1024, "yaml": 16 * 1024}
_SUMMARY_CHARACTERS: Final = 30
_NO_KIND: Final = "Object 'Kind' is missing"
_GO_TYPES: Final = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_TYPE_META_STRUCT: Final = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


class BodyError(ValueError):
    """A body, or a patched object, that cannot be understood; the text is kube-apiserver's."""


async def read_body(call: Call, *, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """Return the body, whether or not its length was announced.

    Raises:
        APIError: 413 for one byte more than the limit.
    """
    http = call.http
    announced = http.content_length
    if announced is not None and announced > limit_bytes:
        raise errors.request_entity_too_large(f"limit is {limit_bytes}")
    if "Expect" in http.headers:
        await _ask_for_body(http)
    content = http.content
    chunk: bytes = await content.readany()
    chunks, size = [chunk], len(chunk)
    while size <= limit_bytes and not content.at_eof() and (chunk := await content.readany()):
        chunks.append(chunk)
        size += len(chunk)
    if size > limit_bytes:
        raise errors.request_entity_too_large(f"limit is {limit_bytes}")
    body = b"".join(chunks) if len(chunks) > 1 else chunks[0]
    if call.audit is not None:
        call.audit.body = body
    return body


async def _ask_for_body(http: web.BaseRequest) -> None:
    """Tell a client that waits for a word before it sends a large body, as curl does for a second, that it is wanted."""
    if http.headers["Expect"].lower() == "100-continue" and http.version >= HttpVersion11:
        await http.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # That was no part of the response, which can still be anything.
        http.writer.output_size = 0


def format_of(call: Call) -> Format:
    """How the body is written: JSON when nothing is said.

    Raises:
        APIError: 415 for a media type that cannot be read.
    """
    content_type = call.http.headers.get("Content-Type", "")
    known = _FORMATS.get(content_type)
    if known is None:
        media_type, *parameters = content_type.split(";")
        known = _FORMATS.get(media_type.strip().lower())
        if known is None or not all("=" in parameter for parameter in parameters if parameter.strip()):
            raise errors.unsupported_media_type(ACCEPTED)
    return known


def decode(body: bytes, written: Format, *, strict: bool = True) -> tuple[Any, list[str]]:
    """Return the value of a body and, if `strict`, what is said of fields that are in it twice.

    Raises:
        BodyError: it is neither JSON nor YAML, or more than it seems (aliases that unfold, too deep).
    """
    try:
        if written == "yaml":
            twice: list[str] = []
            return yaml_codec.decode(body, duplicates=twice if strict else None), twice
        value = json_codec.decode(body)
        return value, json_codec.duplicates(body, value) if strict else []
    except YAMLError as error:
        raise BodyError(str(error)) from error
    except JSONSyntaxError as error:
        raise _no_type(str(error)) from error


def strict_problem(twice: list[str], unknown: list[str], written: Format = "json") -> str:
    """What a strict decoder says of a body."""
    if twice and written == "yaml":
        twice = [yaml_codec.strict_error(twice)]
    return f"strict decoding error: {', '.join([*twice, *unknown])}"


def unknown_fields(report: list[str]) -> list[str]:
    """What is said of fields that nobody knows, of their paths."""
    return [f'unknown field "{path}"' for path in report]


def go_type_of(value: Any) -> str:
    """What Go's decoder calls the type of a JSON value."""
    return _GO_TYPES[value.__class__]


def check_type_meta(value: Any, body: bytes | None = None) -> None:
    """See that a value is an object that says of what kind it is. When it does not, the client is shown `body`, else the value.

    Raises:
        BodyError: it does not.
    """
    if value.__class__ is dict:
        for name in ("apiVersion", "kind"):
            member = value.get(name)
            if member is not None and member.__class__ is not str:
                raise _no_type(f"json: cannot unmarshal {go_type_of(member)} into Go struct field .{name} of type string")
        if (value.get("apiVersion") or "").count("/") > 1:
            raise BodyError(f"unexpected GroupVersion string: {value['apiVersion']}")
        if value.get("kind"):
            return
    elif value is not None:
        raise _not_an_object(value)
    shown = json_codec.encode(value)[:-1] if body is None else body
    raise BodyError(f"{_NO_KIND} in '{shown.decode(errors='replace')}'")


def _not_an_object(value: Any) -> BodyError:
    return _no_type(f"json: cannot unmarshal {go_type_of(value)} into Go value of type {_TYPE_META_STRUCT}")


def _no_type(problem: str) -> BodyError:
    return BodyError(f"couldn't get version/kind; json parse error: {problem}")


class ObjectBody:
    """Decodes bodies that are objects of one kind."""

    def __init__(self, kind: ResourceKind, normalize: Normalize) -> None:
        self._kind = kind
        self._normalize = normalize

    async def decode(self, body: bytes, written: Format, field_validation: str, warnings: list[str]) -> dict[str, Any]:
        """Return the normalized object. Fields that are unknown or there twice go into `warnings`, or are refused, or neither.

        What takes longer than some milliseconds is done in a thread.

        Raises:
            APIError: 400.
        """
        if len(body) > _LONG_BYTES[written]:
            return await asyncio.to_thread(self._decode, body, written, field_validation, warnings)
        return self._decode(body, written, field_validation, warnings)

    def _decode(self, body: bytes, written: Format, field_validation: str, warnings: list[str]) -> dict[str, Any]:
        kind, strict = self._kind, field_validation != "Ignore"
        try:
            value, twice = decode(body, written, strict=strict)
            check_type_meta(value, body)
        except BodyError as error:
            text = f"the object provided is unrecognized (must be of type {kind.kind}): {error} ({_summary(body)})"
            if not strict and str(error).startswith(_NO_KIND):  # upstream's lenient decoder assumes the kind at first
                text = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {error}'
            raise errors.bad_request(text) from error
        if value.get("apiVersion", "") is None:
            raise self._cannot_be_handled(value, ".apiVersion accessor error: <nil> is of the type <nil>, expected string")
        report: list[str] = []
        try:
            self._normalize(value, report=report)
        except MetadataTypeError as error:
            raise self._cannot_be_handled(value, str(error)) from error
        if strict and (twice or report):
            unknown = unknown_fields(report)
            if field_validation == "Strict":
                raise self._cannot_be_handled(value, strict_problem(twice, unknown, written))
            warnings.extend((*twice, *unknown))
        api_version = value.get("apiVersion") or ""
        if api_version != kind.api_version:
            raise errors.bad_request(
                f"the API version in the data ({api_version}) does not match the expected API version ({kind.api_version})"
            )
        result: dict[str, Any] = value
        return result

    def _cannot_be_handled(self, value: dict[str, Any], problem: str) -> errors.APIError:
        version = (value.get("apiVersion") or "").rpartition("/")[2]
        return errors.bad_request(f'{value["kind"]} in version "{version}" cannot be handled as a {self._kind.kind}: {problem}')


def _summary(body: bytes) -> str:
    """The beginning of a body, in hexadecimal when it is no JSON object."""
    if not body:
        return "<empty>"
    beginning = body[:_SUMMARY_CHARACTERS]
    text = beginning.decode(errors="replace") if body.startswith(b"{") else beginning.hex()
    return f"{text} ..." if len(body) > _SUMMARY_CHARACTERS else text


async def read_delete_options(call: Call) -> DeleteOptions:
    """The options of a deletion: from its body, or from the query when there is none.

    Raises:
        APIError: 400, 413, 415; 422 for values that are not allowed.
    """
    body = await read_body(call)
    if not body:
        return delete_options(call.info.query)
    try:
        value, _ = decode(body, format_of(call), strict=False)
        if value is not None and value.__class__ is not dict:
            raise _not_an_object(value)
    except BodyError as error:
        raise errors.bad_request(str(error)) from error
    return delete_options_from_body(value)
