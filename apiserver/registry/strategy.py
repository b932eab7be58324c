"""The rules of a custom resource: what the server sets, keeps and drops in an object before it is stored, and when it is valid.

Works on decoded JSON values, in place; knows neither HTTP nor the store. The order of the steps, and with it the order of the causes in a
422, is kube-apiserver's.
Source: https://github.com/kubernetes/apiextensions-apiserver/blob/v0.37.2/pkg/registry/customresource/strategy.go and
https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/registry/rest/update.go
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from apiserver.meta import errors
from apiserver.meta.errors import APIError, Cause
from apiserver.meta.field_errors import to_cause, to_causes
from apiserver.meta.names import generate_name
from apiserver.meta.resource import Resource
from apiserver.meta.validation import finalizer_warnings, object_meta_errors, object_meta_update_errors, path_segment_errors
from apiserver.registry import scaling
from openapi import normalize, validate
from openapi.accept import Acceptor, has_rules_of_change
from openapi.gotext import quote
from openapi.object_meta import normalize_stored_metadata
from openapi.structural import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from apiserver.meta.resource import ResourceKind, ScalePaths
    from apiserver.registry.stored_object import ObjectCodec, StoredObject
    from openapi.structural import Schema


class Strategy:
    """What holds for every object of one kind."""

    def __init__(self, kind: ResourceKind, codec: ObjectCodec) -> None:
        self._kind = kind
        self._codec = codec
        self.normalize = normalize.compile(kind.schema)
        """Prunes, drops nulls, fills in defaults and reads metadata, in place, as every decoded body and every patched object needs it."""
        content = _content_schema(kind.schema)
        self._validate_content = validate.compile(content)
        self._accept = Acceptor(kind.model, content)
        self._has_rules_of_change = has_rules_of_change(content)
        self._validate_status = validate.compile(kind.schema.properties["status"]) if kind.has_status else None
        own = kind.model
        self._has_own_rules = own.validate_object is not Resource.validate_object or own.warn is not Resource.warn

    def prepare(self) -> None:
        """Make ready what the first write would else make, which takes tens of milliseconds. From any thread."""
        self._accept.prepare()

    def check_namespace(self, value: dict[str, Any], namespace: str) -> None:
        """Put the request's namespace into an object that has none.

        Raises:
            APIError: 400, the object says another one.
        """
        metadata = value.setdefault("metadata", {})
        given = metadata.get("namespace", "")
        if not self._kind.namespaced:
            metadata.pop("namespace", None)
        elif not given:
            metadata["namespace"] = namespace
        elif given != namespace:
            raise errors.bad_request("the namespace of the provided object does not match the namespace sent on the request")

    def check_identity(self, value: dict[str, Any], namespace: str, name: str) -> None:
        """The same, and see that the object bears the name of the address.

        Raises:
            APIError: 400, namespace or name differ.
        """
        given = (value.get("metadata") or {}).get("name", "")
        self.check_namespace(value, namespace)
        if not given:
            raise errors.bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
        if given != name:
            raise errors.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")

    def deduplicate_owners(self, value: dict[str, Any], warnings: list[str], *, after_admission: bool) -> None:
        """Drop owner references that are there twice, and say so."""
        references = value["metadata"].get("ownerReferences")
        if not references or len(references) == 1:
            return
        distinct: list[Any] = []
        duplicates: list[str] = []
        for reference in references:
            if reference in distinct:
                duplicates.append(reference.get("uid", ""))
            else:
                distinct.append(reference)
        if duplicates:
            value["metadata"]["ownerReferences"] = distinct
            when = " after mutating admission happens" if after_admission else ""
            warnings.append(
                f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject "
                f"such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {', '.join(duplicates)}"
            )

    def read(self, current: StoredObject) -> dict[str, Any]:
        """The value of a stored object, normalized by the schema of today, whatever held when it was written, and whoever wrote it."""
        value = current.object()
        if current.is_normal:
            return value
        try:
            self.normalize(value)
        except normalize.MetadataTypeError:
            value = current.object()
            normalize_stored_metadata(value)
            self.normalize(value)
        return value

    # Before an object is stored

    def clear_system_fields(self, metadata: dict[str, Any]) -> None:
        """Drop what a new object cannot say about itself."""
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            metadata.pop(name, None)

    def begin_create(self, value: dict[str, Any], now: str) -> None:
        """Set what the server decides about a new object: its identity and its first moment."""
        metadata = value["metadata"]
        self.clear_system_fields(metadata)
        metadata["creationTimestamp"] = now
        metadata["uid"] = str(uuid.uuid4())
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = generate_name(metadata["generateName"])

    def prepare_for_create(self, value: dict[str, Any]) -> None:
        """Drop a status (which is written through its subresource only) and begin the generations."""
        if self._kind.has_status:
            value.pop("status", None)
        value["metadata"]["generation"] = 1

    def prepare_for_update(self, value: dict[str, Any], old: dict[str, Any], current: StoredObject) -> bytes:
        """Keep what an update may not change, and count the generation; return the encoded content."""
        metadata, old_metadata = value["metadata"], old["metadata"]
        if self._kind.has_status:
            if "status" in old:
                value["status"] = old["status"]
            else:
                value.pop("status", None)
        content = self._codec.encode_content(value)
        generation = old_metadata.get("generation", 0) + (content != current.content)
        _restore(metadata, "generation", generation or None)
        if not metadata.get("uid"):
            metadata["uid"] = current.uid
        for name in ("creationTimestamp", "deletionTimestamp"):
            if name in old_metadata:
                metadata[name] = old_metadata[name]
        if "deletionGracePeriodSeconds" in old_metadata:
            metadata.setdefault("deletionGracePeriodSeconds", old_metadata["deletionGracePeriodSeconds"])
        metadata.pop("selfLink", None)
        return content

    def prepare_for_status_update(self, value: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
        """The old object with the new one's status, and with its owners."""
        merged = {key: member for key, member in old.items() if key != "status"}
        if "status" in value:
            merged["status"] = value["status"]
        merged["metadata"] = dict(old["metadata"])
        _restore(merged["metadata"], "managedFields", value["metadata"].get("managedFields"))
        return merged

    # Validation

    def validate_create(self, value: dict[str, Any], warnings: list[str]) -> None:
        """Check a complete new object, and collect what its author should know.

        Raises:
            APIError: 422 with a cause for each field that is wrong.
        """
        causes = self._type_causes(value)
        instance = None
        if not causes:
            instance = self._accept(value)
            causes = [
                *to_causes(object_meta_errors(value["metadata"], namespaced=self._kind.namespaced)),
                *(map(to_cause, self._validate_content(value)) if instance is None else ()),
                *self._scale_causes(value, scaling.spec_causes, scaling.status_causes),
            ]
        told: list[str] = []
        if self._has_own_rules and not causes:
            causes, told = self._judge(instance, value, None)
        if causes:
            raise self._invalid(value, causes)
        _warn_of_finalizers(value, None, warnings)
        warnings.extend(told)

    def validate_update(self, value: dict[str, Any], old: dict[str, Any], warnings: list[str], *, content_changed: bool) -> None:
        """Check what an update leads to. Content that stays as it was is not judged anew: the object must stay writable.

        A main update cannot change the status, so that changed content is a changed spec.

        Raises:
            APIError: 422 with a cause for each field that is wrong.
        """
        causes = self._update_causes(value, old)
        type_causes = self._type_causes(value)
        causes += type_causes
        instance = None
        if content_changed and not type_causes:
            instance = self._accept(value)
            if instance is None or self._has_rules_of_change:
                causes += map(to_cause, self._validate_content(value, old))
            causes += self._scale_causes(value, scaling.spec_causes, scaling.status_causes)
        told: list[str] = []
        if content_changed and self._has_own_rules and not causes:
            causes, told = self._judge(instance, value, old)
        if causes:
            raise self._invalid(value, causes)
        _warn_of_finalizers(value, old, warnings)
        warnings.extend(told)

    def validate_status_update(self, value: dict[str, Any], old: dict[str, Any]) -> None:
        """Check the status that an object is to get; nothing else has changed.

        Raises:
            APIError: 422 with a cause for each field that is wrong.
        """
        causes: list[Cause] = []
        if "status" in value and self._validate_status is not None:
            causes += map(to_cause, self._validate_status(value["status"], old.get("status", ABSENT), at="status"))
        causes += self._scale_causes(value, scaling.status_causes)
        if causes:
            raise self._invalid(value, causes)

    def _type_causes(self, value: dict[str, Any]) -> list[Cause]:
        causes: list[Cause] = []
        for name, wanted in (("kind", self._kind.kind), ("apiVersion", self._kind.api_version)):
            if value.get(name) != wanted:
                causes.append(Cause("FieldValueInvalid", f"Invalid value: {quote(value.get(name, ''))}: must be {wanted}", name))
        return causes

    def _update_causes(self, value: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
        metadata, old_metadata = value["metadata"], old["metadata"]
        if metadata == old_metadata:
            return []
        common = object_meta_errors(metadata, namespaced=self._kind.namespaced, name_errors=path_segment_errors)
        changes = object_meta_update_errors(metadata, old_metadata, is_good=not common)
        # The generic layer of kube-apiserver and the one for custom resources both look at the changes, so these are told twice.
        return to_causes([*common, *changes, *changes])

    def _scale_causes(self, value: dict[str, Any], *rules: Callable[[Mapping[str, Any], ScalePaths], Iterator[Cause]]) -> list[Cause]:
        paths = self._kind.scale
        return [cause for rule in rules for cause in rule(value, paths)] if paths is not None else []

    def _judge(self, instance: Resource | None, value: dict[str, Any], old: dict[str, Any] | None) -> tuple[list[Cause], list[str]]:
        """What the kind's own rules find wrong, and what they warn of; `instance` is the value's, if it has been made already.

        They are not asked about an object that its schema does not allow any more (it became stricter, and the update leaves what is
        wrong now as it was), and do not see an old object of that sort.
        """
        model = self._kind.model
        if instance is None:
            try:
                instance = model.model_validate(value)
            except ValidationError:
                return [], []
        old_instance = None if old is None else cast(Resource, _OldObject(model, old))
        try:
            return to_causes(instance.validate_object(old_instance)), list(instance.warn(old_instance))
        except ValidationError:
            return to_causes(instance.validate_object(None)), list(instance.warn(None))

    def _invalid(self, value: dict[str, Any], causes: list[Cause]) -> APIError:
        group = value.get("apiVersion", "").rpartition("/")[0]
        return errors.invalid(group, value.get("kind", ""), value["metadata"].get("name", ""), causes)


class _OldObject:
    """Stands for the instance of what is replaced until a rule looks at it: to make it costs as much as all other checks together.

    Raises ValidationError on the first look when the schema does not allow the old object any more.
    """

    __slots__ = ("_made", "_model", "_value")

    def __init__(self, model: type[Resource], value: dict[str, Any]) -> None:
        self._model = model
        self._value = value
        self._made: Resource | None = None

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            self._made = self._model.model_validate(self._value)
        return getattr(self._made, name)


def _warn_of_finalizers(value: dict[str, Any], old: dict[str, Any] | None, warnings: list[str]) -> None:
    finalizers = value["metadata"].get("finalizers")
    if finalizers:
        known = old["metadata"].get("finalizers", ()) if old is not None else ()
        for finalizer in sorted(set(finalizers).difference(known)):
            warnings.extend(finalizer_warnings(finalizer))


def _restore(metadata: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        metadata.pop(name, None)
    else:
        metadata[name] = value


def _content_schema(schema: Schema) -> Schema:
    """The schema of what stands beside type and metadata, which have rules of their own."""
    own = {name: member for name, member in schema.properties.items() if name not in ("apiVersion", "kind", "metadata")}
    return replace(schema, properties=own, required=tuple(name for name in schema.required if name in own))
