"""The options of requests, from their query (or, for a deletion, their body), checked as Kubernetes checks them.

A query is a mapping of names to lists of values, in order; the first value counts, except for dryRun. What cannot be read is a 400, what
breaks a rule a 422 about `<Kind>Options.meta.k8s.io`.
Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/apis/meta/v1/validation/validation.go and internalversion/validation/
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from apiserver.meta import errors
from apiserver.meta.field_errors import FieldError, forbidden, invalid, not_supported, required, to_causes
from apiserver.meta.field_selectors import EVERY_FIELD, FieldSelector, parse_field_selector
from apiserver.meta.selector_text import parse_label_selector
from apiserver.meta.selectors import EVERYTHING, LabelSelector, SelectorError
from apiserver.meta.validation import FIELD_MANAGER_LIMIT_BYTES, field_manager_errors
from openapi import gotext

Query = Mapping[str, Sequence[str]]

_INTEGER: Final = re.compile("[+-]?[0-9]{1,40}")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """What a list, a watch or the deletion of a collection is to find."""

    label_selector: LabelSelector = EVERYTHING
    field_selector: FieldSelector = EVERY_FIELD
    """Whether its fields can be selected by is for `FieldSelector.check` to say."""
    watch: bool = False
    allow_watch_bookmarks: bool = False
    resource_version: str = ""
    resource_version_match: str = ""
    """Empty, `Exact` or `NotOlderThan`."""
    timeout_seconds: int | None = None
    limit: int = 0
    """0 or less: no limit."""
    continue_: str = ""
    send_initial_events: bool | None = None
    """As given. A watch without it that begins at resourceVersion "" or "0" gets the initial events too, as it always has."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a create or an update is done."""

    dry_run: bool = False
    field_manager: str = ""
    """Empty: not given; see `field_manager_of`."""
    field_validation: str = "Warn"
    """`Ignore`, `Warn` or `Strict`."""


CreateOptions = WriteOptions
UpdateOptions = WriteOptions


