"""kubectl create, apply, diff, replace, patch, label, annotate, edit and scale: through kube-apiserver, as directly."""

from __future__ import annotations

import pytest

from tests.kubectl.test_writing import *  # noqa: F403  # the same tests, with another kubectl

pytestmark = [pytest.mark.slow, pytest.mark.e2e]
