"""Condition: one aspect of an object's observed state, in the shape that `kubectl wait` and most tools understand.

Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/apis/meta/v1/types.go
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from openapi.markers import Int64, Time
from openapi.model import Model

REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
TYPE = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"


class Condition(Model):
    """One aspect of an object's observed state."""

    last_transition_time: Time
    """When the status last changed from one value to another."""
    message: Annotated[str, Field(max_length=32768)]
    """What is behind the status, in words; may be empty."""
    observed_generation: Annotated[Int64, Field(ge=0)] | None = None
    """The generation of the object that the condition was computed for. Behind metadata.generation, it is out of date."""
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=REASON)]
    """Why the condition last changed, as one CamelCase word for programs."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds: True, False or Unknown."""
    type: Annotated[str, Field(max_length=316, pattern=TYPE)]
    """Which aspect this is, in CamelCase, as in Ready."""
