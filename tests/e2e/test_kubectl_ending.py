"""kubectl delete in all its forms, and kubectl wait: through kube-apiserver, as directly."""

from __future__ import annotations

import pytest

from tests.kubectl.test_ending import *  # noqa: F403  # the same tests, with another kubectl

pytestmark = [pytest.mark.slow, pytest.mark.e2e]
