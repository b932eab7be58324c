"""What the Containerfile copies is enough to build the package, and what the pod may do is enough to run it."""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INSTRUCTIONS = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text())
_COPIED = re.compile(r"^COPY (?!--from)(.+) \S+$", re.MULTILINE)


def copied() -> list[str]:
    return [name for names in _COPIED.findall(INSTRUCTIONS) for name in names.split()]


@pytest.mark.slow
def test_the_package_is_built_from_what_is_copied_and_nothing_is_missing(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    for name in copied():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        f"--wheel-dir={tmp_path}",
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        inside = set(opened.namelist())
        [entry_points] = [opened.read(name).decode() for name in inside if name.endswith("entry_points.txt")]
    packages = ("apiserver", "http2", "openapi", "storage")
    modules = {str(file.relative_to(ROOT)) for package in packages for file in (ROOT / package).rglob("*.py")}
    assert modules <= inside
    assert {f"{package}/py.typed" for package in packages} <= inside
    assert "clrk-apiserver = " in entry_points


@pytest.mark.slow
def test_the_server_needs_to_write_nowhere_but_in_its_folder(tmp_path: Path) -> None:
    """As in the pod: every file system is read-only but for the volume."""
    unshare = _unshare()
    if unshare is None:
        pytest.skip("this machine gives nobody file systems of his own")
    folder = tmp_path / "data"
    folder.mkdir()
    serve = f"{sys.executable} -m apiserver serve --standalone --secure-port=0 --data-dir={folder}"
    script = f"mount -t tmpfs tmpfs {folder}; mount -o remount,bind,ro /; ! touch {tmp_path}/x 2> /dev/null; exec {serve}"
    command = [*unshare, "sh", "-ec", script]
    environment = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]}
    with subprocess.Popen(command, cwd="/", env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        ready = re.match(r"Serving on (https://\S+);", server.stdout.readline())
        try:
            assert ready is not None
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with urllib.request.urlopen(f"{ready[1]}/readyz", context=context) as response:
                assert response.status == 200
        finally:
            server.terminate()
    assert server.returncode == 0


def _unshare() -> list[str] | None:
    """What runs a command that may mount file systems which nobody else sees; None: nothing does."""
    if shutil.which("unshare") is None:
        return None
    for command in (["unshare", "--user", "--map-root-user", "--mount"], ["unshare", "--mount"]):
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    return None


def test_the_build_checks_hashes_and_the_server_has_no_rights() -> None:
    assert "--require-hashes" in INSTRUCTIONS
    assert re.search(r"^USER 65532:65532$", INSTRUCTIONS, re.MULTILINE)
    assert '--data-dir=/var/lib/clrk-apiserver"' in INSTRUCTIONS
    assert re.search(r"^VOLUME /var/lib/clrk-apiserver$", INSTRUCTIONS, re.MULTILINE)


def test_all_that_a_start_imports_is_compiled_while_somebody_may_write_it() -> None:
    compiled = INSTRUCTIONS.rindex("RUN python -m compileall -q ")
    assert INSTRUCTIONS.rindex("FROM ") < compiled < INSTRUCTIONS.index("USER 65532:65532")
