"""The one helper that states the shape of a failure."""

from __future__ import annotations

from typing import Any

import aiohttp


async def assert_status(response: aiohttp.ClientResponse, code: int, reason: str) -> dict[str, Any]:
    """Check that a response is a Status with this code and reason, in every part; return it."""
    text = await response.text()
    assert response.status == code, text
    assert response.content_type == "application/json", text
    status: dict[str, Any] = await response.json()
    assert (status["kind"], status["apiVersion"], status["metadata"], status["status"]) == ("Status", "v1", {}, "Failure"), status
    assert (status["code"], status["reason"]) == (code, reason), status
    assert status["message"], status
    retry_after_seconds = status.get("details", {}).get("retryAfterSeconds")
    assert response.headers.get("Retry-After") == (None if retry_after_seconds is None else str(retry_after_seconds))
    assert "Traceback" not in text
    return status
