"""What the listener does before a request is understood: TLS, large heads, malformed requests, the end of the server."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import aiohttp
import orjson
import pytest
from aiohttp import web

from apiserver import certificates, tls
from apiserver.auth.authorities import Authorities, Judgement
from apiserver.certificates import Certificates, KeyPair, make_client, prepare_certificates
from apiserver.config import ListenConfig, StartupError
from apiserver.request import Call, Peer
from apiserver.server import Server
from tests.apiserver.running import Listening
from tests.apiserver.shell import shell
from tests.apiserver.status_assertions import assert_status


@pytest.fixture
async def listener(pki: Certificates) -> AsyncIterator[Listening]:
    async with shell(pki) as running:
        yield running


async def exchange(listener: Listening, *raw: bytes, context: ssl.SSLContext | None = None) -> bytes:
    """Send bytes, and read until the server closes. What came until the connection broke is returned: nothing after a failed handshake."""
    response = b""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=context or listener.tls(listener.pki.admin))
    except (ssl.SSLError, ConnectionError):
        return b""
    try:
        for piece in raw:
            writer.write(piece)
            await asyncio.sleep(0)
        while piece := await reader.read(65536):
            response += piece
    except (ssl.SSLError, ConnectionError):
        pass
    finally:
        writer.transport.abort()
    return response


async def talk(listener: Listening, *raw: bytes, context: ssl.SSLContext | None = None) -> tuple[int, dict[bytes, bytes], bytes]:
    """Send bytes, and read the one response until the server closes: its code, headers and body."""
    head, _, body = (await exchange(listener, *raw, context=context)).partition(b"\r\n\r\n")
    status, *lines = head.split(b"\r\n")
    assert status.startswith(b"HTTP/1.1 ")
    return int(status.split()[1]), dict(line.lower().split(b": ", 1) for line in lines), body


GET = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


async def test_responses_carry_kubernetes_headers_and_no_server_header(listener: Listening) -> None:
    async with listener.client(listener.pki.admin) as client, client.get("/nothing") as response:
        assert response.status == 200
        assert "Server" not in response.headers


@pytest.mark.parametrize(
    ("version", "works"),
    [
        pytest.param(ssl.TLSVersion.TLSv1_3, True, id="tls-1.3"),
        pytest.param(ssl.TLSVersion.TLSv1_2, True, id="tls-1.2"),
        pytest.param(ssl.TLSVersion.TLSv1_1, False, id="tls-1.1"),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_t096_tls_below_1_2_is_refused(listener: Listening, version: ssl.TLSVersion, works: bool) -> None:
    context = listener.tls(listener.pki.admin)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    response = await exchange(listener, GET, context=context)
    assert response[:13] == (b"HTTP/1.1 200 " if works else b"")


@pytest.mark.parametrize("sizes", [("128", "256"), ("256", "128")], ids=["the shorter key", "the longer key"])
async def test_the_cipher_is_the_first_of_the_client(listener: Listening, sizes: tuple[str, str]) -> None:
    context = listener.tls(listener.pki.admin)
    # The order of those of TLS 1.3 cannot be set from Python; it counts in the same way.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(":".join(f"ECDHE+AES{size}+AESGCM" for size in sizes))
    _, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=context)
    assert f"AES{sizes[0]}-GCM" in writer.get_extra_info("cipher")[0]
    writer.transport.abort()


@pytest.mark.parametrize(("http2", "spoken"), [(True, "h2"), (False, "http/1.1")], ids=["on", "off"])
async def test_http_2_is_spoken_with_who_knows_it_unless_switched_off(pki: Certificates, http2: bool, spoken: str) -> None:
    async with shell(pki, listen=ListenConfig(secure_port=0, http2=http2)) as listener:
        context = listener.tls(listener.pki.admin)
        context.set_alpn_protocols(["h2", "http/1.1"])
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=context)
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == spoken
        writer.transport.abort()


async def test_t096_the_certificate_request_names_the_accepted_authorities(pki: Certificates, tmp_path: Path) -> None:
    """OpenSSL's own client shows the names; Go clients choose their certificate by them."""
    other = prepare_certificates(tmp_path, ["other"]).authority
    context = tls.make_context(
        pki.serving.certificate_file,
        pki.serving.key_file,
        client_authority_files=[pki.authority.certificate_file, other.certificate_file],
    )
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    for version in ("-tls1_2", "-tls1_3"):
        process = await asyncio.create_subprocess_exec(
            "openssl", "s_client", version, "-connect", f"127.0.0.1:{port}", stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        output, _ = await process.communicate()
        names = output.decode().partition("Acceptable client certificate CA names\n")[2]
        for authority in (pki.authority, other):
            assert authority.certificate.subject.rfc4514_string().replace("=", " = ") in names
    server.close()
    await server.wait_closed()


async def test_t096_a_client_without_certificate_gets_401_and_no_handshake_failure(listener: Listening) -> None:
    async with listener.client(None) as client, client.get("/apis") as response:
        status = await assert_status(response, 401, "Unauthorized")
        assert status["message"] == "Unauthorized"


async def test_t096_a_certificate_of_an_unknown_authority_or_an_expired_one_is_never_accepted(
    listener: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = prepare_certificates(tmp_path, ["localhost"]).admin
    monkeypatch.setattr(certificates, "LEAF_LIFE", timedelta(seconds=-60))
    expired = make_client(tmp_path, listener.pki.authority, "expired", ("system:masters",))
    assert expired.certificate.not_valid_after_utc < datetime.now(UTC)
    for identity in (unknown, expired):
        assert (await exchange(listener, GET, context=listener.tls(identity))).startswith(b"HTTP/1.1 401 ")


async def test_a_serving_certificate_is_no_client_certificate(listener: Listening) -> None:
    assert (await exchange(listener, GET, context=listener.tls(listener.pki.serving))).startswith(b"HTTP/1.1 401 ")


async def test_heads_as_large_as_go_servers_take_are_read(listener: Listening) -> None:
    """A user in many groups, an extra value of 60 KB, a selector of 30 KB."""
    headers = [("X-Group", f"group-{number}") for number in range(700)] + [("X-Extra", "v" * 60_000)]
    path = "/x?labelSelector=" + "a" * 30_000
    async with listener.client(listener.pki.admin) as client, client.get(path, headers=headers) as response:
        assert response.status == 200


async def test_the_largest_head_that_go_servers_take_is_read(listener: Listening) -> None:
    """1 MiB, and the 4 KiB of their buffer."""
    start, end = b"GET /x HTTP/1.1\r\nHost: x\r\nX: ", b"\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=listener.tls(listener.pki.admin))
    writer.write(start + b"v" * (1_052_672 - len(start) - len(end)) + end)
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    writer.transport.abort()


@pytest.mark.parametrize("lines", [pytest.param(1, id="one line"), pytest.param(200, id="many lines")])
async def test_a_head_above_1_mebibyte_is_refused_with_a_status(listener: Listening, lines: int) -> None:
    value = b"v" * (1_300_000 // lines)
    head = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: %s\r\n" % (number, value) for number in range(lines))
    code, headers, body = await talk(listener, *(head[start : start + 65536] for start in range(0, len(head), 65536)))
    assert (code, headers[b"connection"]) == (431, b"close")
    assert orjson.loads(body)["code"] == 431


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"nonsense\r\n\r\n", id="no request line"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2 preface"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX-Remote-User : admin\r\n\r\n", id="space before the colon"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", id="two hosts"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", id="NUL in a header"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello", id="signed length"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", id="two lengths"),
        pytest.param(b"GET / HTTP/1.1\nHost: x\n\n", id="bare line feeds"),
    ],
)
async def test_malformed_http_is_a_400_status_and_the_end_of_the_connection(listener: Listening, raw: bytes) -> None:
    code, headers, body = await talk(listener, raw)
    assert code == 400
    assert headers[b"content-type"].startswith(b"application/json")
    assert headers[b"connection"] == b"close"
    assert b"server" not in headers
    assert orjson.loads(body) == {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "BadRequest", "code": 400,
        "message": "the request is not well-formed HTTP",
    }  # fmt: skip


