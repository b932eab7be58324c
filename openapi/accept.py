"""Accepting: the instance of a kind's model, made of a value that is good beyond doubt, in one pass of pydantic's own core.

Most objects that are written are good. The walk of `validate.py` can say what is wrong, and the model makes the instance that a kind's own
rules look at; to do both at once, and to say no more than that it is good, takes half of that. For this the core's schema of the model is
rewritten: what scalars and lists must be is taken from the structural schema, and fields have the names that clients use and no others.

What is not accepted here may be good all the same, and nobody is told anything on its account: to find out is for the walk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from threading import Lock
from typing import Any, Final, Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import CoreSchema, SchemaError, SchemaValidator, core_schema

from openapi.scalar_rules import INTEGER_LIMITS
from openapi.structural import ABSENT, JSON, Schema
from openapi.type_rules import effective_format
from openapi.validate import check_of

M = TypeVar("M", bound=BaseModel)
_Node = Mapping[str, Any]
"""A part of the core's schema, as pydantic made it."""

_ANYTHING: Final = Schema()
_RULES: Final = (
    *("enum", "pattern", "min_length", "max_length", "minimum", "maximum", "exclusive_minimum", "exclusive_maximum", "multiple_of"),
    *("min_items", "max_items", "list_type", "min_properties", "max_properties"),
)
_TEXT_RULES: Final[Set[str]] = {"pattern", "min_length", "max_length"}
_NUMBER_FACTS: Final[Set[str]] = {"ge", "gt", "le", "lt", "multiple_of"}
_FACTS: Final[Mapping[str, Set[str]]] = {
    "any": set(),
    "bool": set(),
    "dict": {"keys_schema", "values_schema", "min_length", "max_length"},
    "float": _NUMBER_FACTS,
    "function-after": {"function", "schema"},
    "function-before": {"function", "schema"},
    "int": _NUMBER_FACTS,
    "list": {"items_schema", "min_length", "max_length"},
    "literal": {"expected"},
    "model": {"cls", "schema", "config", "custom_init", "root_model"},
    "model-fields": {"fields", "model_name", "computed_fields"},
    "nullable": {"schema"},
    "str": _TEXT_RULES,
    "union": {"choices"},
}
"""The nodes that are understood, and what they may say; all of it is in the structural schema as well, or looked at below."""
_OF_NO_CONSEQUENCE: Final = {"type", "ref", "metadata", "serialization", "strict"}
_CONFIG: Final = {"title", "strict", "frozen", "validate_by_name", "validate_by_alias", "serialize_by_alias"}
_TYPES: Final = {"any": "", "bool": "boolean", "dict": "object", "float": "number", "int": "integer", "list": "array", "model": "object"}
_TYPES.update({"model-fields": "object", "str": "string", "union": ""})
"""What the structural schema says in the place of a node."""
_KNOWN_CHECKS: Final = {"openapi.markers", "pydantic._internal._validators"}
"""Where functions come from that check what the structural schema says too, or read integral floats, of which none is left by now."""
_NOT_PORTABLE: Final = re.compile(r"\\[A-Za-z0-9\[\]]|\(\?|\{,|\[\^?\]|\[[^\]]*(?:\[|&&|--|~~)")
"""What is in a pattern that Rust may read otherwise than Go."""


class _NotUnderstoodError(Exception):
    """The model holds something whose meaning is not known here."""


class Acceptor(Generic[M]):
    """Pydantic makes a model ready when it is used for the first time, which takes some tens of milliseconds; so does this."""

    def __init__(self, model: type[M], schema: Schema) -> None:
        """`schema` is the model's own; of members that have been taken out of it the types alone are looked at."""
        self._model = model
        self._schema = schema
        self._accept: Callable[[JSON], M | None] | None = None
        self._preparing = Lock()

    def prepare(self) -> None:
        """Be ready before the first call. From any thread; who calls meanwhile waits."""
        with self._preparing:
            if self._accept is None:
                self._accept = self._compiled()

    def __call__(self, value: JSON) -> M | None:
        """Return the model's instance of a normalized value in which the walk of the schema finds nothing wrong.

        It equals what `model_validate` makes of the value. None says nothing; a model that does more than to name fields and their types
        gets no other answer. Rules about changes (`immutable`) are not asked. Never raises for any JSON value.
        """
        if self._accept is None:
            self.prepare()
        assert self._accept is not None
        try:
            return self._accept(value)
        except ValidationError:
            return None

    def _compiled(self) -> Callable[[JSON], M | None]:
        self._model.model_rebuild()
        try:
            accepted = _Rewriting().rewritten(self._model.__pydantic_core_schema__, self._schema)
            # Else the core would take what the classes already have in place of what stands here.
            return SchemaValidator(accepted, _use_prebuilt=False).validate_python
        except (_NotUnderstoodError, SchemaError):
            return _accept_nothing


def has_rules_of_change(schema: Schema) -> bool:
    """Whether anything in the schema depends on what was there before, so that an accepted value may still be wrong."""
    below = (*schema.properties.values(), *filter(None, (schema.additional_properties, schema.items)))
    return schema.immutable or any(map(has_rules_of_change, below))


