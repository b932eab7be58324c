"""Who owns what, and what comes of it, for a kind with a field of every shape that apply knows: drawn, and compared with kube-apiserver."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.apiserver.apply.specs import SPECS
from tests.apiserver.apply.things import API_VERSION, KIND
from tests.apiserver.process import serving
from tests.differential.conftest import Pair
from tests.differential.exchange import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, Request, send
from tests.differential.lockstep import Difference, Lockstep, Tally
from tests.differential.side import Side, side
from tests.differential.twin import definition

pytestmark = [pytest.mark.differential, pytest.mark.slow]

_THINGS = "/apis/example.dev/v1/namespaces/{{ns}}/things"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SERVED_SECONDS = 60.0
_WALKS = 40
_MANAGERS = st.sampled_from(("m1", "m2", "m3"))
_LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
_STATUSES = st.fixed_dictionaries({}, optional={"ready": st.integers(0, 2)})


def _thing(spec: dict[str, Any], labels: dict[str, str], **more: Any) -> dict[str, Any]:
    metadata = {"name": "t", **({"labels": labels} if labels else {})}
    return {"apiVersion": API_VERSION, "kind": "Thing", "metadata": metadata, "spec": spec, **more}


def _write(how: str, manager: str, spec: dict[str, Any], labels: dict[str, str], status: dict[str, Any]) -> Request:
    """One way of writing one thing."""
    path, query = f"{_THINGS}/t", f"?fieldManager={manager}"
    match how:
        case "create":
            return send(how, "POST", _THINGS + query, _thing(spec, labels))
        case "update":
            return send(how, "PUT", path + query, _thing(spec, labels))
        case "merge patch":
            return send(how, "PATCH", path + query, {"spec": spec, "metadata": {"labels": labels}}, MERGE_PATCH)
        case "JSON patch":
            return send(how, "PATCH", path + query, [{"op": "replace", "path": "/spec", "value": spec}], JSON_PATCH)
        case "apply of a status":
            return send("apply", "PATCH", f"{path}/status{query}", _thing({}, {}, status=status), APPLY_PATCH)
        case "delete":
            return send(how, "DELETE", path)
        case _:
            force = "&force=true" if how == "force" else ""
            return send("apply", "PATCH", path + query + force, _thing(spec, labels), APPLY_PATCH)


_WAYS = (*["apply"] * 5, *["force"] * 3, "update", "merge patch", "JSON patch", "apply of a status", "create", "delete")
_STEPS = st.builds(_write, st.sampled_from(_WAYS), _MANAGERS, SPECS, _LABELS, _STATUSES)


@pytest.fixture
async def things(pair: Pair, tmp_path: Any) -> AsyncIterator[tuple[Side, Side]]:
    """Clients of both, which serve things."""
    with serving(tmp_path / "ours", *pair.our_flags, "--kinds=tests.apiserver.apply.things") as serves:
        async with side("kube-apiserver", pair.real_url, pair.contexts) as real, side("this server", serves.url, pair.contexts) as ours:
            body = json.dumps(definition(KIND)).encode()
            answer = await real.ask("POST", _DEFINITIONS, body, {"Content-Type": "application/json"}, "admin")
            assert answer.status == 201, answer
            async with asyncio.timeout(_SERVED_SECONDS):
                while (await real.ask("GET", _THINGS.replace("{{ns}}", "default"), None, {}, "admin")).status != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            yield real, ours
            await real.ask("DELETE", f"{_DEFINITIONS}/things.example.dev", None, {}, "admin")


async def test_every_shape_has_the_owners_that_it_has_there(things: tuple[Side, Side], tally: Tally, pytestconfig: pytest.Config) -> None:
    loop = asyncio.get_running_loop()
    numbers = itertools.count()

    async def take(steps: list[Request]) -> Difference | None:
        lockstep = Lockstep(*things, f"t-{next(numbers)}", tally, (_THINGS,))
        await lockstep.prepare()
        try:
            return await lockstep.run(steps)
        finally:
            await lockstep.clean()

    @seed(pytestconfig.getoption("first_walks"))
    @settings(max_examples=_WALKS, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(_STEPS, min_size=5, max_size=12))
    def answered_the_same(steps: list[Request]) -> None:
        difference = asyncio.run_coroutine_threadsafe(take(steps), loop).result()
        assert difference is None, f"\n{difference}"

    await asyncio.to_thread(answered_the_same)
