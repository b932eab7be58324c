"""kubectl get in all its forms, watches included, and describe: through kube-apiserver, as directly."""

from __future__ import annotations

import pytest

from tests.kubectl.test_reading import *  # noqa: F403  # the same tests, with another kubectl

pytestmark = [pytest.mark.slow, pytest.mark.e2e]
