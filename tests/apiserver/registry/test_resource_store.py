"""Writing objects by the rules of their kind, over a store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Annotated, Any, ClassVar, Literal, Self

import pytest

from apiserver.meta.errors import APIError
from apiserver.meta.field_errors import FieldError, forbidden
from apiserver.meta.markers import Immutable
from apiserver.meta.options import DeleteOptions
from apiserver.meta.resource import Int32, Model, Resource, describe
from apiserver.registry.resource_store import ResourceStore
from apiserver.registry.stored_object import StoredObject
from apiserver.registry.write import Write
from openapi.json_values import copy
from storage.errors import ValueTooLarge
from storage.memory import MemoryStore
from storage.store import KeyValue
from tests.apiserver.gadgets import Gadget
from tests.random_writes import Writes


class SealSpec(Model):
    """What is wanted of a seal."""

    color: Literal["red", "blue"]
    """Which color; it stays."""
    size: Int32 = 1
    """How large."""
    origin: Annotated[str | None, Immutable] = None
    """Where it is from."""


class Seal(Resource):
    """A kind with a rule about changes."""

    group: ClassVar[str] = "example.dev"
    version: ClassVar[str] = "v1"
    plural: ClassVar[str] = "seals"

    spec: SealSpec

    def validate_object(self, old: Self | None) -> Iterable[FieldError]:
        """Keep the color."""
        if old is not None and old.spec.color != self.spec.color:
            yield forbidden("spec.color", "may not change")

    def warn(self, old: Self | None) -> Iterable[str]:
        """Tell of growth."""
        if old is not None and old.spec.size < self.spec.size:
            yield "it grows"


NOW = "2026-11-30T12:00:00Z"


class SpiedStore(MemoryStore):
    """Counts writes, and can let somebody else be faster."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0
        self.before_change: Callable[[], Any] | None = None
        self.limit_bytes = 1 << 20

    def _check(self, value: bytes) -> None:
        self.writes += 1
        if len(value) > self.limit_bytes:
            raise ValueTooLarge("too large")

    async def create(self, key: str, value: bytes) -> KeyValue:
        self._check(value)
        return await super().create(key, value)

    async def update(self, key: str, value: bytes, *, expected_revision: int) -> KeyValue:
        await self._overtaken()
        self._check(value)
        return await super().update(key, value, expected_revision=expected_revision)

    async def delete(self, key: str, *, expected_revision: int) -> KeyValue:
        await self._overtaken()
        return await super().delete(key, expected_revision=expected_revision)

    async def _overtaken(self) -> None:
        if self.before_change is not None:
            before, self.before_change = self.before_change, None
            await before()


@pytest.fixture
def spied() -> SpiedStore:
    return SpiedStore()


@pytest.fixture
async def gadgets(spied: SpiedStore) -> AsyncIterator[ResourceStore]:
    resource = ResourceStore(describe(Gadget), spied, now=lambda: NOW)
    running = asyncio.create_task(resource.run())
    await resource.cache.wait_ready()
    yield resource
    await resource.cache.close()
    await running
    await spied.close()


@pytest.fixture
async def seals(spied: SpiedStore) -> AsyncIterator[ResourceStore]:
    resource = ResourceStore(describe(Seal), spied)
    running = asyncio.create_task(resource.run())
    await resource.cache.wait_ready()
    yield resource
    await resource.cache.close()
    await running


