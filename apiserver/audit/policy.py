"""The audit policy: which requests are written down, and how much of them. The first rule that matches decides; without one, nothing is.

Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/audit/policy/checker.go
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError, model_validator
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from apiserver.request import RequestInfo, User

_log = logging.getLogger(__name__)

Level = Literal["None", "Metadata", "Request", "RequestResponse"]
Stage = Literal["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"]
_Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: value or ())]
_Stages = Annotated[tuple[Stage, ...], BeforeValidator(lambda value: value or ())]
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class PolicyError(Exception):
    """A policy that cannot be used; the text is one line."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is written down of a request."""

    level: Level
    omit_stages: frozenset[str] = frozenset()
    omit_managed_fields: bool = False


class _Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="allow", frozen=True)


class GroupResources(_Model):
    """Resources of one group."""

    group: str = ""
    resources: _Texts = ()
    resource_names: _Texts = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.group not in ("", "*") and not _GROUP.fullmatch(self.group):
            raise ValueError(f'"{self.group}" is no API group')
        if self.resource_names and not self.resources:
            raise ValueError("using resourceNames requires at least one resource")
        return self

    def match(self, info: RequestInfo) -> bool:
        """Whether the request is for one of them."""
        if self.group not in ("*", info.group):
            return False
        if not self.resources:
            return True
        if self.resource_names and info.name not in self.resource_names:
            return False
        wanted = {"*", f"{info.resource}/*"}
        wanted |= {f"{info.resource}/{info.subresource}", f"*/{info.subresource}"} if info.subresource else {info.resource}
        return not wanted.isdisjoint(self.resources)


class Rule(_Model):
    """Whom and what it is about; what is left out does not matter."""

    level: Level
    users: _Texts = ()
    user_groups: _Texts = ()
    verbs: _Texts = ()
    resources: Annotated[tuple[GroupResources, ...], BeforeValidator(lambda value: value or ())] = ()
    namespaces: _Texts = ()
    non_resource_urls: _Texts = Field((), alias="nonResourceURLs")
    omit_stages: _Stages = ()
    omit_managed_fields: bool | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        for url in self.non_resource_urls:
            if url != "*" and not url.startswith("/"):
                raise ValueError("non-resource URL rules must begin with a '/' character")
            if "*" in url[:-1]:
                raise ValueError("non-resource URL wildcards '*' must be the final character of the rule")
        if self.non_resource_urls and (self.resources or self.namespaces):
            raise ValueError("rules cannot apply to both regular resources and non-resource URLs")
        return self

    def match(self, user: User | None, info: RequestInfo) -> bool:
        """Whether the rule is about this request. `user`: None for somebody who could not prove who they are."""
        if self.users and (user is None or user.name not in self.users):
            return False
        if self.user_groups and (user is None or not any(group in self.user_groups for group in user.groups)):
            return False
        if self.verbs and info.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            if not info.is_resource_request or (self.namespaces and info.namespace not in self.namespaces):
                return False
            return not self.resources or any(one.match(info) for one in self.resources)
        if self.non_resource_urls:
            return not info.is_resource_request and any(_path_matches(info.path, url) for url in self.non_resource_urls)
        return True


class Policy(_Model):
    """All rules."""

    api_version: Literal["audit.k8s.io/v1"]
    kind: Literal["Policy"]
    metadata: dict[str, Any] | None = None
    rules: Annotated[tuple[Rule, ...], Field(min_length=1)]
    omit_stages: _Stages = ()
    omit_managed_fields: bool = False
    _decisions: tuple[tuple[Rule, Decision], ...] = PrivateAttr(())

    def decide(self, user: User | None, info: RequestInfo) -> Decision:
        """What is written down of this request."""
        for rule, decision in self._decisions:
            if rule.match(user, info):
                return decision
        return _NOTHING

    def model_post_init(self, _: Any) -> None:
        """Make the decisions once."""
        self._decisions = tuple((rule, self._decision(rule)) for rule in self.rules)

    def _decision(self, rule: Rule) -> Decision:
        omit = self.omit_managed_fields if rule.omit_managed_fields is None else rule.omit_managed_fields
        return Decision(rule.level, frozenset((*self.omit_stages, *rule.omit_stages)), omit)


_NOTHING = Decision("None")


def _path_matches(path: str, url: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))


def load_policy(file: Path) -> Policy:
    """Read a policy. Fields that nobody knows are told of in the log, and ignored, as kube-apiserver does.

    Raises:
        PolicyError: it cannot be read or used.
    """
    try:
        policy = Policy.model_validate(yaml.safe_load(file.read_bytes()))
    except OSError as error:
        raise PolicyError(f"cannot read {file}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise PolicyError(f"{file} is no YAML") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "policy"
        raise PolicyError(f"{file}: {place}: {first['msg']}") from error
    for field in _unknown(policy, ""):
        _log.warning('%s: unknown field "%s" is ignored', file, field)
    return policy


def _unknown(model: BaseModel, path: str) -> Iterator[str]:
    for name in model.model_extra or ():
        yield f"{path}{name}"
    for name in type(model).model_fields:
        value = getattr(model, name)
        for number, inner in enumerate(value if isinstance(value, tuple) else ()):
            if isinstance(inner, BaseModel):
                yield from _unknown(inner, f"{path}{to_camel(name)}[{number}].")
