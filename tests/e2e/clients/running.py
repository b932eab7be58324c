"""Programs made with client libraries: their processes, and the lines of JSON in which they tell what they see."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.apiserver.process import ROOT
from tests.tools.needed import needed

Line = dict[str, Any]
Condition = Callable[[Line], bool]
_LONGEST_SECONDS = 120.0
"""Informers wait longer and longer between attempts: those of client-go up to a minute."""


class Program:
    """One that runs, and what it has told since its start."""

    def __init__(self, process: subprocess.Popen[str], errors: Path) -> None:
        self.lines: list[Line] = []
        self._process, self._errors = process, errors
        self._told = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def until(self, step: str, *, times: int = 1, where: Condition | None = None, seconds: float = _LONGEST_SECONDS, **fields: Any) -> Line:
        """Return the line with which it has told so many times of this step, with these fields. It fails when that does not come."""
        deadline = time.monotonic() + seconds
        with self._told:
            while True:
                found = [line for line in self.all(step, **fields) if where is None or where(line)]
                if len(found) >= times:
                    return found[times - 1]
                assert not self._ended, f"it has ended without {step} {fields}\n{self.story()}"
                assert self._told.wait(deadline - time.monotonic()), f"it does not come to {step} {fields}\n{self.story()}"

    def event(self, kind: str, name: str, *, times: int = 1) -> Line:
        """Return the first event of this type about the object with this name, or a later one."""
        return self.until("event", times=times, where=lambda line: line["object"]["metadata"].get("name") == name, type=kind)

    def all(self, step: str, **fields: Any) -> list[Line]:
        """The lines of this step, with these fields, so far."""
        with self._told:
            return [line for line in self.lines if line["step"] == step and fields.items() <= line.items()]

    def end(self) -> None:
        """Wait until it has ended by itself, and well."""
        code = self._process.wait(_LONGEST_SECONDS)
        self._thread.join()
        assert code == 0, self.story()

    def terminate(self) -> None:
        """Tell it to end, and wait for that."""
        self._process.terminate()
        self._process.wait(_LONGEST_SECONDS)

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.wait()
        self._thread.join()

    def story(self) -> str:
        """What it has told but for bookmarks, and what it has complained of."""
        told = [str(line)[:400] for line in self.lines if line.get("type") != "BOOKMARK"]
        return "\n".join(told[-30:]) + "\n" + self._errors.read_text()[-4000:]

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            for text in stdout:
                with self._told:
                    self.lines.append(json.loads(text))
                    self._told.notify_all()
        with self._told:
            self._ended = True
            self._told.notify_all()


@contextmanager
def running(folder: Path, kubeconfig: Path, *command: str) -> Iterator[Program]:
    """Run it until the end of the block, at the latest."""
    folder.mkdir(parents=True, exist_ok=True)
    errors = folder / "stderr"
    variables = {
        "HOME": str(folder),
        "KUBECONFIG": str(kubeconfig),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(folder),
    }
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    program = Program(process, errors)
    try:
        yield program
    finally:
        program.kill()


def command_of(client: str) -> list[str]:
    """The command that runs a client, which is built when it is missing: its name is that of its language and of the program."""
    language, _, rest = client.partition(" ")
    built = needed(f"client-{language}")
    match language:
        case "python":
            return [str(built / "bin" / "python"), "-m", *f"tests.e2e.clients.python.{rest}".split()]
        case "javascript":
            return ["node", str(built / "client.mjs")]
        case "java":
            return ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{built}:{built}/lib/*", "Client"]
        case _:
            return [str(built), *rest.split()]


def kubeconfig_at(kubeconfig: Path, port: int, file: Path) -> Path:
    """Write the same kubeconfig for another port of this machine, and return its file."""
    lines = kubeconfig.read_text().splitlines()
    (number,) = (number for number, line in enumerate(lines) if line.strip().startswith("server: "))
    lines[number] = lines[number].partition("server: ")[0] + f"server: https://127.0.0.1:{port}"
    file.write_text("\n".join(lines) + "\n")
    return file
