"""A failure as a response: the Status, in the form that the client takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.endpoints.negotiation import negotiate, respond_value
from apiserver.meta.errors import APIError
from apiserver.registry.forms import PLAIN

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.request import Call


def respond_error(call: Call, error: APIError) -> web.StreamResponse:
    """Answer with a Status in the form that the client takes; JSON for one that takes none."""
    try:
        form = negotiate(call)
    except APIError:
        form = PLAIN
    response = respond_value(call, form, error.to_status(), code=error.code)
    if error.retry_after_seconds is not None and error.code in (429, 500, 503, 504):
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response
