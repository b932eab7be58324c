"""Types that all servers share are described in the cluster's words, as soon as it can be asked for them."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from openapi.adopted import shared_definitions
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.aggregated import serving, until

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

IDENTITY = "x-kubernetes-group-version-kind"


def without_identity(definition: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in definition.items() if key != IDENTITY}


async def test_t010_a_cluster_that_is_away_is_not_waited_for_and_its_words_count_afterwards(plane: ControlPlane, tmp_path: Path) -> None:
    with ExitStack() as away:
        away.enter_context(plane.away())
        async with serving(plane, tmp_path) as server:
            admin = server.listening.pki.admin

            async def described() -> dict[str, Any]:
                code, document = await server.ask("GET", "/openapi/v2", admin, through=False)
                assert code == 200
                return shared_definitions(document)

            ours = await described()
            await asyncio.to_thread(away.close)
            theirs = shared_definitions(json.loads(await server.kubectl("get", "--raw", "/openapi/v2")))

            async def other_words() -> bool:
                return await described() != ours

            await until(other_words)
            found = await described()
            for name, definition in theirs.items():
                assert without_identity(found[name]) == without_identity(definition), name
                assert found[name].get(IDENTITY) == ours[name].get(IDENTITY), name
