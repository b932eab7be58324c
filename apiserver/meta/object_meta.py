"""ObjectMeta and what it contains, as models. They are declared with the documents, in `openapi/meta_v1.py`, which publish them."""

from openapi.meta_v1 import ManagedFieldsEntry, ObjectMeta, OwnerReference

__all__ = ["ManagedFieldsEntry", "ObjectMeta", "OwnerReference"]