@dataclass(frozen=True, slots=True)
class PatchOptions(WriteOptions):
    """How a patch is done."""

    force: bool | None = None
    """Whether an apply takes over fields that others own."""


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How a deletion is done, and which object it is meant for."""

    dry_run: bool = False
    grace_period_seconds: int | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    """`Foreground`, `Background` or `Orphan`."""
    uid: str | None = None
    """Precondition: only this incarnation."""
    resource_version: str | None = None
    """Precondition: only this version."""
    ignore_store_read_error: bool = False
    """`ignoreStoreReadErrorWithClusterBreakingPotential`."""


def list_options(query: Query) -> ListOptions:
    """Read ListOptions.

    Raises:
        APIError: 400 for what cannot be read, 422 for what does not go together.
    """
    if not query:
        return ListOptions()
    timeout_seconds, limit = _integer(query, "timeoutSeconds"), _integer(query, "limit")
    try:
        labels = parse_label_selector(_text(query, "labelSelector"))
        fields = parse_field_selector(_text(query, "fieldSelector"))
    except SelectorError as error:
        raise errors.bad_request(str(error)) from error
    options = ListOptions(
        label_selector=labels,
        field_selector=fields,
        watch=bool(_boolean(query, "watch")),
        allow_watch_bookmarks=bool(_boolean(query, "allowWatchBookmarks")),
        resource_version=_text(query, "resourceVersion"),
        resource_version_match=_text(query, "resourceVersionMatch"),
        timeout_seconds=timeout_seconds,
        limit=limit or 0,
        continue_=_text(query, "continue"),
        send_initial_events=_boolean(query, "sendInitialEvents"),
    )
    _refuse("ListOptions", _watch_errors(options) if options.watch else _list_errors(options))
    return options


def _list_errors(options: ListOptions) -> list[FieldError]:
    found: list[FieldError] = []
    name, match = "resourceVersionMatch", options.resource_version_match
    if match:
        if not options.resource_version:
            found.append(forbidden(name, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.continue_:
            found.append(forbidden(name, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            found.append(not_supported(name, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and options.resource_version == "0":
            found.append(forbidden(name, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial_events is not None:
        found.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return found


def _watch_errors(options: ListOptions) -> list[FieldError]:
    found: list[FieldError] = []
    name, match = "resourceVersionMatch", options.resource_version_match
    if options.send_initial_events is not None and match != "NotOlderThan":
        found.append(forbidden(name, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match:
        if options.send_initial_events is None:
            found.append(forbidden(name, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
        if match != "NotOlderThan":
            found.append(not_supported(name, match, ("NotOlderThan",)))
    # Without any of these options upstream makes a watch from the start one that begins with initial events, and match is set by itself.
    from_start = not match and options.send_initial_events is None and options.resource_version in ("", "0")
    if options.continue_ and (match or from_start):
        found.append(forbidden(name, "resourceVersionMatch is forbidden when continue is provided"))
    return found


def create_options(query: Query) -> CreateOptions:
    """Read CreateOptions. Raises APIError 422."""
    return _write_options(query, "CreateOptions")


def update_options(query: Query) -> UpdateOptions:
    """Read UpdateOptions. Raises APIError 422."""
    return _write_options(query, "UpdateOptions")


def _write_options(query: Query, kind: str) -> WriteOptions:
    if not query:
        return WriteOptions()
    _refuse(kind, _write_errors(query))
    return WriteOptions(bool(query.get("dryRun")), _text(query, "fieldManager"), _text(query, "fieldValidation") or "Warn")


def patch_options(query: Query, *, apply: bool) -> PatchOptions:
    """Read PatchOptions; `apply` says whether the patch is a server-side apply. Raises APIError 422."""
    force = _boolean(query, "force")
    found: list[FieldError] = []
    if apply and not _text(query, "fieldManager"):
        found.append(required("fieldManager", "is required for apply patch"))
    if not apply and force is not None:
        found.append(forbidden("force", "may not be specified for non-apply patch"))
    _refuse("PatchOptions", [*found, *_write_errors(query)])
    validation = _text(query, "fieldValidation") or "Warn"
    return PatchOptions(bool(query.get("dryRun")), _text(query, "fieldManager"), validation, force)


def _write_errors(query: Query) -> list[FieldError]:
    found = field_manager_errors(_text(query, "fieldManager"))
    found.extend(_dry_run_errors(query.get("dryRun", ())))
    validation = _text(query, "fieldValidation")
    if validation not in ("", "Ignore", "Strict", "Warn"):
        found.append(not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    return found


def _dry_run_errors(values: Sequence[str]) -> list[FieldError]:
    return [not_supported("dryRun", list(values), ("All",))] if any(value != "All" for value in values) else []


def delete_options(query: Query) -> DeleteOptions:
    """Read DeleteOptions from a query: for a request without a body.

    Raises:
        APIError: 400 for what cannot be read, 422 for what does not go together.
    """
    if not query:
        return DeleteOptions()
    options = DeleteOptions(
        dry_run=bool(query.get("dryRun")),
        grace_period_seconds=_integer(query, "gracePeriodSeconds"),
        orphan_dependents=_boolean(query, "orphanDependents"),
        propagation_policy=_text(query, "propagationPolicy") if "propagationPolicy" in query else None,
        uid=_text(query, "uid") or None,
        resource_version=_text(query, "resourceVersion") or None,
        ignore_store_read_error=bool(_boolean(query, "ignoreStoreReadErrorWithClusterBreakingPotential")),
    )
    return _checked_deletion(options, query.get("dryRun", ()))


_GO_TYPES: Final = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def delete_options_from_body(body: Any) -> DeleteOptions:
    """Read DeleteOptions from a decoded body; its query then does not count. apiVersion is that of metav1 or of any group.

    Raises:
        APIError: 400 for what is no DeleteOptions, 422 for what does not go together.
    """
    if not isinstance(body, dict):
        got = _GO_TYPES.get(type(body), "null")
        raise errors.bad_request(f"couldn't get version/kind; json parse error: json: cannot unmarshal {got} into Go value of type struct")
    for name in ("apiVersion", "kind"):
        if not isinstance(body.get(name, ""), str):
            got = _GO_TYPES.get(type(body[name]), "null")
            raise errors.bad_request(
                f"couldn't get version/kind; json parse error: json: cannot unmarshal {got} into Go struct field .{name} of type string"
            )
    if body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise errors.bad_request(
            f"no kind {gotext.quote(body['kind'])} is registered for version {gotext.quote(body.get('apiVersion', ''))}"
        )
    preconditions = _member(body, "preconditions", dict, "v1.Preconditions") or {}
    dry_run = ["" if value is None else value for value in _member(body, "dryRun", list, "[]string") or ()]
    for value in dry_run:
        if not isinstance(value, str):
            raise _wrong_type(value, "DeleteOptions", "dryRun", "string")
    options = DeleteOptions(
        dry_run=bool(dry_run),
        grace_period_seconds=_member(body, "gracePeriodSeconds", int, "int64"),
        orphan_dependents=_member(body, "orphanDependents", bool, "bool"),
        propagation_policy=_member(body, "propagationPolicy", str, "v1.DeletionPropagation"),
        uid=_member(preconditions, "uid", str, "types.UID", struct="Preconditions", prefix="preconditions."),
        resource_version=_member(preconditions, "resourceVersion", str, "string", struct="Preconditions", prefix="preconditions."),
        ignore_store_read_error=bool(_member(body, "ignoreStoreReadErrorWithClusterBreakingPotential", bool, "bool")),
    )
    return _checked_deletion(options, dry_run)


def _member(body: dict[str, Any], name: str, type_: type, go_type: str, *, struct: str = "DeleteOptions", prefix: str = "") -> Any:
    value = body.get(name)
    if value is not None and type(value) is not type_:
        raise _wrong_type(value, struct, prefix + name, go_type)
    return value


def _wrong_type(value: Any, struct: str, path: str, go_type: str) -> errors.APIError:
    got = _GO_TYPES.get(type(value), "null")
    if got == "number" and "int" in go_type:
        whole = isinstance(value, float) and abs(value) >= 2**63 and value.is_integer()  # such an integer was read as a float
        got = f"number {int(value) if whole else gotext.number(value)}"
    return errors.bad_request(f"json: cannot unmarshal {got} into Go struct field {struct}.{path} of type {go_type}")


def _checked_deletion(options: DeleteOptions, dry_run: Sequence[str]) -> DeleteOptions:
    found: list[FieldError] = []
    policy = options.propagation_policy
    if policy is not None and options.orphan_dependents is not None:
        found.append(invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set"))
    if policy not in (None, "Foreground", "Background", "Orphan"):
        found.append(not_supported("propagationPolicy", policy, ("Foreground", "Background", "Orphan", "nil")))
    found.extend(_dry_run_errors(dry_run))
    if options.ignore_store_read_error:
        for name, given in (
            ("propagationPolicy", policy is not None),
            ("orphanDependents", options.orphan_dependents is not None),
            ("gracePeriodSeconds", options.grace_period_seconds is not None),
            ("preconditions", options.uid is not None or options.resource_version is not None),
        ):
            if given:
                text = f"cannot be set together with .{name}"
                found.append(invalid("ignoreStoreReadErrorWithClusterBreakingPotential", True, text))
    _refuse("DeleteOptions", found)
    return options


def check_collection(options: DeleteOptions) -> None:
    """See that these options can be those of a whole collection.

    Raises:
        APIError: 422.
    """
    if options.ignore_store_read_error:
        text = "is not allowed with DELETECOLLECTION, try again after removing the option"
        _refuse("DeleteOptions", [invalid("ignoreStoreReadErrorWithClusterBreakingPotential", True, text)])


def _refuse(kind: str, found: Sequence[FieldError]) -> None:
    if found:
        raise errors.invalid("meta.k8s.io", kind, "", to_causes(found))


def _text(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


def _boolean(query: Query, name: str) -> bool | None:
    """None if it is not there; "0" and "false" are false; everything else is true, and so is nothing."""
    values = query.get(name)
    return None if not values else values[0] != "0" and values[0].lower() != "false"


def _integer(query: Query, name: str) -> int | None:
    values = query.get(name)
    if not values:
        return None
    text = values[0]
    problem = "" if _INTEGER.fullmatch(text) else "invalid syntax"
    if not problem and not -(2**63) <= int(text) < 2**63:
        problem = "value out of range"
    if problem:
        raise errors.bad_request(f"strconv.ParseInt: parsing {gotext.quote(text)}: {problem}")
    return int(text)


def field_manager_of(options: WriteOptions, user_agent: str) -> str:
    """The name under which a write owns fields: the one given, else what the user agent begins with."""
    if options.field_manager:
        return options.field_manager
    name = "".join(filter(str.isprintable, user_agent.partition("/")[0]))
    return name.encode()[:FIELD_MANAGER_LIMIT_BYTES].decode("utf-8", "ignore")
