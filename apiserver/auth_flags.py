"""The flags that say how clients are known and who decides what they may do: the names of `k8s.io/apiserver`'s delegating options."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from apiserver.flags import DURATION, FILE

if TYPE_CHECKING:
    from apiserver.config import AuthConfig


class _Names(click.ParamType[tuple[str, ...]]):
    """Several values, separated by commas."""

    name = "LIST"

    def convert(self, value: str | tuple[str, ...], param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = tuple(part.strip() for part in value.split(",")) if value else ()
        if not all(names):
            self.fail("a value is empty", param, ctx)
        return names


_NAMES = _Names()
_DURATION = {"type": DURATION, "default": "10s", "show_default": True}
_OPTIONS: dict[str, dict[str, Any]] = {
    "standalone": {"is_flag": True, "help": "Ask no kube-apiserver, not in a pod either, which is given the way to one."},
    "kubeconfig": {"type": FILE, "help": "The way to kube-apiserver, which then decides who may do what. In a pod it is known."},
    "authentication-kubeconfig": {"type": FILE, "help": "Instead of --kubeconfig, for TokenReviews and the authentication ConfigMap."},
    "authorization-kubeconfig": {"type": FILE, "help": "Instead of --kubeconfig, for SubjectAccessReviews."},
    "authentication-skip-lookup": {"is_flag": True, "help": "Do not read kube-system/extension-apiserver-authentication."},
    "authentication-tolerate-lookup-failure": {"is_flag": True, "help": "Be ready even before that ConfigMap has been read."},
    "authentication-token-webhook-cache-ttl": {**_DURATION, "help": "How long the answer about a token counts."},
    "authorization-webhook-cache-authorized-ttl": {**_DURATION, "help": "How long a permission counts."},
    "authorization-webhook-cache-unauthorized-ttl": {**_DURATION, "help": "How long a denial counts."},
    "authorization-always-allow-paths": {
        "type": _NAMES,
        "default": "/healthz,/readyz,/livez",
        "show_default": True,
        "help": "Paths that kube-apiserver is not asked about; * at the end stands for the rest.",
    },
    "anonymous-auth": {"type": bool, "default": True, "show_default": True, "help": "Take those who prove nothing as system:anonymous."},
    "api-audiences": {"type": _NAMES, "default": "", "help": "Whom tokens must be meant for. Default: kube-apiserver."},
    "requestheader-client-ca-file": {"type": FILE, "help": "Authorities of front proxies. Default: those of the ConfigMap."},
    "requestheader-allowed-names": {"type": _NAMES, "default": "", "help": "Common names of front proxies. Default: any."},
    "requestheader-username-headers": {"type": _NAMES, "default": "x-remote-user", "show_default": True, "help": "Where they name users."},
    "requestheader-group-headers": {"type": _NAMES, "default": "x-remote-group", "show_default": True, "help": "Where they name groups."},
    "requestheader-extra-headers-prefix": {
        "type": _NAMES,
        "default": "x-remote-extra-",
        "show_default": True,
        "help": "How headers of extra begin.",
    },
    "requestheader-uid-headers": {"type": _NAMES, "default": "", "help": "Where they name the user's uid. Default: nowhere."},
}
"""What `click.option` is told of each flag; the fields of AuthConfig have the same names."""


def auth_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options; the command gets them together, as its argument `auth`: a function that makes the AuthConfig."""

    @wraps(command)
    def collecting(*args: Any, **values: Any) -> None:
        given = {field: values.pop(field) for field in (flag.replace("-", "_") for flag in _OPTIONS)}

        def auth() -> AuthConfig:
            from apiserver.config import AuthConfig

            return AuthConfig(**given)

        command(*args, auth=auth, **values)

    with_options: Callable[..., None] = collecting
    for flag, settings in reversed(_OPTIONS.items()):
        with_options = click.option(f"--{flag}", **settings)(with_options)
    return with_options
