"""Toleration: a taint of a node that does not keep a pod away."""

from __future__ import annotations

from typing import Literal

from apiserver.meta.markers import Int64
from openapi.model import Model


class Toleration(Model):
    """Lets a pod run on nodes whose taint it matches by key, value and effect."""

    effect: Literal["NoExecute", "NoSchedule", "PreferNoSchedule"] | None = None
    """Effect of the taint that is tolerated: NoSchedule, PreferNoSchedule or NoExecute; all of them when it is not given."""
    key: str | None = None
    """Key of the taint. Without a key the operator must be Exists, and every taint is tolerated."""
    operator: Literal["Equal", "Exists", "Gt", "Lt"] | None = None
    """How the value is compared: Equal (used when nothing is given), Exists (any value), Lt or Gt (as numbers)."""
    toleration_seconds: Int64 | None = None
    """For the effect NoExecute: how many seconds the pod stays on a node that gets the taint. Without a number it stays; 0 or less means
    it goes at once."""
    value: str | None = None
    """Value of the taint; empty with the operator Exists."""
