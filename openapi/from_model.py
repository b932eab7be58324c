"""From a pydantic model to its structural schema.

Reads the annotations and field information of the classes themselves, since JSON Schema as pydantic writes it has lost what matters here:
`X | None` means "may be left out" in Kubernetes, not "may be null". Every nested type is inlined, as in a CustomResourceDefinition. What
cannot be said in a structural schema (unions, recursion, tuples) is refused with the path of the field.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from openapi.docstrings import docstring
from openapi.markers import Extension
from openapi.structural import ABSENT, JSON, Schema

_SCALARS: Mapping[Any, Schema] = {
    bool: Schema(type="boolean"),
    int: Schema(type="integer"),
    float: Schema(type="number"),
    str: Schema(type="string"),
    bytes: Schema(type="string", format="byte"),
    Any: Schema(preserve_unknown_fields=True),
    object: Schema(preserve_unknown_fields=True),
    dict: Schema(type="object", preserve_unknown_fields=True),
}


def schema_of(model: type[BaseModel]) -> Schema:
    """Return the schema of a model, every nested type inlined.

    Raises:
        TypeError: a field's type has no place in a structural schema; the text names model and field.
    """
    return _object(model, (), model.__name__)


def wire_name(name: str, info: FieldInfo) -> str:
    """Return the name that clients see of a field called `name` in Python."""
    return info.serialization_alias or info.alias or name


def _object(model: type[BaseModel], outer: tuple[type[BaseModel], ...], where: str) -> Schema:
    if model in outer:
        raise TypeError(f"{where}: {model.__name__} contains itself, which a structural schema cannot say")
    if not model.__pydantic_fields_complete__:
        model.model_rebuild()
    fields = {wire_name(name, info): (name, info) for name, info in model.model_fields.items()}
    schema = Schema(
        type="object",
        description=description_of(model),
        properties={
            name: _field(info, info.description or docstring(model, attribute), (*outer, model), f"{where}.{name}")
            for name, (attribute, info) in fields.items()
        },
        required=tuple(name for name, (_, info) in fields.items() if info.is_required()),
        preserve_unknown_fields=model.model_config.get("extra") == "allow",
    )
    return _marked(schema, getattr(model, "markers", ()), where)


def description_of(model: type[BaseModel]) -> str:
    """Return the model's own docstring on one line per paragraph; "" if it has none of its own."""
    return _unwrapped(inspect.cleandoc(model.__dict__.get("__doc__") or ""))


def _unwrapped(text: str) -> str:
    """Join the lines of each paragraph: where a docstring breaks says nothing to readers of `kubectl explain`."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _field(info: FieldInfo, description: str, outer: tuple[type[BaseModel], ...], where: str) -> Schema:
    schema = _marked(_type(info.annotation, outer, where), info.metadata, where)
    if description:
        schema = replace(schema, description=_unwrapped(description))
    default = _default(info)
    if default is not ABSENT and (default is not None or schema.nullable):
        schema = replace(schema, default=default)
    return schema


def _default(info: FieldInfo) -> JSON:
    value = info.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return ABSENT
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return to_jsonable_python(value, by_alias=True)


def _type(annotation: Any, outer: tuple[type[BaseModel], ...], where: str) -> Schema:
    if hasattr(annotation, "__value__"):  # `type X = ...`
        return _type(annotation.__value__, outer, where)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _marked(_type(arguments[0], outer, where), arguments[1:], where)
    if origin is Union or origin is UnionType:
        members = [member for member in arguments if member is not NoneType]
        if len(members) == 1:
            return _type(members[0], outer, where)
        if set(members) == {int, str}:
            return Schema(int_or_string=True)
        raise TypeError(f"{where}: a union of {members} has no structural schema; only `X | None` and `int | str` have")
    if origin is Literal:
        return _enum(arguments, where)
    if origin is list:
        return Schema(type="array", items=_type(arguments[0], outer, f"{where}[]"))
    if origin is dict:
        if arguments[0] is not str:
            raise TypeError(f"{where}: the keys of a map are strings")
        if arguments[1] is Any:
            return _SCALARS[dict]
        return Schema(type="object", additional_properties=_type(arguments[1], outer, f"{where}{{}}"))
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _object(annotation, outer, where)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _enum([member.value for member in annotation], where)
    raise TypeError(f"{where}: {annotation!r} has no structural schema")


def _enum(values: Iterable[Any], where: str) -> Schema:
    members = tuple(value for value in values if value is not None)
    kinds = {type(value) for value in members}
    if len(kinds) != 1 or not kinds <= {str, int, bool}:
        raise TypeError(f"{where}: the values of an enum are all strings, all integers or all booleans")
    return replace(_SCALARS[kinds.pop()], enum=members)


def _marked(schema: Schema, metadata: Iterable[Any], where: str) -> Schema:
    for item in metadata:
        schema = _with(schema, item, where)
    return schema


def _with(schema: Schema, item: Any, where: str) -> Schema:
    """Apply one piece of metadata; validators and the like say nothing about the schema."""
    if isinstance(item, Extension):
        return _with_list_map_keys(item.apply(schema), where)
    if isinstance(item, FieldInfo):
        schema = _marked(schema, item.metadata, where)
        return replace(schema, description=_unwrapped(item.description)) if item.description else schema
    if isinstance(item, annotated_types.GroupedMetadata):
        return _marked(schema, item, where)
    return replace(schema, **_facts(schema, item))


def _facts(schema: Schema, item: Any) -> dict[str, Any]:
    """What a constraint says, as fields of Schema."""
    match item:
        case annotated_types.Ge():
            return {"minimum": item.ge, "exclusive_minimum": False}
        case annotated_types.Gt():
            return {"minimum": item.gt, "exclusive_minimum": True}
        case annotated_types.Le():
            return {"maximum": item.le, "exclusive_maximum": False}
        case annotated_types.Lt():
            return {"maximum": item.lt, "exclusive_maximum": True}
        case annotated_types.MultipleOf():
            return {"multiple_of": item.multiple_of}
        case annotated_types.MinLen():
            return {f"min_{_counted(schema)}": item.min_length}
        case annotated_types.MaxLen():
            return {f"max_{_counted(schema)}": item.max_length}
    pattern = getattr(item, "pattern", None)
    return {"pattern": pattern} if isinstance(pattern, str) else {}


def _counted(schema: Schema) -> str:
    return {"array": "items", "object": "properties"}.get(schema.type, "length")


def _with_list_map_keys(schema: Schema, where: str) -> Schema:
    """Check the keys of a list map, and give those that may be left out the default "" that CustomResourceDefinitions demand of them."""
    if schema.list_type != "map":
        return schema
    item = schema.items
    if item is None or not set(schema.list_map_keys) <= set(item.properties):
        raise TypeError(f"{where}: a list map needs elements that are objects with the fields {', '.join(schema.list_map_keys)}")
    properties = dict(item.properties)
    for key in schema.list_map_keys:
        if key in item.required or properties[key].default is not ABSENT:
            continue
        if properties[key].type != "string":
            raise TypeError(f"{where}: the key {key} of a list map must be required, have a default, or be a string")
        properties[key] = replace(properties[key], default="")
    return replace(schema, items=replace(item, properties=properties))
