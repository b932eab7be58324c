"""Kubernetes' core/v1 types that kinds embed, whole, as pydantic models with their list and map semantics."""
