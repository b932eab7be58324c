"""The kubectl lines that our pages show, and what they print: run in the order of the page, and compared.

`python -m tests.kubectl.test_pages` writes the output anew into docs/kubectl-session.md.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.apiserver.process import ROOT, serving
from tests.tools.needed import needed

SESSION = ROOT / "docs" / "kubectl-session.md"
PAGES = [SESSION, ROOT / "README.md"]

_BLOCK = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)
_COMMAND = re.compile(r"\$ (kubectl .*)\n((?:(?!\$ ).*\n)*)")
_AGE = re.compile(r"(?<=\s)\d+[smh]\b")


def rerun(text: str, folder: Path) -> str:
    """The page with what its commands print now, against a server of its own. Ages are as the page has them when all else is equal."""
    tools = folder / "bin"
    tools.mkdir()
    (tools / "kubectl").symlink_to(needed("kubectl-1.37"))
    with serving(folder / "clrk") as server:
        environment = {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(folder), "KUBECONFIG": str(server.kubeconfig)}

        def run(match: re.Match[str]) -> str:
            command, shown = match[1], match[2]
            done = subprocess.run(
                command, shell=True, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
            printed = done.stdout if done.stdout.endswith("\n") or not done.stdout else f"{done.stdout}\n"
            printed = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
            return f"$ {command}\n{shown if ageless(printed) == ageless(shown) else printed}"

        return _BLOCK.sub(lambda block: _COMMAND.sub(run, block[1]), text)


def ageless(text: str) -> str:
    """The text without ages, and without the width that they take in tables."""
    return re.sub(r" +", " ", _AGE.sub("AGE", text))


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_what_the_pages_show_is_what_kubectl_prints(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    assert rerun(text, tmp_path) == text


def main() -> None:
    """Write the page anew."""
    with TemporaryDirectory() as folder:
        SESSION.write_text(rerun(SESSION.read_text(), Path(folder)))


if __name__ == "__main__":
    main()
