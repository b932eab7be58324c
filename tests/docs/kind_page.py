"""The reference page of one kind: its operations, its fields, and every type below it.

Made from the operations that the server publishes, the schema that it checks and the models' own texts, so that it says what is served.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import orjson
from pydantic import BaseModel

from apiserver.meta.resource import ResourceKind
from openapi.from_model import schema_of, wire_name
from openapi.operations import Operation, operations_of
from openapi.structural import ABSENT, Schema
from tests.docs.markdown import code, table, text

_TITLES: Final = {
    "list": "List",
    "post": "Create",
    "deletecollection": "Delete all",
    "get": "Get",
    "put": "Replace",
    "delete": "Delete",
    "patch": "Update",
}
_BOUNDS: Final = (
    ("min_length", "Length: at least {}."),
    ("max_length", "Length: at most {}."),
    ("minimum", "At least {}."),
    ("maximum", "At most {}."),
    ("min_items", "At least {} elements."),
    ("max_items", "At most {} elements."),
    ("min_properties", "At least {} members."),
    ("max_properties", "At most {} members."),
)


class _Type(NamedTuple):
    """A type with named fields: the class for its names, the schema for all else."""

    model: type[BaseModel]
    schema: Schema

    def fields(self) -> Iterator[tuple[str, Schema, type[BaseModel] | None]]:
        """Each field with its schema, and with the type that it holds, alone, in a list or in a map."""
        for name, info in self.model.model_fields.items():
            yield wire_name(name, info), self.schema.properties[wire_name(name, info)], _model_in(info.annotation)


def page(kind: ResourceKind, samples: Path) -> str:
    """Return the page of a kind as Markdown. `samples` is the folder of its manifests, seen from the pages as `../../manifests/samples`."""
    types = _types_below(kind)
    whole = types.pop(kind.kind)
    first = [name for name in (f"{kind.kind}Spec", f"{kind.kind}Status") if name in types]
    minimal = samples / f"{kind.singular}-minimal.yaml"
    parts = [
        f"# {kind.kind}",
        f"API group: `{kind.api_version}`",
        text(kind.schema.description),
        table(("Property", "Value"), _properties(kind)),
        "\n".join(["```yaml", minimal.read_text().strip(), "```"]),
        f"A sample with every field: [{kind.singular}.yaml](../../manifests/samples/{kind.singular}.yaml).",
        "## Operations",
        "A request that fails is answered with a `Status` object that has Kubernetes' code, reason and message. Bodies are JSON or YAML, "
        "both ways; with `as=Table` or `as=PartialObjectMetadata` in its `Accept` header a client gets those forms.",
        *(part for operation in operations_of(kind.published) for part in _operation(operation, kind)),
        "## Fields",
        _field_table(whole),
        *(part for name in first for part in _section(types[name])),
        "## Schema reference",
        *(part for name in sorted(types.keys() - set(first)) for part in _section(types[name])),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _properties(kind: ResourceKind) -> Iterator[tuple[str, str]]:
    yield "Scope", "Namespaced" if kind.namespaced else "Cluster"
    yield "Resource", code(kind.plural)
    yield "Short names", ", ".join(map(code, kind.short_names)) or "none"
    yield "Subresources", ", ".join(["`status`"] * kind.has_status + ["`scale`"] * (kind.scale is not None)) or "none"
    for column in kind.columns:
        yield f"Column {column.name}", f"{text(column.description)}: {code(column.json_path)}{' (`-o wide`)' if column.priority else ''}"


def _operation(operation: Operation, kind: ResourceKind) -> Iterator[str]:
    subresource = next((name for name in ("status", "scale") if operation.path.endswith(f"{{name}}/{name}")), "")
    everywhere = " of all namespaces" if operation.operation_id.endswith("ForAllNamespaces") else ""
    yield f"### {_TITLES[operation.action]} {kind.kind}{f' {subresource}' if subresource else everywhere}"
    yield code(f"{operation.method.upper()} {operation.path}")
    yield f"{operation.description[0].upper()}{operation.description[1:]}."
    yield table(
        ("Parameter", "In", "Type", "Description"),
        ((code(given.name), given.place, given.type, text(given.description)) for given in operation.parameters),
    )
    if operation.body:
        optional = "" if operation.body_required else "; may be left out"
        yield f"Request body: {_definition(operation.body, kind)}, as {', '.join(map(code, operation.consumes))}{optional}."
    answers = [(f"{number}: {name}", _definition(operation.returned, kind)) for number, name in operation.codes]
    yield table(("Response", "Body"), [*answers, ("401: Unauthorized", "Status")])


def _definition(name: str, kind: ResourceKind) -> str:
    short = name.rpartition(".")[2]
    return f"[{short}](#fields)" if short == kind.kind else short


def _types_below(kind: ResourceKind) -> dict[str, _Type]:
    """Every type that the kind holds, itself included, by name.

    Raises:
        ValueError: two types share a name.
    """
    found: dict[str, _Type] = {}
    waiting = [_Type(kind.model, kind.schema)]
    while waiting:
        one = waiting.pop()
        known = found.setdefault(one.model.__name__, one)
        if known.model is not one.model:
            raise ValueError(f"two types below {kind.kind} are called {one.model.__name__}")
        if known is one:
            waiting += [_Type(inner, schema_of(inner)) for _, _, inner in one.fields() if inner]
    return found


def _section(one: _Type) -> Iterator[str]:
    yield f"### {one.model.__name__}"
    yield text(one.schema.description)
    if one.schema.map_type == "atomic":
        yield "It has one owner and is replaced as a whole."
    yield _field_table(one)


def _field_table(one: _Type) -> str:
    required = one.schema.required
    rows = ((code(name), _type_text(member, inner), _told(member, required=name in required)) for name, member, inner in one.fields())
    return table(("Field", "Type", "Description"), rows)


def _type_text(schema: Schema, inner: type[BaseModel] | None) -> str:
    if schema.items is not None:
        return f"{_type_text(schema.items, inner)}[]"
    if schema.additional_properties is not None:
        return f"map of {_type_text(schema.additional_properties, inner)}"
    if inner is not None:
        return f"[{inner.__name__}](#{inner.__name__.lower()})"
    if schema.int_or_string:
        return "integer or string"
    return f"{schema.type or 'any'}{f' ({schema.format})' if schema.format else ''}"


def _told(schema: Schema, *, required: bool) -> str:
    """What a field is for, and then what holds for its value."""
    value = _innermost(schema)
    marks = ["**Required.**"] if required else []
    if schema.default is not ABSENT:
        marks.append(f"Default: {code(_json(schema.default))}.")
    if value.enum:
        marks.append(f"One of {', '.join(code(_json(member)) for member in value.enum)}.")
    for limited in [schema] if value is schema else [schema, value]:
        marks += [words.format(getattr(limited, name)) for name, words in _BOUNDS if getattr(limited, name) is not None]
    if value.pattern:
        marks.append(f"Matches {code(value.pattern)}.")
    if schema.list_type_declared:
        marks.append(_LISTS[schema.list_type].format(" and ".join(map(code, schema.list_map_keys))))
    elif schema.type == "array":
        marks.append(_LISTS["atomic"])
    if schema.map_type == "atomic" and schema.additional_properties is not None:
        marks.append("Has one owner and is replaced as a whole.")
    if schema.immutable:
        marks.append("Cannot be changed once it is set.")
    if schema.preserve_unknown_fields:
        marks.append("Fields that are not named here are kept.")
    return " ".join([text(schema.description), *marks])


_LISTS: Final = {
    "atomic": "The list has one owner and is replaced as a whole.",
    "set": "No element occurs twice; each has its own owner.",
    "map": "Elements are told apart by {}; each has its own owner.",
}


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for model in map(_model_in, get_args(annotation)) if model), None)


def _innermost(schema: Schema) -> Schema:
    while inner := schema.items or schema.additional_properties:
        schema = inner
    return schema
