"""TopologySpreadConstraint: how evenly pods are spread over failure domains."""

from __future__ import annotations

from typing import Annotated, Literal

from apiserver.meta.label_selector import LabelSelector
from apiserver.meta.markers import AtomicList, Int32
from openapi.model import Model


class TopologySpreadConstraint(Model):
    """Says how far the numbers of matching pods in two domains may differ."""

    label_selector: LabelSelector | None = None
    """The pods that are counted, by their labels."""
    match_label_keys: Annotated[list[str] | None, AtomicList] = None
    """Labels whose value in the pod to be scheduled narrows labelSelector further, as pod-template-hash does for the pods of one rollout.
    It cannot be set without labelSelector."""
    max_skew: Int32
    """How many more matching pods a domain may have than the emptiest one; above 0. With ScheduleAnyway, domains that lessen the
    difference are preferred."""
    min_domains: Int32 | None = None
    """How many domains there should be; above 0. With fewer, the emptiest one counts as having no pods. Only with DoNotSchedule."""
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    """Whether nodes that the pod's own nodeSelector and nodeAffinity exclude are left out of the count: Honor (used when nothing is
    given) or Ignore."""
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    """Whether nodes with a taint that the pod does not tolerate are left out of the count: Honor, or Ignore (used when nothing is
    given)."""
    topology_key: str
    """Label of nodes: nodes with the same value of it are one domain, as in topology.kubernetes.io/zone."""
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    """What becomes of a pod that fits nowhere: DoNotSchedule lets it wait, ScheduleAnyway takes the least uneven node."""
