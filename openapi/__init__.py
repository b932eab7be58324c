"""Pydantic models as structural schemas, what follows from a schema for a JSON value, and the OpenAPI documents.

Knows neither the store nor the server.
"""
