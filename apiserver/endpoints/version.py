"""`/version`: which Kubernetes we speak, in the form that kubectl reads, with our own version behind the plus sign.

The number before the plus is the release whose behaviour we keep to: clients compare it with their own.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import orjson
from aiohttp import web

from apiserver.endpoints.negotiation import response_headers
from apiserver.meta import errors

if TYPE_CHECKING:
    from apiserver.request import Call, Handler

KUBERNETES = "1.37.2"
"""The release of Kubernetes whose wire behaviour is ours."""


def make(server_version: str) -> Handler:
    """Return the handler; `server_version` is that of our package."""
    body = orjson.dumps(version_info(server_version), option=orjson.OPT_INDENT_2)

    async def answer(call: Call) -> web.Response:
        if call.info.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        return web.Response(body=body, headers=response_headers(call, "application/json"))

    return answer


def version_info(server_version: str) -> dict[str, str]:
    """The members of `version.Info` in Kubernetes' order."""
    major, minor, _ = KUBERNETES.split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{KUBERNETES}+clrk.{server_version}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{_architecture(platform.machine())}",
    }


def _architecture(machine: str) -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
