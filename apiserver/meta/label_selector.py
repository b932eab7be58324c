"""LabelSelector as it is written in objects: a query over the labels of other objects.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
"""

from __future__ import annotations

from typing import Annotated

from openapi.markers import AtomicList
from openapi.model import AtomicModel, Model


class LabelSelectorRequirement(Model):
    """One condition on the value of a label."""

    key: str
    """The label's key."""
    operator: str
    """How the label is compared with the values: In, NotIn, Exists or DoesNotExist."""
    values: Annotated[list[str] | None, AtomicList] = None
    """The values for In and NotIn; none for Exists and DoesNotExist."""


class LabelSelector(AtomicModel):
    """A query over labels: all conditions must hold. An empty selector finds everything, an absent one nothing."""

    match_expressions: Annotated[list[LabelSelectorRequirement] | None, AtomicList] = None
    """Conditions on labels."""
    match_labels: dict[str, str] | None = None
    """Labels that must be there with exactly these values."""