class _Rewriting:
    """Makes the core's schema of what is accepted, node by node, from the one that pydantic made and the structural schema."""

    def __init__(self) -> None:
        self._definitions: dict[str, _Node] = {}

    def rewritten(self, node: _Node, schema: Schema) -> CoreSchema:
        """Rewrite a node.

        Raises:
            _NotUnderstoodError: something in it could make a difference that is not known here.
        """
        match kind := node["type"]:
            case "definitions":
                self._definitions.update((definition["ref"], definition) for definition in node["definitions"])
                return self.rewritten(node["schema"], schema)
            case "definition-ref":
                return self.rewritten(self._definitions[node["schema_ref"]], schema)
            case "default":
                return cast(CoreSchema, {**node, "schema": self.rewritten(node["schema"], schema)})
        if kind not in _FACTS or not node.keys() <= _FACTS[kind] | _OF_NO_CONSEQUENCE:
            raise _NotUnderstoodError
        match kind:
            case "nullable":
                inner = self.rewritten(node["schema"], schema)
                return core_schema.nullable_schema(inner) if schema.nullable and not schema.enum else inner
            case "function-before" | "function-after":
                function = node["function"]["function"]
                if getattr(function, "func", function).__module__ not in _KNOWN_CHECKS:
                    raise _NotUnderstoodError
                return self.rewritten(node["schema"], schema)
        if schema is not _ANYTHING and (_TYPES.get(kind, schema.type) != schema.type or schema.int_or_string != (kind == "union")):
            raise _NotUnderstoodError
        match kind:
            case "model-fields":
                return self._fields(node["fields"], schema)
            case "model":
                if node.get("custom_init") or node.get("root_model") or not node.get("config", {}).keys() <= _CONFIG:
                    raise _NotUnderstoodError
                whole = core_schema.model_schema(node["cls"], self.rewritten(node["schema"], schema))
                return _exactly(whole, replace(schema, properties={}, required=()))
            case "list":
                items = self.rewritten(node["items_schema"], schema.items or _ANYTHING)
                return _exactly(core_schema.list_schema(items, strict=True), replace(schema, items=None))
            case "dict":
                values = self.rewritten(node["values_schema"], schema.additional_properties or _ANYTHING)
                return _exactly(core_schema.dict_schema(values_schema=values, strict=True), replace(schema, additional_properties=None))
        return _scalar(node, schema)

    def _fields(self, fields: Mapping[str, _Node], schema: Schema) -> CoreSchema:
        names = {field: node.get("validation_alias", field) for field, node in fields.items()}
        always = {names[field] for field, node in fields.items() if node["schema"]["type"] != "default"}
        if {*map(type, names.values())} - {str} or not {*schema.properties} <= {*names.values()} or not {*schema.required} <= always:
            raise _NotUnderstoodError
        members = {field: self.rewritten(node["schema"], schema.properties.get(names[field], _ANYTHING)) for field, node in fields.items()}
        return core_schema.model_fields_schema(
            {field: core_schema.model_field(member, validation_alias=names[field]) for field, member in members.items()}
        )


def _scalar(node: _Node, schema: Schema) -> CoreSchema:
    match node["type"]:
        case "any":
            return _exactly(core_schema.any_schema(), schema)
        case "bool":
            return _exactly(core_schema.bool_schema(strict=True), schema)
        case "float":
            return _exactly(core_schema.float_schema(strict=True), schema)
        case "int":
            return _integer(schema)
        case "str":
            return _text(schema)
        case "literal" if schema is _ANYTHING or schema.enum == tuple(node["expected"]):
            said = {"enum"} if all(isinstance(value, str) for value in node["expected"]) else set()
            return _exactly(core_schema.literal_schema(node["expected"]), schema, said)
        case "union" if [choice["type"] for choice in node["choices"]] == ["int", "str"]:
            return core_schema.union_schema([_text(schema), _integer(schema)], mode="left_to_right")
    raise _NotUnderstoodError


def _text(schema: Schema) -> CoreSchema:
    if _NOT_PORTABLE.search(schema.pattern):
        return _exactly(core_schema.str_schema(strict=True), schema)
    least, most, pattern = schema.min_length, schema.max_length, schema.pattern or None
    return _exactly(core_schema.str_schema(strict=True, min_length=least, max_length=most, pattern=pattern), schema, _TEXT_RULES)


def _integer(schema: Schema) -> CoreSchema:
    low, high = schema.minimum, schema.maximum
    if isinstance(low, float) or isinstance(high, float):
        return _exactly(core_schema.int_schema(strict=True), schema)
    if schema.type == "integer":
        beyond = INTEGER_LIMITS[effective_format(schema)]
        low, high = max(-beyond, low if low is not None else -beyond), min(beyond - 1, high if high is not None else beyond)
    # Exclusive bounds are asked for besides.
    return _exactly(core_schema.int_schema(strict=True, ge=low, le=high), schema, {"minimum", "maximum"})


def _exactly(accepted: CoreSchema, schema: Schema, said: Set[str] = frozenset()) -> CoreSchema:
    """Have the walk's own rules asked first, if the schema has any but those that are said already."""
    rules = {name for name in _RULES if getattr(schema, name) != getattr(_ANYTHING, name)}
    if rules <= said and not (schema.type in ("string", "") and effective_format(schema)):
        return accepted
    check = check_of(schema)

    def checked(value: JSON) -> JSON:
        if check(value, ABSENT) is not None:
            raise ValueError("not for certain")
        return value

    return core_schema.no_info_before_validator_function(checked, accepted)


def _accept_nothing(value: JSON) -> None:
    return None
