"""What is asked about a request before it is let through: both servers send the same reviews, which one place answers for both."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.process import serving
from tests.differential.conftest import Pair, paired
from tests.differential.exchange import ALL_POOLS, POOLS, WORKERS, Request, filled, send
from tests.differential.lockstep import Tally
from tests.differential.memory import Memory
from tests.differential.objects import apply, create, delete, delete_all, get, listed, merge, pool, update
from tests.differential.side import Side, side

pytestmark = [pytest.mark.differential, pytest.mark.slow]

Spec = dict[str, Any]
_SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 2}}
_WATCH = f"{ALL_POOLS.removesuffix('/workerpools')}/watch/namespaces/{{{{ns}}}}/workerpools?timeoutSeconds=1&labelSelector=a"
_SELECTORS = "labelSelector=a,b%3Dc,d+in+(e,f),g+notin+(h),!i,j!%3Dk&fieldSelector=metadata.namespace%3Dx,metadata.name!%3Dy"
_AS = {"Impersonate-User": "bob"}
REQUESTS = (
    create(pool("a", replicas=1)),
    create(pool("", metadata={"generateName": "g-"}), "?dryRun=All"),
    get("a"),
    send("get", "HEAD", f"{POOLS}/a"),
    send("get", "OPTIONS", f"{POOLS}/a"),
    get("a/status"),
    get("a/scale"),
    get("a/nothing"),
    listed(),
    listed(path=ALL_POOLS),
    listed(path=WORKERS),
    listed(path=WORKERS.replace("localworkers", "nothing")),
    listed(f"?{_SELECTORS}"),
    listed("?labelSelector=("),
    listed("?fieldSelector=metadata.name%3Da&watch=0"),
    listed(f"?watch=true&timeoutSeconds=1&{_SELECTORS}"),
    listed("?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Da"),
    send("watch", "GET", _WATCH),
    update("a", pool("a", replicas=2)),
    update("a/status", pool("a", replicas=2)),
    update("a/scale", _SCALE),
    merge("a", {"spec": {"replicas": 3}}),
    merge("a/status", {"status": {"readyReplicas": 3}}),
    merge("a/scale", {"spec": {"replicas": 4}}),
    apply("ap", pool("ap", replicas=1)),
    apply("ap", pool("ap", replicas=2)),
    listed(headers={**_AS, "Impersonate-Group": "dev", "Impersonate-Uid": "7", "Impersonate-Extra-Acme.io%2fA": "b"}),
    listed(f"?{_SELECTORS}", headers=_AS),
    get("a", headers={"Impersonate-User": "system:serviceaccount:shop:robot"}),
    get("a", headers={"Impersonate-User": "system:node:n1"}),
    send("nonresource", "GET", "/metrics", headers={"Impersonate-User": "carol"}),
    delete("a", "?dryRun=All"),
    delete("a"),
    delete_all(f"?{_SELECTORS}"),
    delete_all(),
    send("nonresource", "GET", "/metrics"),
    send("nonresource", "GET", "/nothing/at/all?watch=true"),
    send("nonresource", "POST", "/nothing"),
)


@dataclass(slots=True)
class Judge:
    """Allows everything, and remembers what it was asked."""

    kubeconfig: Path
    asked: list[Spec] = field(default_factory=list)


@contextmanager
def judge(folder: Path) -> Iterator[Judge]:
    """Serve it, at an address that both servers can be told."""
    found = Judge(folder / "judge.kubeconfig")

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if review["spec"]["user"] not in ("admin", "system:apiserver"):
                found.asked.append(review["spec"])
            body = json.dumps({**review, "status": {"allowed": True}}).encode()
            self.send_response(201)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.daemon_threads = True
        address = f"http://127.0.0.1:{server.server_address[1]}"
        cluster, context = {"name": "judge", "cluster": {"server": address}}, {"name": "judge", "context": {"cluster": "judge"}}
        found.kubeconfig.write_text(json.dumps({"current-context": "judge", "contexts": [context], "clusters": [cluster]}))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Judge, Pair]]:
    folder = tmp_path_factory.mktemp("judged")
    with judge(folder) as found:
        flags = (
            "--authorization-mode=Webhook",
            f"--authorization-webhook-config-file={found.kubeconfig}",
            "--authorization-webhook-version=v1",
            "--authorization-webhook-cache-authorized-ttl=0s",
            "--authorization-webhook-cache-unauthorized-ttl=0s",
        )
        with paired(folder, real_flags=flags) as pair:
            yield found, pair


async def test_both_ask_the_same(judged: tuple[Judge, Pair], tally: Tally, tmp_path: Path) -> None:
    found, pair = judged
    flags = (
        f"--kubeconfig={pair.kubeconfig}",
        f"--authorization-kubeconfig={found.kubeconfig}",
        "--authorization-webhook-cache-authorized-ttl=0s",
    )
    body = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "judged"}}).encode()
    with serving(tmp_path / "ours", *pair.our_flags, *flags) as server:
        async with side("kube-apiserver", pair.real_url, pair.contexts) as real, side("this server", server.url, pair.contexts) as ours:
            await real.ask("POST", "/api/v1/namespaces", body, {"Content-Type": "application/json"}, "admin")
            for path in (POOLS, WORKERS):  # kube-apiserver opens its storage of custom resources when it is first asked
                await real.ask("GET", filled(path, Memory("judged")), None, {}, "admin")
            for request in REQUESTS:
                asked = [await _asked(found, one, request) for one in (real, ours)]
                assert asked[0] == asked[1], request
                assert asked[0], request
                tally.exchanges["judged"] += 1


async def _asked(found: Judge, one: Side, request: Request) -> list[Spec]:
    """What is asked before this request is answered."""
    found.asked.clear()
    body = request.body.encode() if isinstance(request.body, str) else None
    await one.ask(request.method, filled(request.path, Memory("judged")), body, request.headers, "alice")
    return list(found.asked)
