"""Quantity: an amount of CPU, memory or another resource, as in `500m` or `1Gi`; it stays as it was written."""

from __future__ import annotations

from typing import Annotated, Final

from openapi.markers import Extension

PATTERN: Final = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
"""What a quantity given as a string looks like: a decimal number and one suffix."""

Quantity = Annotated[int | str, Extension((("type", ""), ("int_or_string", True), ("pattern", PATTERN)))]
"""A whole number, or a string that PATTERN describes.
Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/api/resource/quantity.go"""