async def test_a_body_that_is_refused_before_it_came_is_no_head_of_another_request(listener: Listening) -> None:
    """The rest of it may be read after the answer; the connection then goes on with the next request, or is closed."""
    size = 3 * 1024 * 1024
    raw = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size
    answers = await exchange(listener, raw, b"x" * size, b"GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answers.count(b"HTTP/1.1 200") == 2
    assert b"431" not in answers


async def test_an_upgrade_is_declined_and_ends_the_connection(listener: Listening) -> None:
    raw = b"GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n"
    for protocol in (b"SPDY/3.1", b"websocket", b"h2c"):
        for context, code in ((listener.tls(None), b"401"), (listener.tls(listener.pki.admin), b"200")):
            response = await exchange(listener, raw % protocol + GET, context=context)
            assert response.startswith(b"HTTP/1.1 %s " % code)
            assert response.count(b"HTTP/1.1 ") == 1
            assert b"Connection: close" in response


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux has all of these options")
async def test_t071_a_peer_that_is_gone_without_a_word_is_noticed_within_5_minutes(pki: Certificates) -> None:
    """On an accepted connection: it takes `idle` seconds without data and then unanswered probes, or data that nobody acknowledges."""
    options: dict[str, int] = {}

    async def look(call: Call) -> web.Response:
        assert call.http.transport is not None
        accepted = call.http.transport.get_extra_info("socket")
        options["SO_KEEPALIVE"] = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT"):
            options[name] = accepted.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
        return web.Response()

    async with shell(pki, look) as listener, listener.client(pki.admin) as client, client.get("/x") as response:
        assert response.status == 200
    assert options["SO_KEEPALIVE"] == 1
    assert options["TCP_KEEPIDLE"] + options["TCP_KEEPINTVL"] * options["TCP_KEEPCNT"] <= 240
    assert 0 < options["TCP_USER_TIMEOUT"] <= 240_000


async def test_many_who_come_together_are_let_in_a_few_at_a_time(pki: Certificates) -> None:
    """Others have their turn in between: a handshake takes a millisecond, and all that wait are ready at once."""
    server = Server(
        ListenConfig(secure_port=0), tls.make_context(pki.serving.certificate_file, pki.serving.key_file, client_authority_files=[])
    )
    port = server.bind()

    async def nothing(_http: web.BaseRequest, _peer: Peer) -> web.Response:
        return web.Response()

    await server.start(nothing)
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]  # in the system's queue
    turns: list[int] = []
    async with asyncio.timeout(10):
        while server.handshakes < 50:
            turns.append(server.handshakes)
            await asyncio.sleep(0)
    assert max(after - before for before, after in pairwise([*turns, 50])) <= 4
    await server.stop(timeout_seconds=1)
    assert server.handshakes == 0
    for client in clients:
        client.close()


