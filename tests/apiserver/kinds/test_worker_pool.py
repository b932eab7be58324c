"""Every rule of a WorkerPool, over HTTP: what is accepted as it was written, what is refused and in which words."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from apiserver.kinds.worker_pool import WorkerPool
from apiserver.meta.resource import describe
from apiserver.registry.stored_object import ObjectCodec
from storage.memory import MemoryStore
from tests.apiserver.kinds.objects import IMAGE, POOLS, Cause, causes_of, create, create_with_warnings, pool
from tests.apiserver.status_assertions import assert_status

pytestmark = pytest.mark.asyncio(loop_scope="module")

VOLUME = {"name": "data", "emptyDir": {}}


def mounted(path: str) -> dict[str, Any]:
    """A template with one volume, and its mount at this path."""
    return {"extraVolumes": [VOLUME], "extraVolumeMounts": [{"name": "data", "mountPath": path}]}


def wrong_type(field: str, wanted: str, found: str) -> Cause:
    return ("TypeInvalid", field, f'Invalid value: "{found}": {field} in body must be of type {wanted}: "{found}"')


# What is accepted comes back as it was written, with replicas where there were none.


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="image_alone"),
        pytest.param({"replicas": 0}, id="no_replicas"),
        pytest.param({"replicas": 2147483647}, id="most_replicas"),
        pytest.param({"maxExecutionsPerWorker": 0}, id="no_executions"),
        pytest.param({"maxExecutionsPerWorker": 8}, id="executions"),
        pytest.param({"warmPool": 0}, id="no_warm_pool"),
        pytest.param({"warmPool": 2}, id="warm_pool"),
        pytest.param({"imageCache": {}}, id="image_cache_unsaid"),
        pytest.param({"imageCache": {"enabled": True}}, id="image_cache"),
        pytest.param({"imageCache": {"enabled": False}}, id="no_image_cache"),
    ],
)
async def test_a_spec_is_accepted_as_written(client: aiohttp.ClientSession, spec: dict[str, Any]) -> None:
    created = await create(client, POOLS, pool(**spec))
    assert created["spec"] == {"replicas": 1, "template": {"image": IMAGE}, **spec}


@pytest.mark.parametrize(
    "template",
    [
        pytest.param({"image": "w"}, id="image_of_one_letter"),
        pytest.param({"image": "registry.example:5000/a/b_c/w:v1.2-3+x"}, id="image_with_port_and_tag"),
        pytest.param({"image": f"W/w@sha256:{'0' * 64}"}, id="image_with_digest"),
        pytest.param({"imagePullPolicy": "Always"}, id="pull_always"),
        pytest.param({"imagePullPolicy": "IfNotPresent"}, id="pull_if_not_present"),
        pytest.param({"imagePullPolicy": "Never"}, id="pull_never"),
        pytest.param({"imagePullSecrets": [{"name": "a"}, {"name": "b"}]}, id="pull_secrets"),
        pytest.param({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": ""}]}, id="env_values"),
        pytest.param({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}}]}, id="env_from"),
        pytest.param({"nodeSelector": {}}, id="empty_node_selector"),
        pytest.param({"nodeSelector": {"kubernetes.io/arch": "amd64"}}, id="node_selector"),
        pytest.param({"tolerations": [{"operator": "Exists"}, {"operator": "Exists"}]}, id="equal_tolerations"),
        pytest.param({"tolerations": [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 9007199254740993}]}, id="large_int64"),
        pytest.param(
            {
                "affinity": {
                    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]}
                }
            },
            id="affinity",
        ),
        pytest.param({"priorityClassName": "high"}, id="priority_class"),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                ]
            },
            id="spread_twice_by_one_key",
        ),
        pytest.param({"serviceAccountName": "worker"}, id="service_account"),
        pytest.param({"extraVolumes": [VOLUME, {"name": "states", "hostPath": {"path": "/x", "type": ""}}]}, id="volumes"),
        pytest.param(
            {"metadata": {"labels": {"team": "a"}, "annotations": {"clrk.apoxy.dev/restartedAt": "2026-01-01T00:00:00Z"}}}, id="meta"
        ),
    ],
)
async def test_a_template_is_accepted_as_written(client: aiohttp.ClientSession, template: dict[str, Any]) -> None:
    created, warnings = await create_with_warnings(client, POOLS, pool(template=template))
    assert created["spec"] == {"replicas": 1, "template": {"image": IMAGE, **template}}
    assert warnings == []


PATHS = [
    "/data",
    "/opt/x",
    "/home/x",
    "/mnt/x",
    "/srv",
    "/var/data",
    "/var/library",
    "/running",
    "/tmpfs",
    "/binary",
    "/lib32",
    "/data/..x",
]


@pytest.mark.parametrize("path", PATHS)
async def test_a_mount_beside_the_reserved_paths_is_accepted(client: aiohttp.ClientSession, path: str) -> None:
    created = await create(client, POOLS, pool(template=mounted(path)))
    assert created["spec"]["template"] == {"image": IMAGE, **mounted(path)}


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        pytest.param({"cpu": "1000m", "memory": "1024Mi"}, {"cpu": "1000m", "memory": "1024Mi"}, id="T024_strings"),
        pytest.param({"cpu": 1}, {"cpu": 1}, id="T024_integer"),
        pytest.param(
            {"cpu": "+1.50", "memory": "1e3", "example.com/gpu": "0"},
            {"cpu": "+1.50", "memory": "1e3", "example.com/gpu": "0"},
            id="odd_forms",
        ),
        pytest.param({"cpu": "1", "memory": None}, {"cpu": "1"}, id="null"),
    ],
)
@pytest.mark.parametrize("member", ["limits", "requests"])
async def test_quantities_come_back_as_written(
    client: aiohttp.ClientSession, member: str, written: dict[str, Any], kept: dict[str, Any]
) -> None:
    created = await create(client, POOLS, pool(template={"resources": {member: written}}))
    assert created["spec"]["template"]["resources"] == {member: kept}


@pytest.mark.parametrize("size", [1024, "1Ki"], ids=["number", "text"])
async def test_a_quantity_deep_inside_of_a_volume_is_a_number_or_a_text(client: aiohttp.ClientSession, size: int | str) -> None:
    volume = {"name": "data", "emptyDir": {"sizeLimit": size}}
    created = await create(client, POOLS, pool(template={"extraVolumes": [volume]}))
    assert created["spec"]["template"]["extraVolumes"] == [volume]


# Defaults and nulls


async def test_only_schema_defaults_are_written(client: aiohttp.ClientSession) -> None:
    created = await create(client, POOLS, pool())
    assert created["spec"] == {"replicas": 1, "template": {"image": IMAGE}}


async def test_t029_nulls_are_pruned_and_then_defaults_apply(client: aiohttp.ClientSession) -> None:
    created = await create(client, POOLS, pool("nulls", replicas=None, warmPool=None, imageCache=None, template={"affinity": None}))
    assert created["spec"] == {"replicas": 1, "template": {"image": IMAGE}}
    path = f"{POOLS}/nulls"
    for content in ({"spec": {"replicas": 3, "warmPool": 2}}, {"spec": {"replicas": None, "warmPool": None}}):
        async with client.patch(path, json=content, headers={"Content-Type": "application/merge-patch+json"}) as response:
            patched = await response.json()
        expected = {"replicas": 3, "warmPool": 2} if content["spec"]["replicas"] else {"replicas": 1}
        assert patched["spec"] == {"template": {"image": IMAGE}, **expected}
    async with client.put(path, json={**patched, "spec": {"template": {"image": IMAGE}}}) as response:
        assert (await response.json())["spec"] == {"replicas": 1, "template": {"image": IMAGE}}


# What is refused


@pytest.mark.parametrize("field", ["replicas", "maxExecutionsPerWorker", "warmPool"])
@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        pytest.param(-1, "Invalid", "Invalid value: -1: {at} in body should be greater than or equal to 0", id="negative"),
        pytest.param("3", "TypeInvalid", 'Invalid value: "string": {at} in body must be of type integer: "string"', id="string"),
        pytest.param(True, "TypeInvalid", 'Invalid value: "": {at} in body must be of type int32: ""', id="boolean"),
        pytest.param({}, "TypeInvalid", 'Invalid value: "": {at} in body must be of type int32: ""', id="object"),
        pytest.param(3.5, "TypeInvalid", 'Invalid value: "float64": {at} in body must be of type int32: "float64"', id="fraction"),
        pytest.param(
            2**31, "Invalid", 'Invalid value: "": Checked value must be of type integer with format int32 in {at}', id="too_large"
        ),
    ],
)
async def test_t017_an_int32_of_the_spec_must_be_one(
    client: aiohttp.ClientSession, field: str, value: Any, kind: str, message: str
) -> None:
    async with client.post(POOLS, json=pool(**{field: value})) as response:
        causes = await causes_of(response)
    at = f"spec.{field}"
    assert causes[0] == (kind, "<nil>" if "Checked" in message else at, message.format(at=at))
    if field == "replicas":  # the scale subresource has its own rule
        assert causes[-1][:2] == ("Invalid", ".spec.replicas")


IMAGE_FIELD = "spec.template.image"
PATTERN = "^[A-Za-z0-9][A-Za-z0-9._:@/+-]*$"


@pytest.mark.parametrize(
    ("image", "printed", "detail"),
    [
        pytest.param("", '""', "spec.template.image in body should be at least 1 chars long", id="empty"),
        pytest.param("a b", '"a b"', "must not contain whitespace", id="blank"),
        pytest.param(" a", '" a"', "must not contain whitespace", id="leading_blank"),
        pytest.param("a\n", r'"a\n"', "must not contain whitespace", id="newline"),
        pytest.param("a\u00a0b", r'"a\u00a0b"', "must not contain whitespace", id="no_break_space"),
        pytest.param("https://r/w", '"https://r/w"', "must be an image reference without a scheme such as 'https://'", id="scheme"),
        pytest.param("/r/w", '"/r/w"', "must not begin or end with '/'", id="leading_slash"),
        pytest.param("r/w/", '"r/w/"', "must not begin or end with '/'", id="trailing_slash"),
        pytest.param("r//w", '"r//w"', "must not contain '//'", id="two_slashes"),
        pytest.param("-w", '"-w"', f"must match the pattern '{PATTERN}'", id="leading_dash"),
        pytest.param("w$1", '"w$1"', f"must match the pattern '{PATTERN}'", id="dollar"),
        pytest.param("wörker", '"wörker"', f"must match the pattern '{PATTERN}'", id="umlaut"),
    ],
)
async def test_an_image_must_be_a_reference(client: aiohttp.ClientSession, image: str, printed: str, detail: str) -> None:
    async with client.post(POOLS, json=pool(template={"image": image})) as response:
        assert await causes_of(response) == [("Invalid", IMAGE_FIELD, f"Invalid value: {printed}: {detail}")]


RESERVED = "is reserved for the sandbox runtime (reserved names: state, run, varlog)"
DEFINED = {"name": "data", "mountPath": "/data"}
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
QUANTITY = r"'^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param({"image": None}, [("Required", "image", "Required value")], id="image_null"),
        pytest.param({"image": 5}, [wrong_type("image", "string", "integer")], id="image_number"),
        pytest.param(
            {"imagePullPolicy": "always"},
            [("NotSupported", "imagePullPolicy", 'Unsupported value: "always": supported values: "Always", "IfNotPresent", "Never"')],
            id="pull_policy",
        ),
        pytest.param(
            {"imagePullSecrets": [{"name": "a"}, {"name": "a"}]},
            [("Duplicate", "imagePullSecrets[1]", 'Duplicate value: {"name":"a"}')],
            id="pull_secret_twice",
        ),
        pytest.param({"imagePullSecrets": "a"}, [wrong_type("imagePullSecrets", "array", "string")], id="pull_secret_text"),
        pytest.param(
            {"resources": {"limits": {"cpu": "1 core"}}},
            [("Invalid", "resources.limits[cpu]", f'Invalid value: "1 core": {{at}} in body should match {QUANTITY}')],
            id="T024_quantity_with_words",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}]},
            [("Duplicate", "env[2]", 'Duplicate value: {"name":"A"}')],
            id="env_twice",
        ),
        pytest.param({"env": [{"value": "1"}]}, [("Required", "env[0].name", "Required value")], id="env_without_name"),
        pytest.param({"env": [{"name": "A", "value": 1}]}, [wrong_type("env[0].value", "string", "integer")], id="env_number"),
        pytest.param({"nodeSelector": {"a": 1}}, [wrong_type("nodeSelector.a", "string", "integer")], id="node_selector_number"),
        pytest.param(
            {"tolerations": [{"effect": "Never"}]},
            [
                (
                    "NotSupported",
                    "tolerations[0].effect",
                    'Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "PreferNoSchedule"',
                )
            ],
            id="toleration_effect",
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
            [("Required", "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms", "Required value")],
            id="affinity_without_terms",
        ),
        pytest.param({"priorityClassName": 1}, [wrong_type("priorityClassName", "string", "integer")], id="priority_number"),
        pytest.param({"serviceAccountName": []}, [wrong_type("serviceAccountName", "string", "array")], id="service_account_list"),
        pytest.param(
            {"topologySpreadConstraints": [SPREAD, SPREAD]},
            [("Duplicate", "topologySpreadConstraints[1]", 'Duplicate value: {"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}')],
            id="spread_twice",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{}]},
            [
                ("Required", f"topologySpreadConstraints[0].{name}", "Required value")
                for name in ("maxSkew", "topologyKey", "whenUnsatisfiable")
            ],
            id="spread_empty",
        ),
        *(
            pytest.param(
                {"extraVolumes": [VOLUME, {"name": name, "emptyDir": {}}]},
                [("Invalid", "extraVolumes[1].name", f'Invalid value: "{name}": {RESERVED}')],
                id=f"volume_{name}",
            )
            for name in ("state", "run", "varlog")
        ),
        *(
            pytest.param(
                {"extraVolumeMounts": [{"name": name, "mountPath": "/data"}]},
                [("Invalid", "extraVolumeMounts[0].name", f'Invalid value: "{name}": {RESERVED}')],
                id=f"mount_of_{name}",
            )
            for name in ("state", "run", "varlog")
        ),
        pytest.param(
            {"extraVolumes": [VOLUME, VOLUME]}, [("Duplicate", "extraVolumes[1]", 'Duplicate value: {"name":"data"}')], id="volume_twice"
        ),
        pytest.param({"extraVolumes": [{}]}, [("Required", "extraVolumes[0].name", "Required value")], id="volume_without_name"),
        pytest.param(
            {"extraVolumes": [VOLUME], "extraVolumeMounts": [DEFINED, DEFINED]},
            [("Duplicate", "extraVolumeMounts[1]", 'Duplicate value: {"mountPath":"/data"}')],
            id="mount_twice",
        ),
        pytest.param(
            {"extraVolumes": [VOLUME], "extraVolumeMounts": [DEFINED, {"name": "other", "mountPath": "/other"}]},
            [("NotFound", "extraVolumeMounts[1].name", 'Not found: "other"')],
            id="mount_of_no_volume",
        ),
        pytest.param(
            {"extraVolumeMounts": [{"name": "other", "mountPath": "etc"}]},
            [
                ("NotFound", "extraVolumeMounts[0].name", 'Not found: "other"'),
                ("Invalid", "extraVolumeMounts[0].mountPath", 'Invalid value: "etc": must be an absolute path'),
            ],
            id="mount_wrong_twice",
        ),
        pytest.param({"metadata": {"labels": {"a": 1}}}, [wrong_type("metadata.labels.a", "string", "integer")], id="label_number"),
        pytest.param({"metadata": {"annotations": []}}, [wrong_type("metadata.annotations", "object", "array")], id="annotations_list"),
    ],
)
async def test_a_wrong_template_is_refused(client: aiohttp.ClientSession, template: dict[str, Any], expected: list[Cause]) -> None:
    async with client.post(POOLS, json=pool(template=template)) as response:
        causes = await causes_of(response)
    assert causes == [
        (
            kind,
            f"spec.template.{field}",
            message.replace(f": {field} in body", f": spec.template.{field} in body").replace("{at}", f"spec.template.{field}"),
        )
        for kind, field, message in expected
    ]


@pytest.mark.parametrize(("quantity", "found"), [(1.5, "number"), (True, "boolean"), ({}, "object"), ([], "array")])
async def test_a_quantity_is_a_whole_number_or_a_text(client: aiohttp.ClientSession, quantity: Any, found: str) -> None:
    async with client.post(POOLS, json=pool(template={"resources": {"limits": {"cpu": quantity}}})) as response:
        causes = await causes_of(response)
    at = "spec.template.resources.limits.cpu"
    # Kubernetes goes on to say that it is none of both.
    assert causes[:2] == [
        wrong_type(at, "integer,string", found),
        ("Invalid", "<nil>", f'Invalid value: "": "{at}" must validate at least one schema (anyOf)'),
    ]


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("", "must be an absolute path"),
        ("data", "must be an absolute path"),
        ("./data", "must be an absolute path"),
        ("/", "must not be the root directory"),
        ("//", "must be a clean path: no '.', '..', '//' and no trailing '/'"),
        ("/data/", "must be a clean path: no '.', '..', '//' and no trailing '/'"),
        ("/data//x", "must be a clean path: no '.', '..', '//' and no trailing '/'"),
        ("/data/./x", "must be a clean path: no '.', '..', '//' and no trailing '/'"),
        ("/data/../etc", "must be a clean path: no '.', '..', '//' and no trailing '/'"),
        ("/data/..", "must be a clean path: no '.', '..', '//' and no trailing '/'"),
        *(
            (path, f"overlaps {path}, which is reserved for the sandbox runtime")
            for path in ("/var/lib/clrk/state", "/run/clrk", "/var/log/clrk")
        ),
        ("/var/lib/clrk/state/x", "overlaps /var/lib/clrk/state, which is reserved for the sandbox runtime"),
        ("/run/clrk/x/y", "overlaps /run/clrk, which is reserved for the sandbox runtime"),
        ("/var/log/clrk/x", "overlaps /var/log/clrk, which is reserved for the sandbox runtime"),
        ("/var", "overlaps /var/lib/clrk/state, which is reserved for the sandbox runtime"),
        ("/var/lib", "overlaps /var/lib/clrk/state, which is reserved for the sandbox runtime"),
        ("/var/lib/clrk", "overlaps /var/lib/clrk/state, which is reserved for the sandbox runtime"),
        ("/run", "overlaps /run/clrk, which is reserved for the sandbox runtime"),
        ("/var/log", "overlaps /var/log/clrk, which is reserved for the sandbox runtime"),
        *(
            (f"{path}{below}", f"overlaps the system path {path}")
            for path in ("/proc", "/dev", "/sys", "/tmp", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/root")
            for below in ("", "/x")
        ),
    ],
)
async def test_a_mount_path_must_be_clean_and_free(client: aiohttp.ClientSession, path: str, detail: str) -> None:
    async with client.post(POOLS, json=pool(template=mounted(path))) as response:
        expected = ("Invalid", "spec.template.extraVolumeMounts[0].mountPath", f'Invalid value: "{path}": {detail}')
        assert await causes_of(response) == [expected]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, ("Required", "spec.template", "Required value"), id="no_template"),
        pytest.param(None, ("Required", "spec", "Required value"), id="no_spec"),
        pytest.param([], wrong_type("spec", "object", "array"), id="list"),
        pytest.param(
            {"template": {"image": IMAGE}, "imageCache": {"enabled": "yes"}},
            wrong_type("spec.imageCache.enabled", "boolean", "string"),
            id="cache",
        ),
        pytest.param(
            {"template": {"image": IMAGE}, "imageCache": True}, wrong_type("spec.imageCache", "object", "boolean"), id="cache_flag"
        ),
    ],
)
async def test_a_wrong_spec_is_refused(client: aiohttp.ClientSession, spec: Any, expected: Cause) -> None:
    async with client.post(POOLS, json={**pool(), "spec": spec}) as response:
        causes = await causes_of(response)
    assert causes[0] == expected
    assert all(field == ".spec.replicas" for _, field, _ in causes[1:])


# Warnings

CONTROLLER = "is set by the controller, this entry is dropped"
INJECTED = "is dropped when the controller injects its own"


@pytest.mark.parametrize(
    ("template", "warning"),
    [
        *(
            pytest.param({"env": [{"name": "A"}, {"name": name}]}, f"spec.template.env[1].name: {name} {text}", id=name)
            for name, text in (
                ("POD_NAME", CONTROLLER),
                ("POD_NAMESPACE", CONTROLLER),
                ("CLRK_POOL_NAME", CONTROLLER),
                ("CLRK_CM_OTLP_ENDPOINT", INJECTED),
                ("CLRK_CM_NATS_ADDR", INJECTED),
            )
        ),
        pytest.param(
            {"metadata": {"labels": {"clrk.apoxy.dev/worker-pool": "x"}}},
            "spec.template.metadata.labels[clrk.apoxy.dev/worker-pool]: set by the controller, this value is replaced",
            id="selector_label",
        ),
        pytest.param(
            {"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/worker": "x"}}},
            "spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/worker]: set by the controller, "
            "this value is replaced",
            id="apparmor",
        ),
    ],
)
async def test_what_will_have_no_effect_is_accepted_with_a_warning(
    client: aiohttp.ClientSession, template: dict[str, Any], warning: str
) -> None:
    created, warnings = await create_with_warnings(client, POOLS, pool(template=template))
    assert warnings == [f'299 - "{warning}"']
    assert created["spec"]["template"] == {"image": IMAGE, **template}


async def test_each_warning_has_its_header(client: aiohttp.ClientSession) -> None:
    template = {"env": [{"name": "POD_NAME"}, {"name": "CLRK_CM_NATS_ADDR"}], "metadata": {"labels": {"clrk.apoxy.dev/worker-pool": "x"}}}
    _, warnings = await create_with_warnings(client, POOLS, pool(template=template))
    assert len(warnings) == 3


async def test_a_lower_case_variable_is_another_one(client: aiohttp.ClientSession) -> None:
    _, warnings = await create_with_warnings(client, POOLS, pool(template={"env": [{"name": "pod_name"}]}))
    assert warnings == []


# An update whose spec did not change


async def test_an_invalid_object_stays_writable_as_long_as_its_spec_does_not_change(
    client: aiohttp.ClientSession, store: MemoryStore
) -> None:
    """Rules grow; objects from before must take status writes, labels and finalizers all the same."""
    codec = ObjectCodec(describe(WorkerPool))
    value = pool("old", replicas=2, template={"image": "https://r/w", **mounted("/etc"), "env": [{"name": "POD_NAME"}]})
    value["metadata"] |= {"namespace": "ns1", "uid": "11111111-2222-3333-4444-555555555555", "generation": 1}
    await store.create(codec.key("ns1", "old"), codec.encode(value).value)
    path = f"{POOLS}/old"
    merge = {"Content-Type": "application/merge-patch+json"}
    async with client.patch(f"{path}/status", json={"status": {"readyReplicas": 2}}, headers=merge) as response:
        assert (response.status, (await response.json())["status"]) == (200, {"readyReplicas": 2})
    async with client.patch(path, json={"metadata": {"labels": {"a": "b"}}}, headers=merge) as response:
        assert (response.status, response.headers.getall("Warning", [])) == (200, [])
        labelled = await response.json()
    assert labelled["spec"] == value["spec"]
    labelled["metadata"]["annotations"] = {"a": "b"}
    async with client.put(path, json=labelled) as response:
        assert response.status == 200
        annotated = await response.json()
    assert annotated["metadata"]["generation"] == 1
    async with client.put(f"{path}/status", json={**annotated, "status": {"readyReplicas": 1}}) as response:
        assert response.status == 200
    async with client.patch(path, json={"spec": {"replicas": 3}}, headers=merge) as response:
        assert [field for _, field, _ in await causes_of(response)] == [IMAGE_FIELD, "spec.template.extraVolumeMounts[0].mountPath"]
    async with client.delete(path) as response:
        assert response.status == 200


# Status


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"observedGeneration": "1"}, [wrong_type("status.observedGeneration", "integer", "string")], id="generation"),
        pytest.param({"readyReplicas": True}, [wrong_type("status.readyReplicas", "int32", "")], id="ready"),
        pytest.param({"activeExecutions": "x"}, [wrong_type("status.activeExecutions", "integer", "string")], id="active"),
        pytest.param({"capacity": []}, [wrong_type("status.capacity", "object", "array")], id="capacity"),
        pytest.param(
            {"capacity": {"availableExecutions": "x"}},
            [wrong_type("status.capacity.availableExecutions", "integer", "string")],
            id="available",
        ),
        pytest.param(
            {"conditions": [{"type": "Ready"}]},
            [
                ("Required", f"status.conditions[0].{name}", "Required value")
                for name in ("lastTransitionTime", "message", "reason", "status")
            ],
            id="condition_alone",
        ),
    ],
)
async def test_a_wrong_status_is_refused(client: aiohttp.ClientSession, status: dict[str, Any], expected: list[Cause]) -> None:
    created = await create(client, POOLS, pool())
    async with client.put(f"{POOLS}/{created['metadata']['name']}/status", json={**created, "status": status}) as response:
        causes = await causes_of(response)
    # Kubernetes checks the status by itself and repeats the path from there on.
    expected = [(kind, field, message.replace(" status.", " ")) for kind, field, message in expected]
    assert [cause for cause in causes if cause[1] != ".status.readyReplicas"] == expected


CONDITION = {"type": "Ready", "status": "True", "reason": "AllReady", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}


@pytest.mark.parametrize(
    ("change", "kind", "member"),
    [
        pytest.param({"status": "Yes"}, "NotSupported", "status", id="status"),
        pytest.param({"reason": ""}, "Invalid", "reason", id="reason_empty"),
        pytest.param({"reason": "no spaces"}, "Invalid", "reason", id="reason"),
        pytest.param({"type": "a b"}, "Invalid", "type", id="type"),
        pytest.param({"lastTransitionTime": "now"}, "TypeInvalid", "lastTransitionTime", id="time"),
        pytest.param({"observedGeneration": -1}, "Invalid", "observedGeneration", id="generation"),
        pytest.param({"message": "x" * 32769}, "TooLong", "message", id="message"),
    ],
)
async def test_conditions_are_those_of_metav1(client: aiohttp.ClientSession, change: dict[str, Any], kind: str, member: str) -> None:
    created = await create(client, POOLS, pool())
    path = f"{POOLS}/{created['metadata']['name']}/status"
    async with client.put(path, json={**created, "status": {"conditions": [{**CONDITION, **change}]}}) as response:
        assert [cause[:2] for cause in await causes_of(response)] == [(kind, f"status.conditions[0].{member}")]
    async with client.put(path, json={**created, "status": {"conditions": [CONDITION, CONDITION]}}) as response:
        assert await causes_of(response) == [("Duplicate", "status.conditions[1]", 'Duplicate value: {"type":"Ready"}')]
    async with client.put(path, json={**created, "status": {"conditions": [CONDITION]}}) as response:
        assert (await response.json())["status"] == {"conditions": [CONDITION]}


async def test_a_status_comes_back_whole(client: aiohttp.ClientSession) -> None:
    created = await create(client, POOLS, {**pool(), "status": {"readyReplicas": 9}})
    assert "status" not in created
    status = {
        "observedGeneration": 9007199254740993,
        "readyReplicas": 1,
        "activeExecutions": 3,
        "capacity": {"maxExecutions": 8, "availableExecutions": 5},
        "conditions": [CONDITION],
    }
    async with client.put(f"{POOLS}/{created['metadata']['name']}/status", json={**created, "status": status}) as response:
        assert (await response.json())["status"] == status


# Table and scale


async def test_the_table_has_our_columns_and_wide_ones(client: aiohttp.ClientSession) -> None:
    created = await create(client, POOLS, pool("columns", replicas=4))
    table_form = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    async with client.get(f"{POOLS}/columns", headers=table_form) as response:
        table = await response.json()
    columns = [(column["name"], column["type"], column["priority"]) for column in table["columnDefinitions"]]
    assert columns == [
        ("Name", "string", 0),
        ("Replicas", "integer", 0),
        ("Ready", "integer", 0),
        ("Active", "integer", 0),
        ("Age", "date", 0),
        ("Image", "string", 1),
    ]
    assert all(column["description"] for column in table["columnDefinitions"])
    name, replicas, ready, active, age, image = table["rows"][0]["cells"]
    assert (name, replicas, ready, active, image) == ("columns", 4, None, None, IMAGE)
    assert age.endswith("s")
    async with client.put(f"{POOLS}/columns/status", json={**created, "status": {"readyReplicas": 3, "activeExecutions": 2}}):
        pass
    async with client.get(f"{POOLS}/columns", headers=table_form) as response:
        assert (await response.json())["rows"][0]["cells"][1:4] == [4, 3, 2]


async def test_t083_scale_has_a_selector_that_is_a_string(client: aiohttp.ClientSession) -> None:
    created = await create(client, POOLS, pool("scaled", replicas=4))
    async with client.put(f"{POOLS}/scaled/status", json={**created, "status": {"readyReplicas": 3}}) as response:
        metadata = (await response.json())["metadata"]
    async with client.get(f"{POOLS}/scaled/scale") as response:
        assert await response.json() == {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")},
            "spec": {"replicas": 4},
            "status": {"replicas": 3, "selector": "clrk.apoxy.dev/worker-pool=scaled"},
        }


async def test_a_scale_has_a_table_of_its_own(client: aiohttp.ClientSession) -> None:
    await create(client, POOLS, pool("table-of-scale", replicas=4))
    path = f"{POOLS}/table-of-scale/scale"
    async with client.get(path, headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}) as response:
        table = await response.json()
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"][:3] == ["table-of-scale", 4, 0]
    async with client.get(path) as response:
        metadata = (await response.json())["metadata"]
    async with client.get(path, headers={"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}) as response:
        partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        assert await response.json() == partial == table["rows"][0]["object"]


@pytest.mark.parametrize("selector", ["spec.replicas=1", "spec.template.image=x", "metadata.uid=1"])
async def test_only_name_and_namespace_are_selectable(client: aiohttp.ClientSession, selector: str) -> None:
    async with client.get(POOLS, params={"fieldSelector": selector}) as response:
        status = await assert_status(response, 400, "BadRequest")
    assert f"field label not supported: {selector.partition('=')[0]}" in status["message"]
