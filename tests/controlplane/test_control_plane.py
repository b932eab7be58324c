"""The control plane that other tests build on is a whole one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.control_plane import ControlPlane

pytestmark = pytest.mark.slow


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    plane = ControlPlane(tmp_path)
    plane.start()
    try:
        yield plane
    finally:
        plane.stop()


def test_controllers_look_after_namespaces_and_the_front_proxy_is_published(plane: ControlPlane) -> None:
    plane.start_controller_manager()
    plane.kubectl("create", "namespace", "ns1")
    plane.kubectl("wait", "--for=create", "--timeout=60s", "--namespace=ns1", "serviceaccount/default")
    plane.kubectl("delete", "namespace", "ns1", "--timeout=60s")
    published = plane.kubectl("get", "configmap", "extension-apiserver-authentication", "--namespace=kube-system", "--output=yaml")
    assert b"requestheader-allowed-names: '[\"front-proxy-client\"]'" in published