async def test_a_client_that_never_shakes_hands_holds_up_nobody(listener: Listening) -> None:
    silent = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(50)]
    async with asyncio.timeout(10), listener.client(listener.pki.admin) as client, client.get("/x") as response:
        assert response.status == 200
    for one in silent:
        one.close()


async def test_a_client_that_has_gone_is_no_failure(pki: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    async def begin(call: Call) -> web.StreamResponse:
        assert call.http.transport is not None
        call.http.transport.abort()
        response = web.StreamResponse()
        await response.prepare(call.http)
        return response

    async with shell(pki, begin) as listener, listener.client(pki.admin) as client:
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.post("/x")
    assert caplog.records == []


async def test_a_taken_port_is_told_in_one_line(listener: Listening) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with pytest.raises(StartupError, match=rf"^cannot listen on 127\.0\.0\.1 port {listener.port}: Address already in use$"):
        Server(ListenConfig(secure_port=listener.port), context).bind()


async def test_an_address_of_another_machine_is_told_in_one_line() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with pytest.raises(StartupError, match=r"^cannot listen on 192\.0\.2\.1 port 0: "):
        Server(ListenConfig(bind_address="192.0.2.1", secure_port=0), context).bind()


async def test_t122_stopping_finishes_running_requests_and_closes_idle_connections(pki: Certificates) -> None:
    begun, finish = asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> web.Response:
        if call.info.path == "/slow":
            begun.set()
            await finish.wait()
        return web.Response(text=(await call.http.read()).decode())

    async with shell(pki, wait) as listener, listener.client(pki.admin) as client, listener.client(pki.admin) as idle:
        async with idle.get("/quick") as response:
            assert response.status == 200

        async def body() -> AsyncIterator[bytes]:
            yield b"first "
            await finish.wait()
            yield b"second"

        slow = asyncio.create_task(client.post("/slow", data=body()))
        await begun.wait()
        stopping = asyncio.create_task(listener.server.stop(timeout_seconds=30))
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", listener.port, ssl=listener.tls(pki.admin))
        assert not stopping.done()
        finish.set()
        response = await slow
        assert await response.text() == "first second"
        assert response.headers["Connection"] == "close"
        await stopping


async def test_t122_connections_end_with_an_answer_before_the_idle_ones_are_closed(pki: Certificates) -> None:
    begun, finish = asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> web.Response:
        if call.info.path == "/slow":
            begun.set()
            await finish.wait()
        return web.Response()

    async with shell(pki, wait) as listener, listener.client(pki.admin) as client, listener.client(pki.admin) as idle:
        for close in (None, "close", "close"):
            async with client.get("/quick") as response:
                assert (response.status, response.headers.get("Connection")) == (200, close)
            if close is None:
                async with idle.get("/quick") as response:
                    assert "Connection" not in response.headers
            listener.server.part()
        slow = asyncio.create_task(client.get("/slow"))
        await begun.wait()
        stopping = asyncio.create_task(listener.server.stop(timeout_seconds=30))
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", listener.port)
        async with idle.get("/quick") as response:
            assert (response.status, response.headers["Connection"]) == (200, "close")
        finish.set()
        assert (await slow).status == 200
        await stopping


async def test_t122_new_requests_are_sent_elsewhere_while_running_ones_finish_if_that_is_wanted(pki: Certificates) -> None:
    begun, finish, refusing = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> web.Response:
        if call.info.path == "/slow":
            begun.set()
            await finish.wait()
        return web.Response(text="done")

    async with shell(pki, wait, refusing=refusing) as listener, listener.client(pki.admin) as client:
        async with client.get("/quick") as response:
            assert response.status == 200
        slow = asyncio.create_task(client.get("/slow"))
        await begun.wait()
        refusing.set()
        stopping = asyncio.create_task(listener.server.stop(timeout_seconds=30, accept_until_quiet=True))
        async with listener.client(pki.admin) as late, late.get("/quick") as response:
            assert response.status == 429
            assert (response.headers["Retry-After"], response.headers["Connection"]) == ("5", "close")
            assert await response.text() == "The apiserver is shutting down, please try again later.\n"
        async with client.get("/livez") as response:
            assert response.status == 200
        finish.set()
        assert await (await slow).text() == "done"
        await stopping


async def test_stopping_cuts_off_what_takes_too_long(pki: Certificates) -> None:
    begun = asyncio.Event()

    async def never(call: Call) -> web.Response:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with shell(pki, never) as listener, listener.client(pki.admin) as client:
        hanging = asyncio.create_task(client.post("/"))
        await begun.wait()
        await listener.server.stop(timeout_seconds=0)
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await hanging


def test_the_identity_of_a_key_pair_is_its_files(pki: Certificates, user: KeyPair) -> None:
    for pair in (pki.authority, pki.serving, pki.admin, user):
        assert pair.key_file.stat().st_mode & 0o777 == 0o600


async def test_who_comes_again_with_the_same_certificate_is_not_verified_again(
    listener: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The aggregator opens many connections for what it has not kept; another certificate is judged by itself."""
    judged: list[bytes | None] = []
    verify = Authorities._verify

    def verifying(authorities: Authorities, peer: Peer, now: float) -> Judgement:
        judged.append(peer.certificate)
        return verify(authorities, peer, now)

    monkeypatch.setattr(Authorities, "_verify", verifying)
    unknown = prepare_certificates(tmp_path, ["localhost"]).admin
    for identity, code in ((listener.pki.admin, b"200"), (unknown, b"401"), (listener.pki.admin, b"200"), (unknown, b"401")):
        assert (await exchange(listener, GET, context=listener.tls(identity)))[9:12] == code
    assert len(judged) == len(set(judged)) == 2


async def test_handshakes_are_counted(listener: Listening) -> None:
    def counted() -> dict[str, float]:
        return {sample.name: sample.value for collect in listener.server.metrics() for metric in collect() for sample in metric.samples}

    await exchange(listener, GET)
    distrustful = ssl.create_default_context()
    assert await exchange(listener, GET, context=distrustful) == b""
    await listener.server.stop(timeout_seconds=1)
    assert counted() == {"clrk_tls_handshakes_total": 1, "apiserver_tls_handshake_errors_total": 1}
