"""Reaching a server through kube-apiserver: it is registered as an APIService, and asked at kube-apiserver's address.

Both of ours serve the group that kube-apiserver itself serves from the CustomResourceDefinition: what is registered takes the place of
that, and is given back at the end. So one server after the other can be measured behind the same kube-apiserver.
"""

from __future__ import annotations

import json
import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from tests.bench.servers import Server

_SERVICES: Final = "/api/v1/namespaces/default/services"
_API_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
_SECONDS: Final = 60.0


@contextmanager
def through(kube: Server, server: Server) -> Iterator[Server]:
    """The same server at kube-apiserver's address, inside of the block; its CPU time and memory are its own.

    Raises:
        TimeoutError: kube-apiserver does not take it for available.
    """
    _, _, group, version = server.api.split("/")
    api_service = f"{version}.{group}"
    service = {"name": server.key, "namespace": "default"}
    ports = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": server.port}]}
    kube.ask(_SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": service, "spec": ports})
    spec: dict[str, Any] = {"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 10}
    spec |= {"insecureSkipTLSVerify": True, "service": {**service, "port": server.port}}
    _register(kube, api_service, spec)
    try:
        _wait(kube, api_service, "Passed")
        proxied = replace(server, port=kube.port)
        proxied.wait_served("default")
        yield proxied
    finally:
        kube.ask(f"{_API_SERVICES}/{api_service}", method="DELETE")
        kube.ask(f"{_SERVICES}/{server.key}", method="DELETE")
        if server.api == kube.api:
            _wait(kube, api_service, "Local")
            kube.wait_served("default")


def _register(kube: Server, name: str, spec: dict[str, Any]) -> None:
    value = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}, "spec": spec}
    try:
        kube.ask(_API_SERVICES, value)
    except urllib.error.HTTPError as error:
        if error.code != 409:
            raise
        # Without the label by which kube-apiserver knows those that it looks after itself.
        version = json.loads(kube.ask(f"{_API_SERVICES}/{name}"))["metadata"]["resourceVersion"]
        kube.ask(f"{_API_SERVICES}/{name}", value | {"metadata": {"name": name, "resourceVersion": version}}, method="PUT")


def _wait(kube: Server, name: str, reason: str) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        listed = json.loads(kube.ask(_API_SERVICES))["items"]
        found = [one.get("status", {}).get("conditions", []) for one in listed if one["metadata"]["name"] == name]
        if any(condition["reason"] == reason for conditions in found for condition in conditions):
            return
        time.sleep(0.1)
    raise TimeoutError(f"the APIService {name} has not come to {reason}")
