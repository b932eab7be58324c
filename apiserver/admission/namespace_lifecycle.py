"""Nothing is created in a namespace that does not exist, or that is going away. Updates and deletions are always allowed.

Namespaces are followed. One that is not known may just be new: it is waited for a moment, and then asked for. While what is known is not
complete, each is asked for.
Source: https://github.com/kubernetes/apiserver/blob/v0.37.2/pkg/admission/plugin/namespace/lifecycle/admission.go
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from apiserver.cluster.client import ClusterError
from apiserver.cluster.reflector import Reflector
from apiserver.meta import errors
from apiserver.meta.errors import Cause, GroupResource

if TYPE_CHECKING:
    from apiserver.admission.chain import Attributes, Operation
    from apiserver.cluster.client import ClusterClient
    from apiserver.meta.errors import APIError

_log = logging.getLogger(__name__)

_PATH = "/api/v1/namespaces"
_NAMESPACES = GroupResource("", "namespaces")
_TERMINATING = "Terminating"
_WAIT_SECONDS = 0.05


class NamespaceLifecycle:
    """Refuses creations by the state of their namespace. The owner awaits `run` as a task."""

    operations: ClassVar[frozenset[Operation]] = frozenset(("CREATE",))

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._phases: dict[str, str] = {}
        self._news = asyncio.Event()
        self._reflector = Reflector(client, _PATH, self)

    async def run(self) -> None:
        """Follow the namespaces, for ever."""
        await self._reflector.run()

    async def mutate(self, attributes: Attributes, value: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
        """Change nothing; refuse a creation with 404 or 403. Comes before the rules of the kind, as upstream's."""
        namespace = attributes.call.info.namespace
        if not namespace:
            return
        if await self._phase(namespace) == _TERMINATING:
            raise _terminating(attributes, value, namespace)

    async def _phase(self, namespace: str) -> str:
        phase = self._phases.get(namespace) or await self._appeared(namespace)
        return phase or await self._ask(namespace)

    async def _appeared(self, namespace: str) -> str:
        if self._reflector.synced.is_set():
            try:
                async with asyncio.timeout(_WAIT_SECONDS):
                    while namespace not in self._phases:
                        await self._news.wait()
            except TimeoutError:
                return ""
        return self._phases.get(namespace, "")

    async def _ask(self, namespace: str) -> str:
        try:
            found = await self._client.get(f"{_PATH}/{quote(namespace, safe='')}")
            return _phase_of(found)
        except ClusterError as error:
            if error.code == 404:
                raise errors.not_found(_NAMESPACES, namespace) from error
            _log.error("cannot find out about namespace %s: %s", ascii(namespace), ascii(str(error))[1:-1])
            raise errors.internal_error(f'cannot find out whether namespace "{namespace}" exists') from error

    def replaced(self, objects: Sequence[dict[str, Any]]) -> None:
        """These are all namespaces."""
        self._phases = {value["metadata"]["name"]: _phase_of(value) for value in objects}
        self._tell()

    def changed(self, kind: str, value: dict[str, Any]) -> None:
        """One has come, changed or gone."""
        name = value["metadata"]["name"]
        if kind == "DELETED":
            self._phases.pop(name, None)
        else:
            self._phases[name] = _phase_of(value)
            self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def _phase_of(namespace: dict[str, Any]) -> str:
    return (namespace.get("status") or {}).get("phase") or "Active"


def _terminating(attributes: Attributes, value: dict[str, Any] | None, namespace: str) -> APIError:
    metadata = (value or {}).get("metadata") or {}
    name = attributes.call.info.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    problem = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = errors.forbidden(attributes.kind.group_resource, name, problem)
    cause = Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
    error.details = {**(error.details or {}), "causes": [cause.to_json()]}
    return error
