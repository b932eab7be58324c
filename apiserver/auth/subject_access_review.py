"""Asks kube-apiserver whether somebody may do something, with exactly what kube-apiserver would ask itself.

An answer counts for some seconds, for the same user (with all groups, uid and extra) doing the same thing (with the same selectors) alone.
No answer is no permission: 500.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/plugin/pkg/authorizer/webhook/webhook.go
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from apiserver.auth import NO_OPINION, Decision
from apiserver.auth.reviews import Record, ReviewCache, review
from apiserver.cluster.client import ClusterError
from apiserver.meta import errors
from apiserver.meta.field_selectors import parse_field_selector
from apiserver.meta.selector_text import parse_label_selector
from apiserver.meta.selectors import SelectorError
from apiserver.request import ANONYMOUS

if TYPE_CHECKING:
    from apiserver.cluster.client import ClusterClient
    from apiserver.meta.selectors import Requirement
    from apiserver.request import RequestInfo, User

_log = logging.getLogger(__name__)

_PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_CAPACITY = 8192
_CACHED_CHARACTERS = 10_000
"""What is longer is not remembered: a client chooses it, and could fill our memory with it."""
_WITH_SELECTORS = frozenset(("list", "watch", "deletecollection"))
_OPERATORS = {"=": "In", "==": "In", "in": "In", "!=": "NotIn", "notin": "NotIn", "exists": "Exists", "!": "DoesNotExist"}


class SubjectAccessReviews:
    """Authorizes by asking kube-apiserver. The last authorizer."""

    def __init__(
        self,
        client: ClusterClient,
        *,
        authorized_seconds: float = 10.0,
        unauthorized_seconds: float = 10.0,
        record: Record | None = None,
    ) -> None:
        """How long a yes and a no count; 0: for the requests alone that wait for it."""
        self._client = client
        self._record = record
        self._authorized_seconds = authorized_seconds
        self._unauthorized_seconds = unauthorized_seconds
        self._cache: ReviewCache[tuple[object, ...], Decision] = ReviewCache(_CAPACITY)

    async def authorize(self, user: User, info: RequestInfo) -> Decision:
        """Return kube-apiserver's decision, with its reason.

        Raises:
            APIError: 500, there is none.
        """
        if user is ANONYMOUS:
            # Anonymous requests are switched off: what `system:unauthenticated` may do is of no account.
            return NO_OPINION
        key = _key(user, info)
        decision = self._cache.peek(key)
        if decision is not None:
            return decision
        try:
            return await self._cache.find(key, lambda: self._ask(user, info))
        except ClusterError as error:
            _log.error("cannot find out what %s may do: %s", ascii(user.name), ascii(str(error))[1:-1])
            raise errors.internal_error("cannot find out whether this is allowed: kube-apiserver does not answer a review") from error

    async def _ask(self, user: User, info: RequestInfo) -> tuple[Decision, float]:
        value = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": review_spec(user, info)}
        status = await review(self._client, _PATH, value, record=self._record)
        reason = str(status.get("reason") or "")
        if status.get("denied"):
            decision = Decision("deny", reason)
        else:
            decision = Decision("allow" if status.get("allowed") is True else "no opinion", reason)
        seconds = self._authorized_seconds if status.get("allowed") is True else self._unauthorized_seconds
        return decision, seconds if _is_small(info) else 0.0


def _key(user: User, info: RequestInfo) -> tuple[object, ...]:
    extra = tuple(sorted(user.extra.items())) if user.extra else ()
    if not info.is_resource_request:
        return user.name, user.uid, user.groups, extra, info.verb, info.path
    selectors: tuple[object, ...] = ()
    if _may_have_selectors(info):
        selectors = _first(info, "fieldSelector"), _first(info, "labelSelector"), _verb_in_path(info)
    address = (info.verb, info.group, info.version, info.resource, info.subresource, info.namespace, info.name)
    return user.name, user.uid, user.groups, extra, address, selectors


def _is_small(info: RequestInfo) -> bool:
    selectors = len(_first(info, "fieldSelector")) + len(_first(info, "labelSelector"))
    return len(info.path) + len(info.name) + selectors < _CACHED_CHARACTERS


def review_spec(user: User, info: RequestInfo) -> dict[str, Any]:
    """The `spec` of the review of a request."""
    spec: dict[str, Any] = {"user": user.name}
    spec |= {"uid": user.uid} if user.uid else {}
    spec |= {"groups": list(user.groups)} if user.groups else {}
    spec |= {"extra": {key: list(values) for key, values in user.extra.items()}} if user.extra else {}
    if not info.is_resource_request:
        return {**spec, "nonResourceAttributes": {"path": info.path, "verb": info.verb}}
    attributes: dict[str, Any] = {
        "namespace": info.namespace,
        "verb": info.verb,
        "group": info.group,
        "version": info.version,
        "resource": info.resource,
        "subresource": info.subresource,
        "name": info.name,
    }
    attributes = {name: value for name, value in attributes.items() if value}
    if _may_have_selectors(info) and not _verb_in_path(info):
        fields, labels = _field_requirements(_first(info, "fieldSelector")), _label_requirements(_first(info, "labelSelector"))
        attributes |= {"fieldSelector": {"requirements": fields}} if fields else {}
        attributes |= {"labelSelector": {"requirements": labels}} if labels else {}
    return {**spec, "resourceAttributes": attributes}


def _may_have_selectors(info: RequestInfo) -> bool:
    # The last part of the verb is what is done, also in `impersonate-on:user-info:list`.
    return bool(info.query) and info.verb.rpartition(":")[2] in _WITH_SELECTORS


def _first(info: RequestInfo, parameter: str) -> str:
    return info.query[parameter][0] if parameter in info.query else ""


def _verb_in_path(info: RequestInfo) -> bool:
    """Whether the address is of the old form `/apis/<group>/<version>/watch/…`, where selectors do not narrow what is asked."""
    return info.path.split("/", 5)[3 + bool(info.group)] == "watch"


def _field_requirements(text: str) -> list[dict[str, Any]]:
    # A selector that cannot be read narrows nothing here, and is a 400 later.
    try:
        terms = parse_field_selector(text).terms if text else ()
    except SelectorError:
        return []
    return [{"key": term.field, "operator": "NotIn" if term.negated else "In", "values": [term.value]} for term in terms]


def _label_requirements(text: str) -> list[dict[str, Any]]:
    try:
        terms = parse_label_selector(text).requirements if text else ()
    except SelectorError:
        return []
    # An unknown operator is left out: then more is asked for than the request needs, never less.
    return [_label_requirement(term) for term in terms if term.operator in _OPERATORS]


def _label_requirement(term: Requirement) -> dict[str, Any]:
    requirement: dict[str, Any] = {"key": term.key, "operator": _OPERATORS[term.operator]}
    return {**requirement, "values": list(term.values)} if term.values else requirement
