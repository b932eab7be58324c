"""A listener that speaks HTTP/2, around an endpoint that a test may replace with its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from apiserver.certificates import Certificates
from apiserver.request import Handler
from tests.apiserver.running import Listening
from tests.apiserver.shell import answer_path, shell


@pytest.fixture
def endpoint() -> Handler:
    return answer_path


@pytest.fixture
async def listener(pki: Certificates, endpoint: Handler) -> AsyncIterator[Listening]:
    async with shell(pki, endpoint) as running:
        yield running
