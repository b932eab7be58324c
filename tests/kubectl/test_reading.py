"""kubectl get in all its forms, watches included, and describe."""

from __future__ import annotations

import json
import re
from contextlib import closing
from http.client import HTTPConnection

import pytest
import yaml

from tests.kubectl.running import IMAGE, Kubectl, pool, rows, worker

HEADER = ["NAME", "REPLICAS", "READY", "ACTIVE", "AGE"]
CONDITION = {"type": "Polling", "status": "True", "reason": "Polls", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}


@pytest.fixture
def kubectl(kubectl: Kubectl) -> Kubectl:
    """With three pools and a worker that polls."""
    kubectl.create(
        pool("one", labels={"tier": "gold", "zone": "a"}, replicas=3),
        pool("three", labels={"tier": "gold", "zone": "b"}, replicas=2),
        pool("two", replicas=1),
        worker("backups", image="w:1", configSecretRef="config"),
    )
    for resource, status in (("wp/one", {"readyReplicas": 2, "activeExecutions": 5}), ("localworker/backups", {"conditions": [CONDITION]})):
        kubectl("patch", resource, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    return kubectl


def names(table: str) -> list[str]:
    return [line[0] for line in rows(table)[1:]]


def aged(table: str) -> list[list[str]]:
    """The words of each line, with an age in the place of ages."""
    return [["AGE" if re.fullmatch(r"\d+[smh]", word) else word for word in line] for line in rows(table)]


def test_get_prints_our_columns(kubectl: Kubectl) -> None:
    assert aged(kubectl("get", "workerpools")) == [HEADER, ["one", "3", "2", "5", "AGE"], ["three", "2", "AGE"], ["two", "1", "AGE"]]
    assert aged(kubectl("get", "localworkers")) == [
        ["NAME", "IMAGE", "CONFIG", "POLLING", "AGE"],
        ["backups", "w:1", "config", "True", "AGE"],
    ]


def test_t054_get_wide_adds_the_image(kubectl: Kubectl) -> None:
    assert aged(kubectl("get", "wp", "one", "-o", "wide")) == [[*HEADER, "IMAGE"], ["one", "3", "2", "5", "AGE", IMAGE]]


def test_t054_get_of_two_kinds_prints_two_tables(kubectl: Kubectl) -> None:
    first, second = kubectl("get", "wp,localworkers").split("\n\n")
    assert names(first) == [f"workerpool.clrk.apoxy.dev/{name}" for name in ("one", "three", "two")]
    assert names(second) == ["localworker.worker.saved.sh/backups"]


def test_get_all_namespaces_shows_where_things_are(kubectl: Kubectl) -> None:
    other = kubectl.beside("other")
    other.create(pool("elsewhere"))
    lines = rows(kubectl("get", "wp", "-A"))
    assert lines[0] == ["NAMESPACE", *HEADER]
    assert {(other.namespace, "elsewhere"), (kubectl.namespace, "one")} <= {(line[0], line[1]) for line in lines}
    assert names(kubectl("get", "wp")) == ["one", "three", "two"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["-o", "name"], "".join(f"workerpool.clrk.apoxy.dev/{name}\n" for name in ("one", "three", "two")), id="name"),
        pytest.param(["-o", "jsonpath={.items[*].spec.replicas}"], "3 2 1", id="jsonpath"),
        pytest.param(["one", "-o", "jsonpath={.spec.template.image}"], IMAGE, id="jsonpath_of_one"),
        pytest.param(["two", "-o", "custom-columns=N:.metadata.name,R:.spec.replicas"], "N     R\ntwo   1\n", id="columns"),
        pytest.param(["one", "-o", "go-template={{.spec.replicas}}"], "3", id="go_template"),
        pytest.param(["-l", "tier=gold", "-o", "jsonpath={.items[*].metadata.name}"], "one three", id="label"),
        pytest.param(["-l", "tier=gold,zone!=a", "-o", "jsonpath={.items[*].metadata.name}"], "three", id="labels"),
        pytest.param(["-l", "!tier", "-o", "jsonpath={.items[*].metadata.name}"], "two", id="no_label"),
        pytest.param(["-l", "zone in (a,b)", "-o", "jsonpath={.items[*].metadata.name}"], "one three", id="label_in"),
        pytest.param(["--field-selector", "metadata.name=two", "-o", "jsonpath={.items[*].metadata.name}"], "two", id="field"),
        pytest.param(["--field-selector", "metadata.name!=two", "-o", "jsonpath={.items[*].metadata.name}"], "one three", id="field_not"),
        pytest.param(["--sort-by=.spec.replicas", "-o", "jsonpath={.items[*].metadata.name}"], "two three one", id="sorted"),
        pytest.param(["--sort-by=.metadata.name", "-o", "jsonpath={.items[*].metadata.name}"], "one three two", id="sorted_text"),
        pytest.param(["--chunk-size=1", "-o", "jsonpath={.items[*].metadata.name}"], "one three two", id="pages"),
        pytest.param(["--chunk-size=0", "-o", "jsonpath={.items[*].metadata.name}"], "one three two", id="no_pages"),
        pytest.param(["nope", "--ignore-not-found"], "", id="ignored"),
    ],
)
def test_get_prints(kubectl: Kubectl, arguments: list[str], expected: str) -> None:
    assert kubectl("get", "wp", *arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["-l", "tier=gold"], ["one", "three"], id="label"),
        pytest.param(["--field-selector=metadata.name=two"], ["two"], id="field"),
        pytest.param(["--sort-by=.spec.replicas"], ["two", "three", "one"], id="sorted"),
        pytest.param(["--chunk-size=2"], ["one", "three", "two"], id="pages"),
        pytest.param(["two", "one"], ["two", "one"], id="named"),
    ],
)
def test_tables_can_be_selected_sorted_and_paged(kubectl: Kubectl, arguments: list[str], expected: list[str]) -> None:
    assert names(kubectl("get", "wp", *arguments)) == expected


