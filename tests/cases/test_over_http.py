"""Cases that take the whole server, as a process of its own over the embedded store: restarts, parallel clients, other people's clients."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any

import kubernetes
import pytest
from kubernetes.client.exceptions import ApiException

from tests.apiserver.process import ROOT, Serving, serving
from tests.tools.etcd import Etcd

GROUP = "/apis/clrk.apoxy.dev/v1alpha1"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("cases") / "clrk") as running:
        yield running


def pools(namespace: str) -> str:
    return f"{GROUP}/namespaces/{namespace}/workerpools"


def pool(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name} if name else {"generateName": "pool-"}
    return {
        "apiVersion": "clrk.apoxy.dev/v1alpha1",
        "kind": "WorkerPool",
        "metadata": metadata,
        "spec": {"template": {"image": "w:1"}, **spec},
    }


def send(
    server: Serving, method: str, path: str, body: bytes | None = None, media_type: str = "application/json"
) -> tuple[HTTPResponse, bytes]:
    """One request with any body, on a connection of its own."""
    with closing(HTTPSConnection(server.url.removeprefix("https://"), context=server.tls)) as connection:
        connection.request(method, path, body, {"Content-Type": media_type})
        response = connection.getresponse()
        return response, response.read()


def events(server: Serving, path: str) -> Iterator[dict[str, Any]]:
    """The events of a watch, to its end."""
    with closing(HTTPSConnection(server.url.removeprefix("https://"), context=server.tls, timeout=20)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == 200
        for line in response:
            yield json.loads(line)


def version_of(server: Serving, path: str) -> str:
    version: str = server.request("GET", path)[1]["metadata"]["resourceVersion"]
    return version


@pytest.mark.parametrize(
    ("method", "path", "body", "media_type", "code", "reason"),
    [
        pytest.param("GET", "/nope", None, "application/json", 404, "NotFound", id="unknown_path"),
        pytest.param("PUT", pools("t006"), b"{}", "application/json", 405, "MethodNotAllowed", id="put_on_a_collection"),
        pytest.param("POST", f"{pools('t006')}/x", b"{}", "application/json", 405, "MethodNotAllowed", id="post_on_an_object"),
        pytest.param("POST", pools("t006"), b"{nope", "application/json", 400, "BadRequest", id="malformed"),
        pytest.param("POST", pools("t006"), b"{}", "text/plain", 415, "UnsupportedMediaType", id="media_type"),
        pytest.param("POST", pools("t006"), b" " * 4 * 2**20, "application/json", 413, "RequestEntityTooLarge", id="four_mebibytes"),
    ],
)
def test_t006_every_error_is_a_status(
    server: Serving, method: str, path: str, body: bytes | None, media_type: str, code: int, reason: str
) -> None:
    response, content = send(server, method, path, body, media_type)
    status = json.loads(content)
    assert response.headers["Content-Type"] == "application/json"
    assert (response.status, status["code"], status["reason"]) == (code, code, reason)
    assert (status["kind"], status["apiVersion"], status["metadata"], status["status"]) == ("Status", "v1", {}, "Failure")


def test_t006_without_its_store_the_server_says_when_to_come_again(tmp_path: Path) -> None:
    etcd = Etcd(tmp_path)
    etcd.start()
    try:
        with serving(tmp_path / "clrk", f"--etcd-servers={etcd.url}", quiet=False) as server:
            etcd.stop()
            for method, path, value in (("GET", pools("a"), None), ("POST", pools("a"), pool("x"))):
                response, content = send(server, method, path, None if value is None else json.dumps(value).encode())
                status = json.loads(content)
                assert (response.status, status["reason"]) in ((503, "ServiceUnavailable"), (504, "Timeout"))
                assert response.headers.get("Retry-After") == str(status["details"]["retryAfterSeconds"])
    finally:
        etcd.stop()


def test_t014_no_dry_run_is_seen_by_a_watch(server: Serving) -> None:
    path = pools("t014")
    _, created = server.request("POST", path, pool("x"))
    start = created["metadata"]["resourceVersion"]
    dry: list[tuple[str, str, Any, str]] = [
        ("POST", path, pool("y"), "application/json"),
        ("PUT", f"{path}/x", {**created, "spec": {**created["spec"], "warmPool": 1}}, "application/json"),
        ("PATCH", f"{path}/x", {"spec": {"warmPool": 1}}, MERGE),
        ("PATCH", f"{path}/x", [{"op": "add", "path": "/spec/warmPool", "value": 1}], JSON_PATCH),
        ("PUT", f"{path}/x/status", {**created, "status": {"readyReplicas": 1}}, "application/json"),
        ("PATCH", f"{path}/x/scale", {"spec": {"replicas": 5}}, MERGE),
        ("DELETE", f"{path}/x", None, "application/json"),
        ("DELETE", path, None, "application/json"),
    ]
    for method, where, value, media_type in dry:
        code, _ = server.request(method, f"{where}?dryRun=All", value, media_type=media_type)
        assert code in (200, 201)
        code, status = server.request(method, f"{where}?dryRun=true", value, media_type=media_type)
        assert (code, status["reason"]) == (422, "Invalid")
        assert 'dryRun: Unsupported value: ["true"]: supported values: "All"' in status["message"]
    assert server.request("DELETE", f"{path}/x", {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]})[0] == 200
    assert server.request("GET", f"{path}/x")[1] == created
    code, marker = server.request("POST", path, pool("marker"))
    assert code == 201
    assert int(marker["metadata"]["resourceVersion"]) == int(start) + 1
    assert next(events(server, f"{path}?watch=true&resourceVersion={start}"))["object"] == marker


def test_t017_a_large_integer_keeps_its_digits_everywhere(tmp_path: Path) -> None:
    path, large = pools("t017"), 9007199254740993
    value = pool("x")
    value["spec"]["template"]["tolerations"] = [{"key": "a", "effect": "NoExecute", "tolerationSeconds": large}]

    def digits(obj: dict[str, Any]) -> int:
        seconds: int = obj["spec"]["template"]["tolerations"][0]["tolerationSeconds"]
        return seconds

    with serving(tmp_path / "clrk") as server:
        assert digits(server.request("POST", path, value)[1]) == large
        assert digits(server.request("PATCH", f"{path}/x", {"spec": {"warmPool": 1}}, media_type=MERGE)[1]) == large
        assert digits(server.request("GET", path)[1]["items"][0]) == large
        assert digits(next(events(server, f"{path}?watch=true"))["object"]) == large
    with serving(tmp_path / "clrk") as server:
        assert digits(server.request("GET", f"{path}/x")[1]) == large
        assert b"e+" not in send(server, "GET", f"{path}/x")[1]


def test_t018_a_saved_copy_is_refused_for_its_version_alone(server: Serving) -> None:
    path = pools("t018")
    _, saved = server.request("POST", path, pool("x", warmPool=1))
    server.request("DELETE", f"{path}/x")
    code, status = server.request("POST", path, saved)
    assert (code, status["reason"]) == (400, "BadRequest")
    assert "resourceVersion should not be set on objects to be created" in status["message"]
    assert server.request("GET", f"{path}/x")[0] == 404
    del saved["metadata"]["resourceVersion"]
    saved["metadata"] |= {"generation": 7, "deletionTimestamp": "2026-01-02T03:04:05Z", "selfLink": "/x"}
    code, again = server.request("POST", path, saved)
    assert (code, again["metadata"]["generation"]) == (201, 1)
    assert again["metadata"]["uid"] != saved["metadata"]["uid"]
    assert not {"deletionTimestamp", "selfLink"} & set(again["metadata"])


@pytest.mark.parametrize("each", [pytest.param(100, id="short"), pytest.param(2_500, id="as reported", marks=pytest.mark.slow)])
def test_t019_many_clients_get_generated_names_that_differ(server: Serving, each: int) -> None:
    def generate(count: int) -> list[tuple[int, Any]]:
        return server.requests(("POST", pools(f"t019-{each}"), pool("")) for _ in range(count))

    with ThreadPoolExecutor(8) as threads:
        answers = [answer for batch in threads.map(generate, [each] * 8) for answer in batch]
    assert {code for code, _ in answers} == {201}
    assert len({value["metadata"]["name"] for _, value in answers}) == 8 * each


def test_t030_generation_counts_changes_of_the_desired_state(server: Serving) -> None:
    path = f"{pools('t030')}/x"
    _, created = server.request("POST", pools("t030"), {**pool("x"), "status": {"readyReplicas": 9}})
    assert "status" not in created
    generations = [created["metadata"]["generation"]]

    def then(method: str, where: str, value: Any, media_type: str = MERGE) -> None:
        code, _ = server.request(method, where, value, media_type=media_type)
        assert code == 200
        generations.append(server.request("GET", path)[1]["metadata"]["generation"])

    then("PATCH", path, {"metadata": {"labels": {"a": "b"}}})
    then("PATCH", path, {"metadata": {"annotations": {"a": "b"}}})
    then("PUT", path, server.request("GET", path)[1], "application/json")
    then("PATCH", path, {"spec": {"replicas": 4}})
    then("PUT", f"{path}/status", {**server.request("GET", path)[1], "status": {"readyReplicas": 1}}, "application/json")
    then("PATCH", f"{path}/scale", {"spec": {"replicas": 5}})
    then("PATCH", path, {"metadata": {"finalizers": ["x.example/f"]}})
    then("DELETE", path, None, "application/json")
    then("PATCH", path, {"metadata": {"generation": 99}})
    then("DELETE", path, None, "application/json")
    assert generations == [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 4]


def test_t056_a_version_from_before_the_database_was_lost_is_expired(tmp_path: Path) -> None:
    path, data = pools("t056"), tmp_path / "clrk"
    with serving(data) as server:
        server.requests(("POST", path, pool(f"x{number}")) for number in range(20))
        version = version_of(server, path)
    for file in data.iterdir():
        if file.name not in ("pki", "kubeconfig"):
            shutil.rmtree(file) if file.is_dir() else file.unlink()
    with serving(data) as server:
        event = next(events(server, f"{path}?watch=true&resourceVersion={version}"))
        assert event["type"] == "ERROR"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


def test_t057_the_official_client_understands_that_a_version_has_expired(tmp_path: Path) -> None:
    path = pools("t057")
    with serving(tmp_path / "clrk") as server:
        server.requests(("POST", path, pool(f"x{number}")) for number in range(5))
    compact(tmp_path / "clrk")
    with serving(tmp_path / "clrk") as server, closing(kubernetes.config.new_client_from_config(str(server.kubeconfig))) as client:  # type: ignore[no-untyped-call]
        list_pools = kubernetes.client.CustomObjectsApi(client).list_namespaced_custom_object
        where = ("clrk.apoxy.dev", "v1alpha1", "t057", "workerpools")
        with pytest.raises(ApiException) as raised:
            next(kubernetes.watch.Watch().stream(list_pools, *where, resource_version="2"))  # type: ignore[no-untyped-call]
        assert (raised.value.status, raised.value.reason[:7]) == (410, "Expired")


def compact(data: Path) -> None:
    """Forget the history of a store that nobody serves."""
    command = [sys.executable, "-m", "apiserver", "store", "compact", f"--data-dir={data}"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def test_t083_discovery_lists_the_scale_of_autoscaling(server: Serving) -> None:
    resources = {resource["name"]: resource for resource in server.request("GET", GROUP)[1]["resources"]}
    scale = resources["workerpools/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_t097_the_first_object_is_in_get_list_and_watch(tmp_path: Path, restart: bool) -> None:
    kinds: dict[str, Callable[[str], dict[str, Any]]] = {
        f"{GROUP}/namespaces/{{}}/workerpools": pool,
        "/apis/worker.saved.sh/v1alpha1/namespaces/{}/localworkers": worker,
    }
    places = [(path.format(namespace), make) for path, make in kinds.items() for namespace in ("a", "b")]
    for number in range(3):
        data = tmp_path / f"clrk-{number}"
        with serving(data) as server, ThreadPoolExecutor(2 * len(places)) as threads:
            watches = [events(server, f"{path}?watch=true&timeoutSeconds=10") for path, _ in places]
            seen = [threads.submit(next, watch) for watch in watches]
            created = list(threads.map(lambda place: server.request("POST", place[0], place[1]("first"))[1], places))
            assert [event.result()["object"] for event in seen] == created
            if not restart:
                _agree(server, places, created)
        if restart:
            with serving(data) as server:
                _agree(server, places, created)


def worker(name: str) -> dict[str, Any]:
    return {"apiVersion": "worker.saved.sh/v1alpha1", "kind": "LocalWorker", "metadata": {"name": name}, "spec": {}}


def _agree(server: Serving, places: list[tuple[str, Any]], created: list[Any]) -> None:
    for (path, _), value in zip(places, created, strict=True):
        assert server.request("GET", f"{path}/first")[1] == value
        assert server.request("GET", path)[1]["items"] == [value]
        assert next(events(server, f"{path}?watch=true&timeoutSeconds=10"))["object"] == value


def test_t064_a_collection_is_not_deleted_by_a_field_that_cannot_be_selected(server: Serving) -> None:
    path = pools("t064")
    server.requests(("POST", path, pool(name)) for name in ("x", "y"))
    for selector in ("spec.replicas%3D1", "metadata.uid%3D1", "metadata.name"):
        code, status = server.request("DELETE", f"{path}?fieldSelector={selector}")
        assert (code, status["reason"]) == (400, "BadRequest")
    assert len(server.request("GET", path)[1]["items"]) == 2
    assert server.request("DELETE", f"{path}?fieldSelector=metadata.name%3Dx")[0] == 200
    assert [item["metadata"]["name"] for item in server.request("GET", path)[1]["items"]] == ["y"]


def test_t065_a_collection_ends_where_its_namespace_ends(server: Serving) -> None:
    namespaces = ("t065", "t065-b", "t065b", "b")
    for namespace in namespaces:
        server.request("POST", pools(namespace), pool("x"))
    assert len(server.request("DELETE", pools("t065"))[1]["items"]) == 1
    assert [len(server.request("GET", pools(namespace))[1]["items"]) for namespace in namespaces] == [0, 1, 1, 1]


@pytest.mark.parametrize("subresource", ["status", "scale"])
def test_t114_a_subresource_cannot_be_watched(server: Serving, subresource: str) -> None:
    """As in kube-apiserver, the parameter means nothing for one object, and the old form of the address names the verb."""
    path = pools("t114w")
    server.request("POST", path, pool("x"))
    code, value = server.request("GET", f"{path}/x/{subresource}?watch=true")
    assert (code, value["kind"]) == (200, "WorkerPool" if subresource == "status" else "Scale")
    code, status = server.request("GET", f"{path.replace('/namespaces', '/watch/namespaces')}/x/{subresource}")
    assert (code, status["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/x"),
        ("POST", "/x/status"),
        ("PUT", ""),
        ("PATCH", ""),
        ("DELETE", "/x/scale"),
        ("DELETE", "/x/status"),
    ],
)
def test_t114_a_verb_that_is_not_listed_is_a_405_and_no_list(server: Serving, method: str, path: str) -> None:
    server.request("POST", pools("t114"), pool("x"))
    code, status = server.request(method, f"{pools('t114')}{path}", {} if method != "GET" else None)
    assert (code, status["reason"]) == (405, "MethodNotAllowed")
