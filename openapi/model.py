"""Model: the pydantic base class of every type whose shape Kubernetes clients see.

It fixes what all of them have in common: names on the wire are camelCase (initialisms take an explicit alias), values are not coerced, and
the docstring under a field is its description.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from openapi.markers import AtomicMap, Extension


class Model(BaseModel):
    """A type with named fields. Its own docstring describes it wherever a field says nothing."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        defer_build=True,
    )

    markers: ClassVar[tuple[Extension, ...]] = ()
    """What holds for every value of this type, as in `(AtomicMap,)`."""


class AtomicModel(Model):
    """A type whose values have one owner and are replaced as a whole."""

    markers: ClassVar[tuple[Extension, ...]] = (AtomicMap,)