def test_get_prints_the_object_in_json_and_yaml(kubectl: Kubectl) -> None:
    value = kubectl.json("wp", "one")
    assert (value["apiVersion"], value["kind"]) == ("clrk.apoxy.dev/v1alpha1", "WorkerPool")
    assert value["spec"] == {"replicas": 3, "template": {"image": IMAGE}}
    assert yaml.safe_load(kubectl("get", "wp", "one", "-o", "yaml")) == value
    listed = kubectl.json("wp")
    assert (listed["kind"], [item["metadata"]["name"] for item in listed["items"]]) == ("List", ["one", "three", "two"])
    assert listed["items"][0] == value


def test_get_reads_status_and_scale(kubectl: Kubectl) -> None:
    assert kubectl.json("wp", "one", "--subresource=status") == kubectl.json("wp", "one")
    assert aged(kubectl("get", "wp", "one", "--subresource=scale")) == [["NAME", "DESIRED", "AVAILABLE", "AGE"], ["one", "3", "2", "AGE"]]
    scale = kubectl.json("wp", "one", "--subresource=scale")
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 3},
        {"replicas": 2, "selector": "clrk.apoxy.dev/worker-pool=one"},
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get", "wp", "nope"], 'Error from server (NotFound): workerpools.clrk.apoxy.dev "nope" not found\n'),
        (["get", "nopes"], 'error: the server doesn\'t have a resource type "nopes"\n'),
        (
            ["get", "wp", "--field-selector=spec.replicas=1"],
            'Error from server (BadRequest): Unable to find "clrk.apoxy.dev/v1alpha1, Resource=workerpools" that match label selector "", '
            'field selector "spec.replicas=1": field label not supported: spec.replicas\n',
        ),
    ],
    ids=["object", "kind", "T064_field"],
)
def test_what_is_not_there_is_told_in_kubernetes_words(kubectl: Kubectl, arguments: list[str], message: str) -> None:
    # Elsewhere kubectl asks for the Namespace when an object is missing, and a server without Namespaces has a 404 for that as well.
    assert kubectl.at("default").fails(*arguments) == message


