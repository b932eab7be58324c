"""Affinity: on which nodes, and near or far from which other pods, a pod is scheduled."""

from __future__ import annotations

from typing import Annotated, Literal

from apiserver.meta.label_selector import LabelSelector
from apiserver.meta.markers import AtomicList, Int32
from openapi.model import AtomicModel, Model


class NodeSelectorRequirement(Model):
    """One condition on a label or a field of a node."""

    key: str
    """Label or field that is compared."""
    operator: Literal["DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"]
    """How the label is compared with the values: In, NotIn, Exists, DoesNotExist, Gt or Lt."""
    values: Annotated[list[str] | None, AtomicList] = None
    """Values to compare with: some for In and NotIn, none for Exists and DoesNotExist, one whole number for Gt and Lt."""


class NodeSelectorTerm(AtomicModel):
    """Conditions on a node, all of which must hold. A term without conditions matches no node."""

    match_expressions: Annotated[list[NodeSelectorRequirement] | None, AtomicList] = None
    """Conditions on the labels of a node."""
    match_fields: Annotated[list[NodeSelectorRequirement] | None, AtomicList] = None
    """Conditions on the fields of a node; metadata.name is the only one that can be named."""


class NodeSelector(AtomicModel):
    """A choice of nodes: those that match at least one of the terms."""

    node_selector_terms: Annotated[list[NodeSelectorTerm], AtomicList]
    """Terms, of which one must match."""


class PreferredSchedulingTerm(Model):
    """A preference for nodes, with its weight. A term without conditions changes nothing."""

    preference: NodeSelectorTerm
    """The nodes that are preferred."""
    weight: Int32
    """What a matching node gains, from 1 to 100."""


class NodeAffinity(Model):
    """Ties a pod to nodes by their labels."""

    preferred_during_scheduling_ignored_during_execution: Annotated[list[PreferredSchedulingTerm] | None, AtomicList] = None
    """Preferences: the node with the greatest sum of weights is chosen among those that are possible at all."""
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    """What a node must fulfil when the pod is scheduled. A later change of the node's labels does not drive the pod away."""


class PodAffinityTerm(Model):
    """Names pods by their labels and namespaces, and the region around each of them in which, or outside of which, a pod is placed."""

    label_selector: LabelSelector | None = None
    """The pods that count, by their labels. Without it, none does."""
    match_label_keys: Annotated[list[str] | None, AtomicList] = None
    """Labels whose value in the pod to be scheduled is added to labelSelector as a condition (`key in (value)`). It cannot be set without
    labelSelector."""
    mismatch_label_keys: Annotated[list[str] | None, AtomicList] = None
    """Labels whose value in the pod to be scheduled is added to labelSelector as an exclusion (`key notin (value)`). It cannot be set
    without labelSelector."""
    namespace_selector: LabelSelector | None = None
    """Namespaces in which pods count, by the namespaces' labels, besides those in `namespaces`. An empty selector means all of them."""
    namespaces: Annotated[list[str] | None, AtomicList] = None
    """Namespaces in which pods count, by name. If this and namespaceSelector are not given, it is the pod's own namespace."""
    topology_key: str
    """Label of nodes: nodes with the same value of it are one region, as in topology.kubernetes.io/zone. It must not be empty."""


class WeightedPodAffinityTerm(Model):
    """A preference for being near, or far from, other pods, with its weight."""

    pod_affinity_term: PodAffinityTerm
    """The pods and the region around them."""
    weight: Int32
    """What a node in the region gains or loses, from 1 to 100."""


class PodAffinity(Model):
    """Draws a pod to where other pods run."""

    preferred_during_scheduling_ignored_during_execution: Annotated[list[WeightedPodAffinityTerm] | None, AtomicList] = None
    """Preferences: the node with the greatest sum of weights is chosen among those that are possible at all."""
    required_during_scheduling_ignored_during_execution: Annotated[list[PodAffinityTerm] | None, AtomicList] = None
    """Terms that must all be fulfilled when the pod is scheduled. It is not moved when they cease to be."""


class PodAntiAffinity(Model):
    """Keeps a pod away from where other pods run."""

    preferred_during_scheduling_ignored_during_execution: Annotated[list[WeightedPodAffinityTerm] | None, AtomicList] = None
    """Preferences: weights of matching terms are subtracted, and the node that is left with the greatest sum is chosen."""
    required_during_scheduling_ignored_during_execution: Annotated[list[PodAffinityTerm] | None, AtomicList] = None
    """Terms that keep the pod off their regions when it is scheduled. It is not moved when they match later."""


class Affinity(Model):
    """Where a pod is scheduled in relation to nodes and to other pods."""

    node_affinity: NodeAffinity | None = None
    """Which nodes the pod must or should run on."""
    pod_affinity: PodAffinity | None = None
    """Which pods it must or should run near to."""
    pod_anti_affinity: PodAntiAffinity | None = None
    """Which pods it must or should keep away from."""
