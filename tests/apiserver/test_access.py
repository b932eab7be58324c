"""Which parts decide, by what is configured."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from apiserver import access
from apiserver.access import Access, make_access
from apiserver.app import build_app
from apiserver.auth.bearer_token import BearerToken
from apiserver.certificates import Certificates, write_kubeconfig
from apiserver.cluster import kubeconfig
from apiserver.config import AuthConfig, Config, StartupError, TLSConfig
from apiserver.meta.options import DeleteOptions
from storage.memory import MemoryStore
from tests.apiserver.auth.signing import authority

CLIENTS, PROXIES, NEW = authority("clients"), authority("proxies"), authority("new")


@pytest.fixture(autouse=True)
def outside_of_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


@pytest.fixture
def made(pki: Certificates, tmp_path: Path) -> Callable[..., Access]:
    def make(*, client_ca_file: Path | None = None, **auth: object) -> Access:
        config = Config(data_dir=tmp_path, tls=TLSConfig(client_ca_file=client_ca_file), auth=AuthConfig(**auth))  # type: ignore[arg-type]
        return make_access(config, pki.authority.certificate)

    return make


@pytest.fixture
def way(pki: Certificates, tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    write_kubeconfig(file, server="https://127.0.0.1:1", authority_pem=pki.authority.certificate_file.read_bytes(), client=pki.admin)
    return file


def delegated(access: Access) -> bool:
    return any(isinstance(one, BearerToken) for one in access.authenticators)


def test_alone_only_its_own_authority_counts(made: Callable[..., Access], pki: Certificates) -> None:
    alone = made()
    assert (delegated(alone), alone.anonymous, alone.mutators, alone.tasks) == (False, None, (), ())
    assert alone.trust.certificates == [pki.authority.certificate]


@pytest.mark.parametrize(
    ("in_a_cluster", "said", "collected"),
    [
        pytest.param(True, None, True, id="in a cluster"),
        pytest.param(False, None, False, id="alone"),
        pytest.param(True, False, False, id="switched off in a cluster"),
        pytest.param(False, True, True, id="switched on alone"),
    ],
)
async def test_t076_a_cluster_is_expected_to_collect_garbage_unless_the_flag_says_otherwise(
    made: Callable[..., Access], way: Path, tmp_path: Path, in_a_cluster: bool, said: bool | None, collected: bool
) -> None:
    config = Config(data_dir=tmp_path, kinds=("tests.apiserver.gadgets",), enable_garbage_collector=said)
    store = MemoryStore()
    app = build_app(config, store, made(kubeconfig=way) if in_a_cluster else made())
    [gadgets] = [resource for resource in app.resources if resource.kind.plural == "gadgets"]
    running = asyncio.create_task(gadgets.run())
    value = {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": {"name": "x"}, "spec": {}}
    await gadgets.create("ns1", value)
    last, gone = await gadgets.delete("ns1", "x", DeleteOptions(propagation_policy="Foreground"))
    assert gone == (not collected)
    assert last.object()["metadata"].get("finalizers") == (["foregroundDeletion"] if collected else None)
    await gadgets.cache.close()
    await running
    await store.close()


@pytest.mark.parametrize("flag", ["kubeconfig", "authentication_kubeconfig"])
def test_a_kubeconfig_delegates(made: Callable[..., Access], way: Path, flag: str) -> None:
    if flag != "kubeconfig":
        with pytest.raises(StartupError, match="--authorization-kubeconfig or --kubeconfig is needed"):
            made(**{flag: way})
        return
    found = made(kubeconfig=way)
    assert delegated(found)
    assert found.anonymous is not None
    assert [check.name for check in found.checks] == ["extension-apiserver-authentication"]
    assert made(kubeconfig=way, anonymous_auth=False).anonymous is None
    assert not made(kubeconfig=way, authentication_tolerate_lookup_failure=True).checks


def test_two_kubeconfigs_are_enough_without_the_one_for_all(made: Callable[..., Access], way: Path) -> None:
    assert delegated(made(authentication_kubeconfig=way, authorization_kubeconfig=way))


def test_a_pod_delegates_unless_it_shall_not(made: Callable[..., Access], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(kubeconfig, "_POD", tmp_path)
    assert not delegated(made())
    (tmp_path / "token").write_text("t")
    assert delegated(made())
    assert not delegated(made(standalone=True))


def test_standalone_with_a_kubeconfig_is_a_contradiction(made: Callable[..., Access], way: Path) -> None:
    with pytest.raises(StartupError, match="contradicts"):
        made(standalone=True, kubeconfig=way)


@pytest.mark.parametrize(
    ("auth", "reason"),
    [
        ({"kubeconfig": Path("/nothing")}, "cannot read /nothing"),
        ({"requestheader_client_ca_file": Path("/nothing")}, "cannot read /nothing"),
        ({"authorization_always_allow_paths": ("/a*b",)}, 'only trailing \\* allowed in "a\\*b"'),
    ],
)
def test_what_cannot_be_used_is_told(made: Callable[..., Access], way: Path, auth: dict[str, object], reason: str) -> None:
    with pytest.raises(StartupError, match=reason):
        made(**{"kubeconfig": way, **auth})


def test_without_lookup_and_files_the_log_says_that_nobody_comes_through(
    made: Callable[..., Access], way: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made(kubeconfig=way, authentication_skip_lookup=True)
    assert "nobody can come through kube-apiserver" in caplog.text


async def test_files_are_read_again(made: Callable[..., Access], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_FILES_EVERY_SECONDS", 0.001)
    clients, proxies = tmp_path / "clients.crt", tmp_path / "proxies.crt"
    clients.write_bytes(CLIENTS.certificate.public_bytes(Encoding.PEM))
    proxies.write_bytes(PROXIES.certificate.public_bytes(Encoding.PEM))
    alone = made(client_ca_file=clients, requestheader_client_ca_file=proxies, requestheader_allowed_names=("proxy",))
    trust, changed, told = alone.trust, asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(logging.getLogger("apiserver.access"), "error", lambda *_: told.set())
    assert trust.clients.certificates[1:] == (CLIENTS.certificate,)
    assert trust.front_proxies is not None
    assert (trust.front_proxies.authorities.certificates, trust.front_proxies.allowed_names) == ((PROXIES.certificate,), ("proxy",))
    trust.on_change(changed.set)
    (run,) = alone.tasks
    running = asyncio.create_task(run())
    clients.write_bytes(b"")
    await told.wait()
    assert trust.clients.certificates[1:] == (CLIENTS.certificate,)
    clients.write_bytes(NEW.certificate.public_bytes(Encoding.PEM))
    await changed.wait()
    assert trust.clients.certificates[1:] == (NEW.certificate,)
    running.cancel()
    await asyncio.wait([running])