def test_describe_prints_the_whole_object(kubectl: Kubectl) -> None:
    printed = kubectl("describe", "wp", "one")
    for text in (
        r"^Name: +one$",
        rf"^Namespace: +{kubectl.namespace}$",
        r"^Labels: +tier=gold\n +zone=a$",
        r"^API Version: +clrk\.apoxy\.dev/v1alpha1$",
        r"^Kind: +WorkerPool$",
        r"^  Replicas: +3$",
        rf"^    Image: +{IMAGE}$",
        r"^  Ready Replicas: +2$",
        r"^Events: +<none>$",
    ):
        assert re.search(text, printed, re.MULTILINE), printed


def test_t054_watching_prints_what_is_there_and_each_change_with_all_columns(kubectl: Kubectl) -> None:
    with kubectl.started("get", "wp", "-w", "-o", "wide") as watching:
        assert watching.stdout is not None
        first = [watching.stdout.readline() for _ in range(4)]
        assert aged("".join(first))[:2] == [[*HEADER, "IMAGE"], ["one", "3", "2", "5", "AGE", IMAGE]]
        kubectl("scale", "wp", "two", "--replicas=7")
        assert aged(watching.stdout.readline()) == [["two", "7", "AGE", IMAGE]]
        kubectl("delete", "wp", "three")
        assert aged(watching.stdout.readline()) == [["three", "2", "AGE", IMAGE]]


def test_watch_only_begins_with_the_next_change(kubectl: Kubectl) -> None:
    with kubectl.started("get", "wp", "--watch-only", "--output-watch-events", "-v=6") as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert any("watch=true" in line for line in watching.stderr)  # it tells of a response as soon as it begins
        kubectl("label", "wp", "two", "tier=silver")
        lines = [watching.stdout.readline() for _ in range(2)]
    assert rows(lines[0]) == [["EVENT", *HEADER]]
    assert rows(lines[1])[0][:2] == ["MODIFIED", "two"]


def test_watching_one_object_sees_its_end(kubectl: Kubectl) -> None:
    with kubectl.started("get", "wp", "one", "-w", "--output-watch-events") as watching:
        assert watching.stdout is not None
        assert rows(watching.stdout.readline()) == [["EVENT", *HEADER]]
        assert rows(watching.stdout.readline())[0][:2] == ["ADDED", "one"]
        kubectl("delete", "wp", "two")
        kubectl("delete", "wp", "one")
        assert rows(watching.stdout.readline())[0][:2] == ["DELETED", "one"]


def test_t053_no_object_is_lost_between_pages(kubectl: Kubectl) -> None:
    many = kubectl.beside("many")
    path = f"/apis/clrk.apoxy.dev/v1alpha1/namespaces/{many.namespace}/workerpools"
    answers = many.server.requests(("POST", path, pool(f"pool-{number}")) for number in range(1201))
    assert {code for code, _ in answers} == {201}
    for flags in ([], ["--chunk-size=0"], ["--chunk-size=100"]):
        assert len(many("get", "wp", "--no-headers", *flags).splitlines()) == 1201
    assert sum(line.startswith(many.namespace) for line in many("get", "wp", "-A", "--no-headers").splitlines()) == 1201


def test_t069_small_events_come_through_kubectl_proxy_at_once(kubectl: Kubectl) -> None:
    """The head of the response before any event, and each event without another one behind it; a time-out would end what waits in vain."""
    empty = kubectl.beside("empty")
    with kubectl.started("proxy", "--port=0") as proxy:
        assert proxy.stdout is not None
        port = int(proxy.stdout.readline().rpartition(":")[2])
        with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
            connection.request("GET", f"/apis/clrk.apoxy.dev/v1alpha1/namespaces/{empty.namespace}/workerpools?watch=true")
            response = connection.getresponse()
            assert response.status == 200
            for name in ("one", "two"):
                empty.create(pool(name))
                assert json.loads(response.readline())["object"]["metadata"]["name"] == name
