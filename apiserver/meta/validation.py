"""The rules of names, labels and metadata that hold for every object. The texts are Kubernetes', to the letter.

Works on metadata that has been read already (its types are right, see `openapi.object_meta`). Missing members are empty, as in Go.
Source: https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/api/validation/objectmeta.go and pkg/api/validate/content/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from apiserver.meta.field_errors import FieldError, Struct, forbidden, invalid, not_supported, required, too_long
from openapi import gotext

Metadata = Mapping[str, Any]
NameCheck = Callable[[str], list[str]]

ANNOTATIONS_LIMIT_BYTES: Final = 256 * 1024
FIELD_MANAGER_LIMIT_BYTES: Final = 128
_SUBRESOURCE_LIMIT_BYTES: Final = 256
_MOST_ERRORS: Final = 100
"""What is told of one map or list; a body of 3 MiB could otherwise ask for an answer of 100."""
_IMMUTABLE: Final = "field is immutable"

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_KEY_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_KEY_RULE: Final = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_http_path = re.compile(_HTTP_PATH).fullmatch
_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_key_name = re.compile(_KEY_NAME).fullmatch
_COMMON_NAME: Final = "[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_COMMON_PREFIX: Final = r"(?=[-a-z0-9.]{1,253}/)[a-z0-9]+(?:[-.][a-z0-9]+)*/"
_is_common_value = re.compile(_COMMON_NAME).fullmatch
_is_common_label = re.compile("[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?").fullmatch
_is_common_manager = re.compile(f"[ -~]{{0,{FIELD_MANAGER_LIMIT_BYTES}}}").fullmatch
_is_common_key = re.compile(f"(?:{_COMMON_PREFIX})?{_COMMON_NAME}").fullmatch


def _regex_error(rule: str, pattern: str, *examples: str) -> str:
    given = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} ({f'e.g. {given}' if given else ''}regex used for validation is '{pattern}')"


_LABEL_ERROR: Final = _regex_error(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_ERROR: Final = _regex_error(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_KEY_ERROR: Final = _regex_error(_KEY_RULE, _KEY_NAME, "MyName", "my.name", "123-abc")
_HTTP_PATH_ERROR: Final = _regex_error("Invalid path", _HTTP_PATH)
_VALUE_ERROR: Final = _regex_error(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character",
    f"({_KEY_NAME})?",
    "MyValue",
    "my_value",
    "12345",
)


def _size(text: str) -> int:
    """Bytes, which is what Kubernetes counts."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _too_long(text: str, limit: int, unit: str) -> list[str]:
    return [f"must be no more than {limit} {unit}"] if _size(text) > limit else []


def dns1123_label_errors(text: str) -> list[str]:
    """What is wrong with a name that must be a DNS label, such as a namespace's."""
    problems = _too_long(text, 63, "characters")
    if _is_label(text):
        return problems
    return [*problems, "must not contain dots" if _is_subdomain(text) else _LABEL_ERROR]


def dns1123_subdomain_errors(text: str) -> list[str]:
    """What is wrong with a name that must be a DNS subdomain, as a custom resource's must."""
    problems = _too_long(text, 253, "characters")
    return problems if _is_subdomain(text) else [*problems, _SUBDOMAIN_ERROR]


