"""Kubernetes' core/v1 types that kinds embed, whole: every field, enum, required mark, default, list type and map type of release 1.37.

Their structure is compared with Kubernetes' own OpenAPI document (tests/core). Descriptions are ours. Two differences from a Pod: defaults
that equal a type's empty value are left out, and a list-map key that may be left out gets the default "", as a CustomResourceDefinition
must have it.
Source: https://github.com/kubernetes/api/blob/v0.37.2/core/v1/types.go
"""

from apiserver.core.affinity import Affinity
from apiserver.core.env import EnvVar
from apiserver.core.references import LocalObjectReference
from apiserver.core.resources import ResourceRequirements
from apiserver.core.toleration import Toleration
from apiserver.core.topology_spread import TopologySpreadConstraint
from apiserver.core.volumes import Volume, VolumeMount

__all__ = [
    "Affinity",
    "EnvVar",
    "LocalObjectReference",
    "ResourceRequirements",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "VolumeMount",
]
