"""The only place where an exception becomes a response.

An APIError is told to the client as its Status. Anything else is our own bug: logged with its traceback, answered as a 500 that says
nothing of the inside. Once a response has begun nothing can be said any more, and the connection is cut.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from apiserver.meta import errors
from apiserver.meta.errors import APIError

if TYPE_CHECKING:
    from aiohttp import web

    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_log = logging.getLogger(__name__)


def make(stages: Stages) -> Filter:
    """Return the filter that turns failures into Status objects."""
    respond = stages.respond_error

    def answer(call: Call, failure: APIError) -> web.StreamResponse:
        if call.http.writer.output_size > 0:
            raise ConnectionAbortedError("the response had begun when the request failed")
        return respond(call, failure)

    async def answer_errors(call: Call, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(call)
        except APIError as error:
            # Not kept beyond this block: its traceback knows this frame, and together they would keep the request.
            return answer(call, error)
        except ConnectionError:
            # The client has gone; there is nobody to answer.
            raise
        except Exception as error:
            _log.exception("%s %s failed (audit id %s)", call.info.method, call.info.path, call.audit_id)
            if call.audit is not None:
                call.audit.panic = type(error).__name__
            reason = f"the request failed in the server; its log has the reason under audit id {call.audit_id}"
            return answer(call, errors.internal_error(reason))

    return answer_errors