def path_segment_errors(name: str) -> list[str]:
    """What keeps a name from being one segment of an address: `.`, `..`, `/` and `%`."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]


def domain_prefixed_path_errors(text: str, path: str) -> list[FieldError]:
    """What is wrong with a text that must be a DNS subdomain, a slash and the path of an address."""
    host, _, rest = text.partition("/")
    if not host or not rest:
        return [invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")') if text else required(path)]
    found = [invalid(path, host, problem) for problem in dns1123_subdomain_errors(host)]
    return found if _is_http_path(rest) else [*found, invalid(path, rest, _HTTP_PATH_ERROR)]


def label_key_errors(key: str) -> list[str]:
    """What is wrong with the key of a label or annotation, or the name of a finalizer."""
    if _is_common_key(key):
        return []
    parts = key.split("/")
    if len(parts) > 2:
        return [f"a valid label key {_KEY_ERROR} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            long = _too_long(parts[0], 253, "bytes")
            problems.extend(f"prefix part {text}" for text in ([*long, _SUBDOMAIN_ERROR] if not _is_subdomain(parts[0]) else long))
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif _size(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _is_key_name(name):
        problems.append(f"name part {_KEY_ERROR}")
    return problems


def label_value_errors(value: str) -> list[str]:
    """What is wrong with the value of a label."""
    if not value or _is_common_value(value):
        return []
    problems = _too_long(value, 63, "bytes")
    return problems if _is_key_name(value) else [*problems, _VALUE_ERROR]


def object_meta_errors(metadata: Metadata, *, namespaced: bool, name_errors: NameCheck = dns1123_subdomain_errors) -> list[FieldError]:
    """What is wrong with the metadata of a new object, which has its namespace and its generated name already."""
    found: list[FieldError] = []
    name, base = metadata.get("name", ""), metadata.get("generateName", "")
    if base:
        # A prefix may end with a dash, the name made of it will not.
        masked = f"{base[:-2]}a" if len(base) > 1 and base.endswith("-") else base
        found.extend(invalid("metadata.generateName", base, text) for text in name_errors(masked))
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    elif not _is_common_label(name):  # else it is a subdomain and a segment of an address as well
        found += [invalid("metadata.name", name, text) for text in name_errors(name)]
    namespace = metadata.get("namespace", "")
    if not namespaced:
        if namespace:
            found.append(forbidden("metadata.namespace", "not allowed on this type"))
    elif not namespace:
        found.append(required("metadata.namespace"))
    elif not _is_common_label(namespace):
        found += [invalid("metadata.namespace", namespace, text) for text in dns1123_label_errors(namespace)]
    if metadata.get("generation", 0) < 0:
        found.append(invalid("metadata.generation", metadata["generation"], "must be greater than or equal to 0"))
    found.extend(_common_errors(metadata, new=True))
    return found


def object_meta_update_errors(metadata: Metadata, old: Metadata, *, is_good: bool = False) -> list[FieldError]:
    """What is wrong with the change from `old` to `metadata`; `is_good` says that `object_meta_errors` has found nothing in the latter."""
    found: list[FieldError] = []
    if old.get("deletionTimestamp"):
        extra = sorted(set(metadata.get("finalizers", ())) - set(old.get("finalizers", ())))
        if extra:
            names = ", ".join(map(gotext.quote, extra))
            text = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{names}}}"
            found.append(forbidden("metadata.finalizers", text))
    if not metadata.get("resourceVersion"):
        found.append(invalid("metadata.resourceVersion", "", "must be specified for an update"))
    generation = metadata.get("generation", 0)
    if generation < 0:
        found.append(invalid("metadata.generation", generation, "must be greater than or equal to 0"))
    if generation < old.get("generation", 0):
        found.append(invalid("metadata.generation", generation, "must not be decremented"))
    for name, absent in (
        ("name", ""),
        ("namespace", ""),
        ("uid", ""),
        ("creationTimestamp", None),
        ("deletionTimestamp", None),
        ("deletionGracePeriodSeconds", None),
    ):
        value = metadata.get(name, absent)
        if value != old.get(name, absent):
            found.append(invalid(f"metadata.{name}", value, _IMMUTABLE))
    if not is_good:
        found.extend(_common_errors(metadata, new=False))
    return found


def _common_errors(metadata: Metadata, *, new: bool) -> list[FieldError]:
    found: list[FieldError] = []
    if labels := metadata.get("labels"):
        found.extend(label_errors(labels, "metadata.labels"))
    if annotations := metadata.get("annotations"):
        found.extend(_annotation_errors(annotations, "metadata.annotations"))
    if owners := metadata.get("ownerReferences"):
        found.extend(_owner_errors(owners, "metadata.ownerReferences"))
    if new and (finalizers := metadata.get("finalizers")):
        found.extend(_finalizer_errors(finalizers, "metadata.finalizers"))
    if managed := metadata.get("managedFields"):
        found.extend(_managed_fields_errors(managed, "metadata.managedFields"))
    return found


def label_errors(labels: Mapping[str, str], path: str) -> list[FieldError]:
    """What is wrong with labels; all errors are told at the path of the map."""
    if all(map(_is_common_key, labels)) and all(map(_is_common_value, labels.values())):
        return []
    return list(islice(_each_label_error(labels, path), _MOST_ERRORS))


def _each_label_error(labels: Mapping[str, str], path: str) -> Iterator[FieldError]:
    for key, value in labels.items():
        for text in label_key_errors(key):
            yield invalid(path, key, text)
        for text in label_value_errors(value):
            yield invalid(path, value, text)


def _annotation_errors(annotations: Mapping[str, str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if not all(map(_is_common_key, annotations)):
        wrong = (invalid(path, key, text) for key in annotations for text in label_key_errors(key.lower()))
        found.extend(islice(wrong, _MOST_ERRORS))
    characters = sum(map(len, annotations)) + sum(map(len, annotations.values()))
    if characters * 4 > ANNOTATIONS_LIMIT_BYTES and sum(map(_size, (*annotations, *annotations.values()))) > ANNOTATIONS_LIMIT_BYTES:
        found.append(too_long(path, "", ANNOTATIONS_LIMIT_BYTES))
    return found


def _owner_errors(owners: Sequence[Mapping[str, Any]], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    controller = ""
    for index, owner in enumerate(owners):
        if len(found) >= _MOST_ERRORS:
            break
        at = f"{path}[{index}]"
        api_version, kind, name = owner["apiVersion"], owner["kind"], owner["name"]
        if not api_version:
            found.append(required(f"{at}.apiVersion", "must not be empty"))
        elif api_version.count("/") > 1 or api_version.endswith("/"):
            found.append(invalid(f"{at}.apiVersion", api_version, "must be <group>/<version> or <version>"))
        found.extend(required(f"{at}.{member}", "must not be empty") for member in ("kind", "name", "uid") if not owner[member])
        if (api_version, kind) == ("v1", "Event"):
            found.append(invalid(at, _owner_struct(owner), "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            if controller:
                text = f'Only one reference can have Controller set to true. Found "true" in references for {controller} and {kind}/{name}'
                found.append(invalid(path, [_owner_struct(each) for each in owners], text))
            else:
                controller = f"{kind}/{name}"
    return found


def _owner_struct(owner: Mapping[str, Any]) -> Struct:
    order = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    return Struct((member, owner[member]) for member in order if member in owner)


def _finalizer_errors(finalizers: Sequence[str], path: str) -> list[FieldError]:
    wrong = (invalid(path, finalizer, text) for finalizer in finalizers for text in label_key_errors(finalizer))
    found = list(islice(wrong, _MOST_ERRORS))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        found.append(invalid(path, list(finalizers), "finalizer orphan and foregroundDeletion cannot be both set"))
    return found


_PLAIN_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})


def finalizer_warnings(finalizer: str, path: str = "metadata.finalizers") -> list[str]:
    """The texts of Warning headers for the name of a finalizer that others could use as well."""
    warnings = [f"{path}: {gotext.quote(finalizer)}: {text}" for text in label_key_errors(finalizer)]
    if "/" not in finalizer and finalizer not in _PLAIN_FINALIZERS:
        slash = " including a path (/)" if "." in finalizer else ""
        text = f"prefer a domain-qualified finalizer name{slash} to avoid accidental conflicts with other finalizer writers"
        warnings.append(f"{path}: {gotext.quote(finalizer)}: {text}")
    return warnings


_OPERATIONS: Final = ("Apply", "Update")
_SUBRESOURCES: Final = ("", "status", "scale")


def _managed_fields_errors(entries: Sequence[Mapping[str, Any]], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, entry in enumerate(entries):
        if _is_common_entry(entry):
            continue
        if len(found) >= _MOST_ERRORS:
            break
        at = f"{path}[{index}]"
        operation = entry.get("operation", "")
        if not operation:
            found.append(required(f"{at}.operation", "must not be empty"))
        elif operation not in _OPERATIONS:
            found.append(not_supported(f"{at}.operation", operation, _OPERATIONS))
        if entry.get("fieldsType", "FieldsV1") != "FieldsV1":
            found.append(invalid(f"{at}.fieldsType", entry["fieldsType"], "must be `FieldsV1`"))
        found.extend(field_manager_errors(entry.get("manager", ""), f"{at}.manager"))
        if _size(entry.get("subresource", "")) > _SUBRESOURCE_LIMIT_BYTES:
            found.append(too_long(f"{at}.subresource", "", _SUBRESOURCE_LIMIT_BYTES))
    return found


def _is_common_entry(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is one of those that this server writes: nothing is wrong with it then."""
    return (
        entry.get("operation") in _OPERATIONS
        and entry.get("fieldsType") == "FieldsV1"
        and entry.get("subresource", "") in _SUBRESOURCES
        and _is_common_manager(entry.get("manager", "")) is not None
    )


def field_manager_errors(manager: str, path: str = "fieldManager") -> list[FieldError]:
    """What is wrong with the name of a field manager."""
    found: list[FieldError] = []
    if _size(manager) > FIELD_MANAGER_LIMIT_BYTES:
        found.append(too_long(path, manager, FIELD_MANAGER_LIMIT_BYTES))
    if not manager.isprintable():
        position = 0
        for character in manager:
            if not character.isprintable():
                text = f"invalid character U+{ord(character):04X} (at position {position})"
                found.append(invalid(path, manager, text))
            position += _size(character)
    return found
