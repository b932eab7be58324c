"""The audit log as a file: written in a thread, rotated, bounded, and never in the way of a request."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from apiserver.audit.event import Content, Entry
from apiserver.audit.file import AuditLogConfig, FileBackend
from apiserver.audit.policy import Decision
from apiserver.request import User, parse_request

PATH = "/apis/example.dev/v1/namespaces/ns1/gadgets"


def entry(name: str, *, body: bytes = b"", media_type: str = "application/json", uri: str = "") -> Entry:
    info = parse_request("POST", PATH)
    return Entry(
        "ResponseComplete",
        Decision("Request"),
        name,
        1.0,
        2.0,
        info,
        uri or PATH,
        User("anne"),
        "[::1]:5",
        {},
        201,
        Content(body, media_type),
    )


async def write(log: FileBackend, *entries: Entry) -> None:
    running = asyncio.create_task(log.run())
    await asyncio.sleep(0)
    for one in entries:
        log.put(one)
    running.cancel()
    await asyncio.wait([running])


async def test_what_waits_at_the_end_is_written(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    log = FileBackend(AuditLogConfig(path=str(file)))
    await write(log, *(entry(f"e{number}") for number in range(1000)))
    assert [json.loads(line)["auditID"] for line in file.read_text().splitlines()] == [f"e{number}" for number in range(1000)]
    assert file.stat().st_mode & 0o777 == 0o600
    assert log.losses.count == 0


async def test_the_queue_is_bounded_and_what_is_lost_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = FileBackend(AuditLogConfig(path=str(tmp_path / "audit.log"), queue_events=10, queue_bytes=100_000))
    for number in range(15):
        log.put(entry(f"e{number}"))
    assert log.losses.count == 5
    assert caplog.text.count("audit events are lost") == 1
    await write(log)
    assert len(tmp_path.joinpath("audit.log").read_text().splitlines()) == 10
    large = FileBackend(AuditLogConfig(path=str(tmp_path / "large.log"), queue_bytes=100_000))
    for name in ("first", "second"):
        large.put(entry(name, body=b"x" * 90_000))
    assert large.losses.count == 1
    await write(large)


async def test_a_disk_that_is_full_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = FileBackend(AuditLogConfig(path="/dev/full"))
    await write(log, entry("a"), entry("b"))
    assert log.losses.count == 2
    assert "No space left on device" in caplog.text
    assert not any(thread.name == "audit log" for thread in threading.enumerate())


class HalfFull(io.RawIOBase):
    """A disk that takes the half of a line, once."""

    def __init__(self, file: io.RawIOBase) -> None:
        self.file = file
        self.writes = 0

    def write(self, line: Any) -> int | None:
        self.writes += 1
        if self.writes == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file.write(line[: len(line) // 2] if self.writes == 1 else line)

    def close(self) -> None:
        self.file.close()


async def test_a_line_that_is_torn_takes_no_other_with_it(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    log = FileBackend(AuditLogConfig(path=str(file)))
    assert log._file is not None
    log._file._file = HalfFull(log._file._file)  # type: ignore[assignment, arg-type]
    await write(log, *(entry(f"e{number}") for number in range(3)))
    assert log.losses.count == 1
    torn, *whole = file.read_text().splitlines()
    assert not torn.endswith("}")
    assert [json.loads(line)["auditID"] for line in whole] == ["e1", "e2"]


async def test_a_file_that_cannot_be_put_aside_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = FileBackend(AuditLogConfig(path=str(folder / "audit.log"), maxsize_megabytes=1))
    moved = tmp_path / "moved"
    folder.rename(moved)
    await write(log, *(entry(f"e{number}", body=b'{"note":"%s"}' % (b"x" * 300_000)) for number in range(6)))
    assert log.losses.count == 0
    assert len((moved / "audit.log").read_text().splitlines()) == 6
    assert caplog.text.count("cannot be put aside") == 1


async def test_a_file_is_put_aside_and_old_ones_go(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    config = AuditLogConfig(path=str(file), maxsize_megabytes=1, maxbackup=2, maxage_days=7)
    ancient = tmp_path / f"audit-{datetime.now(UTC) - timedelta(days=8):%Y-%m-%dT%H-%M-%S}.000.log"
    other = tmp_path / "audit-notes.log"
    for one in (ancient, other):
        one.write_text("old")
    for _ in range(4):
        log = FileBackend(config)
        await write(log, *(entry(f"e{number}", body=b'{"note":"%s"}' % (b"x" * 300_000)) for number in range(3)))
    aside = sorted(set(await asyncio.to_thread(lambda: list(tmp_path.glob("audit-*.log")))) - {other})
    assert len(aside) == 2
    assert ancient not in aside
    assert other.exists()
    assert all(one.stat().st_size <= 1024 * 1024 for one in (file, *aside))


async def test_standard_output_is_written_line_by_line(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    await write(FileBackend(AuditLogConfig(path="-")), entry("a"))
    assert json.loads(capfdbinary.readouterr().out)["auditID"] == "a"


def test_text_that_is_none_and_bodies_that_cannot_be_read_make_no_broken_line() -> None:
    line = entry("a", uri="/\udcff", body=b"{nonsense").line()
    assert json.loads(line)["requestURI"] == "/\\udcff"
    assert "requestObject" not in json.loads(line)
    assert json.loads(entry("b", body=b"a: 1", media_type="application/yaml").line())["requestObject"] == {"a": 1}
    assert json.loads(entry("c", body=b"a: 123456789012345678901234567890", media_type="application/yaml").line())["requestObject"]["a"]
    assert line.count(b"\n") == 1


def test_metadata_of_the_body_completes_the_reference() -> None:
    body = b'{"metadata":{"name":"a","uid":"u","resourceVersion":"7"}}'
    reference = json.loads(entry("a", body=body).line())["objectRef"]
    assert reference == {
        "resource": "gadgets",
        "namespace": "ns1",
        "name": "a",
        "uid": "u",
        "apiGroup": "example.dev",
        "apiVersion": "v1",
        "resourceVersion": "7",
    }
