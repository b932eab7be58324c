"""Writes down requests as the audit policy wants it. Costs nothing when there is no audit log.

Two filters, since a request is known from its identity on, but its end only outside of everything that can answer it: `make_received`
behind authentication decides, and tells of the request; `make` tells of the answer, whoever gave it. So each request has its events, also
one that was denied, failed, took too long, or whose client has gone.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/endpoints/filters/audit.go
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from aiohttp import web

from apiserver.audit.event import Content, Entry
from apiserver.request import ANONYMOUS, ON_PREPARE, AuditNotes, is_long_running

if TYPE_CHECKING:
    from apiserver.audit.log import AuditLog
    from apiserver.audit.policy import Decision, Stage
    from apiserver.filters.stages import Stages
    from apiserver.request import Call, Filter, Handler

_CLIENT_HAS_GONE = 499


def make(stages: Stages) -> Filter | None:
    """Return the outer filter: it tells of the answer. None without an audit log."""
    log = stages.audit_log
    if log is None:
        return None

    async def audit(call: Call, handler: Handler) -> web.StreamResponse:
        notes = call.audit = AuditNotes(time.time())
        try:
            response = await handler(call)
        except BaseException:
            _tell_end(log, call, notes, None)
            raise
        _tell_end(log, call, notes, response)
        return response

    return audit


def make_received(stages: Stages) -> Filter | None:
    """Return the inner filter: it decides, and tells that a request has come. None without an audit log."""
    log = stages.audit_log
    if log is None:
        return None

    async def audit_received(call: Call, handler: Handler) -> web.StreamResponse:
        decision = _decide(log, call, known=True)
        if decision.level != "None":
            assert call.audit is not None
            _tell(log, call, "RequestReceived", call.audit.received)
            if is_long_running(call.info):
                call.http[ON_PREPARE] = lambda response: _tell(log, call, "ResponseStarted", time.time(), code=response.status)
        return await handler(call)

    return audit_received


def _decide(log: AuditLog, call: Call, *, known: bool) -> Decision:
    decision = log.policy.decide(call.user if known else None, call.info)
    log.note_level(decision.level)
    assert call.audit is not None
    call.audit.decision = decision
    return decision


def _tell_end(log: AuditLog, call: Call, notes: AuditNotes, response: web.StreamResponse | None) -> None:
    decision: Decision = notes.decision or _decide(log, call, known=False)
    if decision.level == "None":
        return
    begun = call.http.writer.output_size > 0
    code = response.status if response is not None else 200 if begun else _CLIENT_HAS_GONE
    content = None
    if isinstance(response, web.Response) and isinstance(response.body, bytes) and "Content-Encoding" not in response.headers:
        # What came of a request, a failure or a deletion, is told at every level, an object only where that is wanted.
        if code >= 400 or call.info.verb == "delete" or decision.level == "RequestResponse":
            content = Content(response.body, response.headers.get("Content-Type", ""))
    elif decision.level == "RequestResponse" and response is not None and not is_long_running(call.info):
        notes.annotations["audit.clrk.apoxy.dev/response-object"] = "omitted: it was streamed"
    stage: Stage = "Panic" if notes.panic else "ResponseComplete"
    _tell(log, call, stage, time.time(), code=code, response=content)


def _tell(log: AuditLog, call: Call, stage: Stage, reached: float, *, code: int = 0, response: Content | None = None) -> None:
    notes = call.audit
    assert notes is not None
    decision: Decision = notes.decision
    if stage in decision.omit_stages:
        return
    # Below this level the body is looked at only for the name of what is created or replaced.
    wanted = decision.level != "Metadata" or call.info.verb in ("create", "update")
    acting = notes.impersonator or call.user
    request = Content(notes.body, call.http.headers.get("Content-Type", "")) if notes.body and wanted else None
    log.put(
        Entry(
            stage,
            decision,
            call.audit_id,
            notes.received,
            reached,
            call.info,
            call.http.raw_path,
            None if acting is ANONYMOUS else acting,
            call.peer.address,
            call.http.headers,
            code,
            request,
            response,
            notes.panic,
            dict(notes.annotations) if notes.annotations else None,
            None if acting is call.user else call.user,
            notes.constraint,
        )
    )
