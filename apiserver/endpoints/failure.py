"""A failure as a response: the Status, in the form that the client takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.endpoints.negotiation import negotiate_failure, respond_value

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.meta.errors import APIError
    from apiserver.request import Call


def respond_error(call: Call, error: APIError) -> web.StreamResponse:
    """Answer with a Status in the form that the client takes; JSON for one that takes none."""
    response = respond_value(call, negotiate_failure(call), error.to_status(), code=error.code)
    if error.retry_after_seconds:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    if error.code == 403:
        # It repeats text of the client's, in a response that browsers must not take for a page.
        response.headers["X-Content-Type-Options"] = "nosniff"
    return response