def seal(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.dev/v1", "kind": "Seal", "metadata": {"name": "x"}, "spec": {"color": "red", **spec}}


def gadget(name: str = "x", **metadata: Any) -> dict[str, Any]:
    metadata = {"name": name, **metadata} if name else metadata
    return {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": metadata, "spec": {"replicas": 1}}


def changing(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def transform(current: dict[str, Any]) -> dict[str, Any]:
        value: dict[str, Any] = copy(current)
        change(value)
        return value

    return transform


def scaled(replicas: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return changing(lambda value: value["spec"].update(replicas=replicas))


def held(*finalizers: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return changing(lambda value: value["metadata"].update(finalizers=list(finalizers)))


async def test_a_created_object_has_what_the_server_decides(gadgets: ResourceStore) -> None:
    created = await gadgets.create("ns1", {**gadget(uid="mine", generation=7, selfLink="/x"), "status": {"phase": "sent"}})
    value = created.object()
    assert value["metadata"] == {
        "creationTimestamp": NOW,
        "generation": 1,
        "name": "x",
        "namespace": "ns1",
        "resourceVersion": created.resource_version,
        "uid": created.uid,
    }
    assert created.uid != "mine"
    assert "status" not in value
    assert (await gadgets.get("ns1", "x")) is created


async def test_an_own_write_is_not_parsed_again(gadgets: ResourceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_decoding(stored: KeyValue) -> StoredObject:
        raise AssertionError("decoded")

    monkeypatch.setattr(gadgets.cache._image, "decode", no_decoding)
    await gadgets.create("ns1", gadget())
    await gadgets.update("ns1", "x", scaled(2))
    assert gadgets.cache.ready


async def test_what_a_write_stores_is_normal_and_read_as_it_is(gadgets: ResourceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await gadgets.create("ns1", gadget(), Write(field_manager="m"))
    updated = await gadgets.update("ns1", "x", scaled(2), Write(field_manager="m"))

    def normalize(value: dict[str, Any], **_: Any) -> None:
        raise AssertionError("it is normal")

    monkeypatch.setattr(gadgets.strategy, "normalize", normalize)
    assert gadgets.strategy.read(updated) == updated.object()


async def test_whatever_random_writes_store_is_as_normal_as_it_says() -> None:
    writes = Writes(2)
    store = writes._store
    states = 0
    async for _ in writes.outcomes(500):
        current = store.cache.peek(store.codec.key("default", "a"))
        if current is not None:
            value = current.object()
            store.strategy.normalize(value)
            assert current.is_normal
            assert repr(value) == repr(current.object())
            states += 1
    assert states > 400


async def test_what_is_not_known_to_be_normal_is_normalized_when_it_is_read(gadgets: ResourceStore, spied: SpiedStore) -> None:
    strategy = gadgets.strategy
    created = await gadgets.create("ns1", gadget(), Write(field_manager="m"))
    updated = await gadgets.update("ns1", "x", scaled(2), Write(field_manager="m"))
    seen = changing(lambda value: value.update(status={"phase": "on"}))
    status = await gadgets.update("ns1", "x", seen, Write(field_manager="n"), subresource="status")
    marked = await gadgets.update("ns1", "x", held("x.example/f"))
    for own in (created, updated, status, marked):
        assert own.is_normal
        value = own.object()
        strategy.normalize(value)
        assert value == own.object()
    deleting, _ = await gadgets.delete("ns1", "x", DeleteOptions())
    assert not deleting.is_normal
    written = deleting.value.replace(b'"replicas":2', b'"nonsense":1')
    await spied.update(deleting.key, written, expected_revision=deleting.revision)
    await gadgets.cache.fresh()
    foreign = await gadgets.get("ns1", "x")
    assert not foreign.is_normal
    assert strategy.read(foreign)["spec"] == {"replicas": 1}
    mended = await gadgets.update("ns1", "x", changing(lambda value: value["spec"].update(color="red")))
    assert mended.object()["spec"] == {"color": "red", "replicas": 1}


async def test_an_object_that_is_too_large_with_its_owners_is_stored_without_them(gadgets: ResourceStore, spied: SpiedStore) -> None:
    write = Write(field_manager="m")
    small = await gadgets.create("ns1", gadget("small"), write)
    assert small.object()["metadata"]["managedFields"]
    spied.limit_bytes = len(small.value) - 1
    created = await gadgets.create("ns1", gadget("large"), write)
    updated = await gadgets.update("ns1", "small", scaled(7), write)
    assert updated.object()["spec"]["replicas"] == 7
    for stored in (created, updated):
        assert "managedFields" not in stored.object()["metadata"]
        assert (await gadgets.get("ns1", stored.name)) is stored
    spied.limit_bytes = 10
    with pytest.raises(APIError) as refused:
        await gadgets.create("ns1", gadget("none"), write)
    assert refused.value.code == 413
    with pytest.raises(APIError) as refused:
        await gadgets.update("ns1", "small", scaled(8), write)
    assert refused.value.code == 413


async def test_a_name_is_generated_again_when_it_is_taken(gadgets: ResourceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """T019"""
    names = iter(["pool-a", "pool-a", "pool-b"])
    monkeypatch.setattr("apiserver.registry.strategy.generate_name", lambda base: next(names))
    first = await gadgets.create("ns1", gadget("", generateName="pool-"))
    second = await gadgets.create("ns1", gadget("", generateName="pool-"))
    assert (first.name, second.name) == ("pool-a", "pool-b")


async def test_a_name_that_cannot_be_generated_is_told_so(gadgets: ResourceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """T019"""
    monkeypatch.setattr("apiserver.registry.strategy.generate_name", lambda base: "pool-a")
    await gadgets.create("ns1", gadget("", generateName="pool-"))
    with pytest.raises(APIError) as raised:
        await gadgets.create("ns1", gadget("", generateName="pool-"))
    assert raised.value.reason == "AlreadyExists"
    assert raised.value.message == (
        'gadgets.example.dev "pool-a" already exists, the server was not able to generate a unique name for the object'
    )
    assert raised.value.retry_after_seconds == 1


async def test_an_update_without_a_change_writes_nothing(gadgets: ResourceStore, spied: SpiedStore) -> None:
    """T038"""
    created = await gadgets.create("ns1", gadget())
    assert await gadgets.update("ns1", "x", changing(lambda value: None)) is created
    assert await gadgets.update("ns1", "x", changing(lambda value: None), subresource="status") is created
    assert spied.writes == 1


async def test_a_dry_run_writes_nothing_and_shows_what_would_be(gadgets: ResourceStore, spied: SpiedStore) -> None:
    """T014"""
    dry = Write(dry_run=True)
    shown = await gadgets.create("ns1", gadget(), dry)
    assert shown.uid
    assert "resourceVersion" not in shown.object()["metadata"]
    created = await gadgets.create("ns1", gadget())
    with pytest.raises(APIError, match="already exists"):
        await gadgets.create("ns1", gadget(), dry)
    updated = await gadgets.update("ns1", "x", scaled(5), dry)
    assert (updated.object()["spec"]["replicas"], updated.resource_version) == (5, created.resource_version)
    assert await gadgets.delete("ns1", "x", DeleteOptions(dry_run=True), dry) == (created, True)
    marked, gone = await gadgets.delete("ns1", "x", DeleteOptions(propagation_policy="Foreground", dry_run=True), dry)
    assert (marked.object()["metadata"]["finalizers"], gone) == (["foregroundDeletion"], False)
    assert await gadgets.get("ns1", "x") is created
    assert spied.writes == 1


async def test_a_change_that_names_no_version_is_made_again_on_what_somebody_else_wrote(gadgets: ResourceStore, spied: SpiedStore) -> None:
    await gadgets.create("ns1", gadget())
    label = changing(lambda value: value["metadata"].update(labels={"a": "b"}))
    spied.before_change = lambda: gadgets.update("ns1", "x", label)

    def scale(current: dict[str, Any]) -> dict[str, Any]:
        return scaled(5)(current)

    updated = (await gadgets.update("ns1", "x", scale)).object()
    assert (updated["metadata"]["labels"], updated["spec"]["replicas"], updated["metadata"]["generation"]) == ({"a": "b"}, 5, 2)


async def test_a_change_of_a_named_version_is_a_conflict_then(gadgets: ResourceStore, spied: SpiedStore) -> None:
    """T021"""
    value = (await gadgets.create("ns1", gadget())).object()
    value["spec"]["replicas"] = 5
    spied.before_change = lambda: gadgets.update("ns1", "x", scaled(2))
    with pytest.raises(APIError, match="the object has been modified; please apply your changes to the latest version and try again"):
        await gadgets.update("ns1", "x", lambda _: {**value, "metadata": dict(value["metadata"])})


async def test_generation_counts_changes_of_the_desired_state_only(gadgets: ResourceStore) -> None:
    """T030"""

    async def generation(change: Callable[[dict[str, Any]], Any], subresource: str = "") -> int:
        updated = await gadgets.update("ns1", "x", changing(change), subresource=subresource)
        found: int = updated.object()["metadata"]["generation"]
        return found

    await gadgets.create("ns1", gadget())
    assert await generation(lambda value: value["metadata"].update(labels={"a": "b"})) == 1
    assert await generation(lambda value: value["metadata"].update(annotations={"a": "b"})) == 1
    assert await generation(lambda value: value["spec"].update(replicas=1)) == 1
    assert await generation(lambda value: value["spec"].update(replicas=2)) == 2
    assert await generation(lambda value: value.update(status={"phase": "up"}), "status") == 2
    assert await generation(lambda value: value["metadata"].update(generation=99)) == 2
    assert await generation(lambda value: value["metadata"].update(finalizers=["x.example/f"])) == 2
    for _ in range(2):
        marked, gone = await gadgets.delete("ns1", "x", DeleteOptions())
        assert (marked.object()["metadata"]["generation"], gone) == (3, False)


async def test_content_that_has_become_invalid_does_not_keep_the_rest_from_changing(gadgets: ResourceStore, spied: SpiedStore) -> None:
    created = await gadgets.create("ns1", gadget())
    old = created.value.replace(b'"replicas":1', b'"color":"pink","replicas":1')
    await gadgets.cache.update(created.key, old, expected_revision=created.revision)
    updated = await gadgets.update("ns1", "x", changing(lambda value: value["metadata"].update(labels={"a": "b"})))
    assert updated.labels == {"a": "b"}
    assert (await gadgets.update("ns1", "x", scaled(4))).object()["spec"] == {"color": "pink", "replicas": 4}
    with pytest.raises(APIError, match="Unsupported value"):
        await gadgets.update("ns1", "x", changing(lambda value: value["spec"].update(color="mauve")))


async def test_the_last_finalizer_takes_a_marked_object_with_it(gadgets: ResourceStore) -> None:
    """T072"""
    created = await gadgets.create("ns1", gadget(finalizers=["x.example/f"]))
    marked, gone = await gadgets.delete("ns1", "x", DeleteOptions())
    metadata = marked.object()["metadata"]
    assert not gone
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == (NOW, 0)
    assert marked.revision > created.revision
    with pytest.raises(APIError, match="no new finalizers can be added if the object is being deleted"):
        await gadgets.update("ns1", "x", changing(lambda value: value["metadata"]["finalizers"].append("y.example/g")))
    last = await gadgets.update("ns1", "x", changing(lambda value: value["metadata"].pop("finalizers")))
    assert "finalizers" not in last.object()["metadata"]
    with pytest.raises(APIError, match="not found"):
        await gadgets.get("ns1", "x")


async def test_a_marked_object_keeps_its_mark(gadgets: ResourceStore) -> None:
    await gadgets.create("ns1", gadget(finalizers=["x.example/f"]))
    await gadgets.delete("ns1", "x", DeleteOptions())
    updated = await gadgets.update("ns1", "x", changing(lambda value: value["metadata"].pop("deletionTimestamp")))
    assert updated.object()["metadata"]["deletionTimestamp"] == NOW
    with pytest.raises(APIError, match=r"object is being deleted: .*already exists"):
        await gadgets.create("ns1", gadget())


@pytest.mark.parametrize(
    ("options", "before", "after"),
    [
        pytest.param(DeleteOptions(propagation_policy="Foreground"), [], ["foregroundDeletion"], id="foreground"),
        pytest.param(DeleteOptions(propagation_policy="Orphan"), [], ["orphan"], id="orphan"),
        pytest.param(DeleteOptions(propagation_policy="Background"), [], None, id="background"),
        pytest.param(DeleteOptions(), [], None, id="nothing-said"),
        pytest.param(DeleteOptions(orphan_dependents=True), [], ["orphan"], id="orphan-the-old-way"),
        pytest.param(DeleteOptions(orphan_dependents=False), ["orphan"], None, id="background-the-old-way"),
        pytest.param(DeleteOptions(propagation_policy="Foreground"), ["orphan"], ["foregroundDeletion"], id="switched"),
        pytest.param(DeleteOptions(propagation_policy="Background"), ["orphan"], None, id="cleared"),
        pytest.param(DeleteOptions(), ["orphan"], ["orphan"], id="kept"),
        pytest.param(DeleteOptions(propagation_policy="Orphan"), ["x.example/f"], ["x.example/f", "orphan"], id="beside-others"),
    ],
)
async def test_the_propagation_policy_decides_about_finalizers(
    gadgets: ResourceStore, options: DeleteOptions, before: list[str], after: list[str] | None
) -> None:
    """T076"""
    await gadgets.create("ns1", gadget(finalizers=before))
    last, gone = await gadgets.delete("ns1", "x", options)
    assert gone == (after is None)
    assert after is None or last.object()["metadata"]["finalizers"] == after


@pytest.mark.parametrize("policy", ["Orphan", "Foreground"])
async def test_without_a_garbage_collector_no_deletion_waits_for_one(spied: SpiedStore, policy: str) -> None:
    alone = ResourceStore(describe(Gadget), spied, garbage_collected=False)
    running = asyncio.create_task(alone.run())
    await alone.create("ns1", gadget())
    _, gone = await alone.delete("ns1", "x", DeleteOptions(propagation_policy=policy))
    assert gone
    await alone.cache.close()
    await running
    await spied.close()


async def test_a_deletion_meant_for_another_incarnation_changes_nothing(gadgets: ResourceStore) -> None:
    """T074"""
    created = await gadgets.create("ns1", gadget(finalizers=["x.example/f"]))
    for options in (DeleteOptions(uid="old"), DeleteOptions(resource_version="1"), DeleteOptions(uid=created.uid, resource_version="1")):
        with pytest.raises(APIError) as raised:
            await gadgets.delete("ns1", "x", options)
        assert (raised.value.code, raised.value.reason) == (409, "Conflict")
    assert await gadgets.get("ns1", "x") is created
    _, gone = await gadgets.delete("ns1", "x", DeleteOptions(uid=created.uid, resource_version=created.resource_version))
    assert not gone


async def test_a_deletion_comes_after_the_write_that_it_met(gadgets: ResourceStore, spied: SpiedStore) -> None:
    await gadgets.create("ns1", gadget(finalizers=["x.example/f"]))
    spied.before_change = lambda: gadgets.update("ns1", "x", scaled(5))
    marked, _ = await gadgets.delete("ns1", "x", DeleteOptions())
    assert marked.object()["spec"]["replicas"] == 5


async def test_a_deletion_that_meets_a_new_finalizer_marks(gadgets: ResourceStore, spied: SpiedStore) -> None:
    await gadgets.create("ns1", gadget())
    spied.before_change = lambda: gadgets.update("ns1", "x", held("x.example/f"))
    marked, gone = await gadgets.delete("ns1", "x", DeleteOptions())
    assert (gone, marked.object()["metadata"]["finalizers"]) == (False, ["x.example/f"])
    assert "deletionTimestamp" in (await gadgets.get("ns1", "x")).object()["metadata"]


async def test_a_deletion_that_meets_the_removal_of_the_last_finalizer_deletes(gadgets: ResourceStore, spied: SpiedStore) -> None:
    await gadgets.create("ns1", gadget(finalizers=["x.example/f"]))
    spied.before_change = lambda: gadgets.update("ns1", "x", held())
    _, gone = await gadgets.delete("ns1", "x", DeleteOptions())
    assert gone
    with pytest.raises(APIError, match="not found"):
        await gadgets.get("ns1", "x")


async def test_a_deletion_that_meets_another_one_finds_nothing(gadgets: ResourceStore, spied: SpiedStore) -> None:
    await gadgets.create("ns1", gadget())
    spied.before_change = lambda: gadgets.delete("ns1", "x", DeleteOptions())
    with pytest.raises(APIError, match="not found"):
        await gadgets.delete("ns1", "x", DeleteOptions())


async def test_a_finalizer_that_comes_after_the_mark_is_refused(gadgets: ResourceStore, spied: SpiedStore) -> None:
    await gadgets.create("ns1", gadget(finalizers=["x.example/f"]))
    spied.before_change = lambda: gadgets.delete("ns1", "x", DeleteOptions())
    with pytest.raises(APIError, match="no new finalizers can be added if the object is being deleted"):
        await gadgets.update("ns1", "x", held("x.example/f", "x.example/g"))


async def test_admission_may_change_and_refuse(gadgets: ResourceStore) -> None:
    seen: list[tuple[str, bool, bool]] = []

    class Judge:
        async def mutate(self, value: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
            seen.append(("mutate", value is not None, old is not None))
            if value is not None:
                value["metadata"].setdefault("labels", {})["judged"] = "yes"

        async def validate(self, value: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
            seen.append(("validate", value is not None, old is not None))
            if value is not None and value["spec"]["replicas"] > 3:
                raise APIError(403, "Forbidden", "too many")

    write = Write(admission=Judge())
    created = await gadgets.create("ns1", gadget(), write)
    assert created.labels == {"judged": "yes"}
    assert not created.is_normal  # who knows what it has put there
    with pytest.raises(APIError, match="too many"):
        await gadgets.update("ns1", "x", scaled(4), write)
    await gadgets.delete("ns1", "x", DeleteOptions(), write)
    new, changed, deleted = ("mutate", True, False), ("mutate", True, True), ("mutate", False, True)
    assert [entry for entry in seen if entry[0] == "mutate"] == [new, changed, deleted]


async def test_a_kinds_own_rules_see_what_is_replaced_if_its_schema_allows_it_still(seals: ResourceStore) -> None:
    created = await seals.create("ns1", seal(size=1))
    write = Write()
    await seals.update("ns1", "x", changing(lambda value: value["spec"].update(size=2)), write)
    assert write.warnings == ["it grows"]
    with pytest.raises(APIError, match=r"spec\.color: Forbidden: may not change"):
        await seals.update("ns1", "x", changing(lambda value: value["spec"].update(color="blue")))
    current = await seals.get("ns1", "x")
    await seals.cache.update(created.key, current.value.replace(b'"red"', b'"pink"'), expected_revision=current.revision)
    blue = await seals.update("ns1", "x", changing(lambda value: value["spec"].update(color="blue")))
    assert blue.object()["spec"]["color"] == "blue"


async def test_what_may_not_change_is_told_of_an_object_that_is_good_by_itself(seals: ResourceStore) -> None:
    await seals.create("ns1", seal(origin="sea"))
    with pytest.raises(APIError, match=r'spec\.origin: Invalid value: "land": field is immutable'):
        await seals.update("ns1", "x", changing(lambda value: value["spec"].update(origin="land")))
