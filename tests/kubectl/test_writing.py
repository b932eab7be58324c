"""kubectl create, apply, diff, replace, patch, label, annotate, edit and scale."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.kubectl.running import IMAGE, SAMPLES, Kubectl, manifest, pool, worker

POOL = "workerpool.clrk.apoxy.dev"


def metadata_of(kubectl: Kubectl, name: str) -> dict[str, Any]:
    metadata: dict[str, Any] = kubectl.json("wp", name)["metadata"]
    return metadata


def test_create_makes_what_the_samples_say(kubectl: Kubectl) -> None:
    created = kubectl("create", "-f", str(SAMPLES))
    assert sorted(created.splitlines()) == [
        "localworker.worker.saved.sh/backups created",
        "localworker.worker.saved.sh/plain created",
        f"{POOL}/agents created",
        f"{POOL}/small created",
    ]
    assert kubectl.json("wp", "agents")["spec"] == yaml.safe_load((SAMPLES / "workerpool.yaml").read_text())["spec"]
    assert f'{POOL.replace(".", "s.", 1)} "small" already exists' in kubectl.fails("create", "-f", str(SAMPLES / "workerpool-minimal.yaml"))


def test_create_with_a_generated_name(kubectl: Kubectl) -> None:
    value = pool("")
    value["metadata"] = {"generateName": "worker-"}
    assert re.fullmatch(rf"{POOL}/worker-[bcdfghjklmnpqrstvwxz2456789]{{5}} created\n", kubectl.create(value))


def test_create_prints_what_it_made(kubectl: Kubectl) -> None:
    assert kubectl("create", "-f", "-", "-o", "jsonpath={.metadata.generation} {.spec.replicas}", stdin=manifest(pool("x"))) == "1 1"


def test_t014_dry_run_on_the_server_stores_nothing(kubectl: Kubectl) -> None:
    printed = kubectl("create", "-f", "-", "--dry-run=server", "-o", "json", stdin=manifest(pool("x")))
    assert json.loads(printed)["spec"]["replicas"] == 1
    assert kubectl("get", "wp", "-o", "name", "--ignore-not-found") == ""
    kubectl.create(pool("x"))
    before = metadata_of(kubectl, "x")
    for command in (
        ["scale", "wp/x", "--replicas=9"],
        ["label", "wp/x", "a=b"],
        ["annotate", "wp/x", "a=b"],
        ["delete", "wp/x"],
    ):
        assert "(server dry run)" in kubectl(*command, "--dry-run=server")
    assert (
        kubectl("patch", "wp/x", "--type=merge", "-p", '{"spec":{"warmPool":1}}', "--dry-run=server", "-o", "jsonpath={.spec.warmPool}")
        == "1"
    )
    assert metadata_of(kubectl, "x") == before


def test_apply_creates_then_changes_then_leaves_alone(kubectl: Kubectl) -> None:
    def apply(**spec: Any) -> str:
        return kubectl("apply", "-f", "-", stdin=manifest(pool("x", **spec)))

    assert apply(replicas=2, warmPool=1) == f"{POOL}/x created\n"
    assert apply(replicas=2, warmPool=1) == f"{POOL}/x unchanged\n"
    version = metadata_of(kubectl, "x")["resourceVersion"]
    kubectl("scale", "wp/x", "--replicas=4")
    assert apply(replicas=3) == f"{POOL}/x configured\n"
    value = kubectl.json("wp", "x")
    assert value["spec"] == {"replicas": 3, "template": {"image": IMAGE}}  # warmPool has gone with the edit
    assert int(value["metadata"]["resourceVersion"]) > int(version)
    assert apply() == f"{POOL}/x configured\n"
    assert kubectl.json("wp", "x")["spec"]["replicas"] == 1  # the default applies again


def test_apply_of_a_folder_keeps_both_kinds(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", str(SAMPLES)).count(" created\n") == 4
    assert kubectl("apply", "-f", str(SAMPLES)).count(" unchanged\n") == 4
    assert kubectl("apply", "view-last-applied", "wp/small").startswith("apiVersion: clrk.apoxy.dev/v1alpha1\n")


def test_apply_prunes_what_has_gone_from_the_files(kubectl: Kubectl) -> None:
    both = manifest(pool("a", labels={"set": "s"}), pool("b", labels={"set": "s"}))
    prune = ["--prune", "-l", "set=s", "--prune-allowlist=clrk.apoxy.dev/v1alpha1/WorkerPool"]
    kubectl("apply", "-f", "-", *prune, stdin=both)
    assert kubectl("apply", "-f", "-", *prune, stdin=manifest(pool("a", labels={"set": "s"}))) == f"{POOL}/a unchanged\n{POOL}/b pruned\n"
    assert kubectl("get", "wp", "-o", "name") == f"{POOL}/a\n"


def test_diff_shows_what_apply_would_change(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=manifest(pool("x", replicas=2)))
    assert kubectl("diff", "-f", "-", stdin=manifest(pool("x", replicas=2))) == ""
    done = kubectl.run("diff", "-f", "-", stdin=manifest(pool("x", replicas=5)))
    assert (done.returncode, done.stderr) == (1, "")
    assert {"-  replicas: 2", "+  replicas: 5", "-  generation: 1", "+  generation: 2"} <= set(done.stdout.splitlines())
    assert kubectl.json("wp", "x")["spec"]["replicas"] == 2
    done = kubectl.run("diff", "-f", "-", stdin=manifest(pool("new")))
    assert (done.returncode, "+kind: WorkerPool" in done.stdout) == (1, True)


def test_t021_replace_puts_another_object_in_the_place(kubectl: Kubectl) -> None:
    assert "not found" in kubectl.fails("replace", "-f", "-", stdin=manifest(pool("x")))
    kubectl.create(pool("x", warmPool=2))
    before = metadata_of(kubectl, "x")
    assert kubectl("replace", "-f", "-", stdin=manifest(pool("x", replicas=2))) == f"{POOL}/x replaced\n"
    after = kubectl.json("wp", "x")
    assert after["spec"] == {"replicas": 2, "template": {"image": IMAGE}}
    assert (after["metadata"]["uid"], after["metadata"]["generation"]) == (before["uid"], 2)


def test_t021_replace_with_a_stale_version_is_refused(kubectl: Kubectl) -> None:
    kubectl.create(pool("x"))
    stale = kubectl.json("wp", "x")
    kubectl("label", "wp/x", "a=b")
    message = kubectl.fails("replace", "-f", "-", stdin=manifest(stale))
    assert message.startswith("Error from server (Conflict): ")
    assert "the object has been modified; please apply your changes to the latest version and try again" in message


def test_t021_replace_by_force_makes_a_new_object(kubectl: Kubectl) -> None:
    kubectl.create(pool("x"))
    before = metadata_of(kubectl, "x")
    printed = kubectl("replace", "--force", "-f", "-", stdin=manifest(pool("x", replicas=3)))
    assert printed.splitlines()[-1] == f"{POOL}/x replaced"
    after = metadata_of(kubectl, "x")
    assert after["uid"] != before["uid"]
    assert after["generation"] == 1


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(["--type=merge", "-p", '{"spec":{"warmPool":3}}'], {"replicas": 2, "warmPool": 3}, id="merge"),
        pytest.param(["--type=merge", "-p", '{"spec":{"replicas":null}}'], {"replicas": 1}, id="merge_null"),
        pytest.param(["--type=merge", "-p", "spec:\n  warmPool: 3"], {"replicas": 2, "warmPool": 3}, id="merge_yaml"),
        pytest.param(["--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":7}]'], {"replicas": 7}, id="json"),
        pytest.param(
            ["--type=json", "-p", '[{"op":"test","path":"/spec/replicas","value":2},{"op":"remove","path":"/spec/replicas"}]'],
            {"replicas": 1},
            id="json_test",
        ),
    ],
)
def test_patch_changes_the_spec(kubectl: Kubectl, flags: list[str], expected: dict[str, Any]) -> None:
    kubectl.create(pool("x", replicas=2))
    assert kubectl("patch", "wp", "x", *flags) == f"{POOL}/x patched\n"
    assert kubectl.json("wp", "x")["spec"] == {"template": {"image": IMAGE}, **expected}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param(
            ["--type=merge", "-p", '{"spec":{"replicas":-1}}'],
            "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0",
            id="invalid",
        ),
        pytest.param(
            ["--type=json", "-p", '[{"op":"test","path":"/spec/replicas","value":9}]'],
            "The request is invalid: the server rejected our request due to an error",
            id="test",
        ),
        pytest.param(
            ["-p", '{"spec":{}}'], "application/strategic-merge-patch+json is not supported by clrk.apoxy.dev/v1alpha1", id="strategic"
        ),
    ],
)
def test_a_wrong_patch_is_refused_in_kubernetes_words(kubectl: Kubectl, flags: list[str], message: str) -> None:
    kubectl.create(pool("x", replicas=2))
    assert message.lower() in kubectl.fails("patch", "wp", "x", *flags).lower()
    assert kubectl.json("wp", "x")["spec"]["replicas"] == 2


def test_t038_what_changes_nothing_is_said_to(kubectl: Kubectl) -> None:
    kubectl.create(pool("x", replicas=2, labels={"a": "b"}))
    before = metadata_of(kubectl, "x")
    assert kubectl("patch", "wp/x", "--type=merge", "-p", '{"spec":{"replicas":2}}') == f"{POOL}/x patched (no change)\n"
    assert kubectl("label", "wp/x", "a=b") == f"{POOL}/x not labeled\n"
    assert kubectl("replace", "-f", "-", stdin=manifest(kubectl.json("wp", "x"))) == f"{POOL}/x replaced\n"
    assert metadata_of(kubectl, "x") == before


def test_t086_patch_of_the_status_changes_nothing_else(kubectl: Kubectl) -> None:
    kubectl.create(pool("x", replicas=2))
    patch = '{"status":{"readyReplicas":2},"spec":{"replicas":9},"metadata":{"labels":{"a":"b"}}}'
    assert kubectl("patch", "wp/x", "--subresource=status", "--type=merge", "-p", patch) == f"{POOL}/x patched\n"
    value = kubectl.json("wp", "x")
    assert (value["status"], value["spec"]["replicas"], value["metadata"]["generation"]) == ({"readyReplicas": 2}, 2, 1)
    kubectl("patch", "wp/x", "--subresource=status", "--type=json", "-p", '[{"op":"add","path":"/status/activeExecutions","value":1}]')
    assert kubectl.json("wp", "x")["status"] == {"readyReplicas": 2, "activeExecutions": 1}
    assert kubectl("get", "wp", "x", "--subresource=status", "-o", "jsonpath={.status.readyReplicas}") == "2"
    assert kubectl("edit", "wp/x", "--subresource=status", EDITOR="sed -i s/readyReplicas:.2/readyReplicas:\\ 1/") == f"{POOL}/x edited\n"
    assert kubectl.json("wp", "x")["status"]["readyReplicas"] == 1
    replaced = kubectl.json("wp", "x") | {"status": {"readyReplicas": 0}}
    assert kubectl("replace", "--subresource=status", "-f", "-", stdin=manifest(replaced)) == f"{POOL}/x replaced\n"
    assert kubectl.json("wp", "x")["status"] == {"readyReplicas": 0}


def test_label_and_annotate(kubectl: Kubectl) -> None:
    kubectl.create(pool("x"), pool("y"))
    assert kubectl("label", "wp/x", "a=b", "c=d") == f"{POOL}/x labeled\n"
    assert "already has a value (b), and --overwrite is false" in kubectl.fails("label", "wp/x", "a=z")
    assert kubectl("label", "wp/x", "a=z", "--overwrite") == f"{POOL}/x labeled\n"
    assert kubectl("label", "wp/x", "c-") == f"{POOL}/x unlabeled\n"
    assert kubectl("label", "wp", "--all", "all=yes") == f"{POOL}/x labeled\n{POOL}/y labeled\n"
    assert kubectl("annotate", "wp/x", "note=some text") == f"{POOL}/x annotated\n"
    metadata = metadata_of(kubectl, "x")
    assert (metadata["labels"], metadata["annotations"]) == ({"a": "z", "all": "yes"}, {"note": "some text"})
    assert metadata["generation"] == 1
    assert kubectl("annotate", "wp/x", "note-") == f"{POOL}/x annotated\n"
    assert kubectl("get", "wp", "-L", "a", "-l", "all=yes", "--no-headers").split()[-1] != ""
    assert "metadata.labels: Invalid value" in kubectl.fails(
        "patch", "wp/x", "--type=merge", "-p", '{"metadata":{"labels":{"b":"not valid"}}}'
    )


def test_edit_stores_what_the_editor_leaves(kubectl: Kubectl) -> None:
    kubectl.create(pool("x", replicas=2))
    assert kubectl("edit", "wp/x", EDITOR="sed -i s/replicas:.2/replicas:\\ 6/") == f"{POOL}/x edited\n"
    assert kubectl.json("wp", "x")["spec"]["replicas"] == 6
    done = kubectl.run("edit", "wp/x", EDITOR="true")
    assert (done.returncode, done.stderr) == (0, "Edit cancelled, no changes made.\n")


def test_edit_shows_what_is_wrong(kubectl: Kubectl) -> None:
    kubectl.create(pool("x", replicas=2))
    done = kubectl.run("edit", "wp/x", EDITOR="sed -i s/replicas:.2/replicas:\\ -6/")
    assert done.returncode == 1
    assert 'workerpools.clrk.apoxy.dev "x" is invalid' in done.stderr
    assert kubectl.json("wp", "x")["spec"]["replicas"] == 2


def test_t084_scale_writes_one_field(kubectl: Kubectl) -> None:
    kubectl.create(pool("x", replicas=2, warmPool=1))
    assert kubectl("scale", "workerpool", "x", "--replicas=5") == f"{POOL}/x scaled\n"
    value = kubectl.json("wp", "x")
    assert (value["spec"], value["metadata"]["generation"]) == ({"replicas": 5, "warmPool": 1, "template": {"image": IMAGE}}, 2)
    assert kubectl.fails("scale", "wp/x", "--current-replicas=2", "--replicas=7") == "error: Expected replicas to be 2, was 5\n"
    assert kubectl("scale", "wp/x", "--current-replicas=5", "--replicas=0") == f"{POOL}/x scaled\n"
    assert kubectl.json("wp", "x")["spec"]["replicas"] == 0
    kubectl.create(pool("y"))
    assert kubectl("scale", "wp", "--all", "--replicas=3") == f"{POOL}/x scaled\n{POOL}/y scaled\n"
    assert "not found" in kubectl.at("default").fails("scale", "wp/nope", "--replicas=1")
    kubectl.create(worker("w"))
    assert "not found" in kubectl.fails("scale", "localworker/w", "--replicas=1")


# What kubectl says of fields that nobody knows, and of values that are wrong


def test_t015_unknown_fields_are_an_error_unless_the_user_says_otherwise(kubectl: Kubectl) -> None:
    value = manifest(pool("x", replicaz=2, warmPools=1))
    message = kubectl.fails("create", "-f", "-", stdin=value)
    assert 'strict decoding error: unknown field "spec.replicaz", unknown field "spec.warmPools"' in message
    done = kubectl.run("create", "-f", "-", "--validate=warn", "--dry-run=server", stdin=value)
    assert (done.returncode, done.stdout) == (0, f"{POOL}/x created (server dry run)\n")
    assert sorted(done.stderr.splitlines()) == ['Warning: unknown field "spec.replicaz"', 'Warning: unknown field "spec.warmPools"']
    assert kubectl("create", "-f", "-", "--validate=ignore", stdin=value) == f"{POOL}/x created\n"
    assert kubectl.json("wp", "x")["spec"] == {"replicas": 1, "template": {"image": IMAGE}}


def test_duplicate_fields_are_told(kubectl: Kubectl) -> None:
    text = json.dumps(pool("x")).replace('"spec": {', '"spec": {"replicas": 1, "replicas": 2, ')
    done = kubectl.run("create", "-f", "-", "--validate=warn", "--dry-run=server", stdin=text)
    assert done.returncode == 0


def test_every_wrong_field_is_named(kubectl: Kubectl) -> None:
    value = pool("x", replicas=-1)
    value["spec"]["template"] = {"image": "https://r/w", "imagePullPolicy": "Sometimes"}
    message = kubectl.fails("create", "-f", "-", stdin=manifest(value))
    assert message.startswith('The WorkerPool "x" is invalid: \n* spec.')
    assert "* spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0\n" in message
    assert (
        '* spec.template.imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"\n' in message
    )
    value = pool("x")
    value["spec"]["template"]["image"] = "https://r/w"
    assert kubectl.fails("create", "-f", "-", stdin=manifest(value)) == (
        'The WorkerPool "x" is invalid: spec.template.image: Invalid value: "https://r/w": must be an image reference without a scheme '
        "such as 'https://'\n"
    )


def test_warnings_of_a_kind_are_printed(kubectl: Kubectl) -> None:
    value = pool("x")
    value["spec"]["template"]["env"] = [{"name": "POD_NAME"}]
    done = kubectl.run("apply", "-f", "-", stdin=manifest(value))
    assert (done.returncode, done.stdout) == (0, f"{POOL}/x created\n")
    assert done.stderr == "Warning: spec.template.env[0].name: POD_NAME is set by the controller, this entry is dropped\n"
