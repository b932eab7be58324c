"""What must not be forgotten when something is added: flow.md, samples, links, fragments, pages of decisions.

Each check reads the repository itself, so that nothing has to be listed here.

That every StoreError is mapped is checked in `tests/apiserver/registry/test_errors.py`, that every setting is documented in
`tests/docs/test_reference.py`, that every sample is served in `tests/apiserver/kinds/test_samples.py`.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from apiserver import kinds
from apiserver.filters import CHAIN
from apiserver.meta.resource import ResourceKind

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = sorted({*DOCS, *ROOT.glob("*.md"), *ROOT.glob("tests/**/*.md"), *ROOT.glob("manifests/**/*.md")})
KINDS = kinds.load("apiserver.kinds")
NOT_A_VERB = {"body", "failure", "negotiation", "patch_body", "applied_body", "routes", "websocket"}
"""Modules beside the verbs that serve several of them."""

REGISTRIES = re.compile(r"\b(?:files\.)?(?:pypi\.org|pythonhosted\.org|proxy\.golang\.org|sum\.golang\.org|registry\.npmjs\.org)\b")
MACHINE_PATHS = re.compile(r"(?<![\w.$}~-])/(?:home/[a-z]\w*|root|work|Users/\w+|mnt/\w+)/[\w.-]+")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


@cache
def tracked() -> dict[str, str]:
    """Every text file that is in the repository, by path."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    found = {}
    for name in filter(None, names):
        content = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b"\0"
        if b"\0" not in content:
            found[name] = content.decode()
    return found


def outside_code(page: Path) -> str:
    """A page without its blocks of code, in which brackets are no links and hashes no headings."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names that a page's headings can be linked by."""
    headings = re.findall(r"^#+ (.+)$", outside_code(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", sorted({make.__module__.rpartition(".")[2] for make in CHAIN}))
def test_the_page_about_the_flow_names_each_filter(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs" / "flow.md").read_text()


def verbs() -> list[str]:
    """The modules of the endpoints that are verbs of the API, or addresses beside it."""
    modules = {path.stem for path in (ROOT / "apiserver" / "endpoints").glob("*.py")} - {"__init__"}
    assert modules >= NOT_A_VERB
    return sorted(modules - NOT_A_VERB - {"discovery", "health", "index", "metrics", "openapi", "version"})


@pytest.mark.parametrize("name", verbs())
def test_the_page_about_the_flow_names_each_verb(name: str) -> None:
    assert f"endpoints/{name}.py" in (ROOT / "docs" / "flow.md").read_text()


@pytest.mark.parametrize("kind", KINDS, ids=[kind.plural for kind in KINDS])
def test_each_kind_has_a_sample_and_a_page(kind: ResourceKind) -> None:
    assert (ROOT / "manifests" / "samples" / f"{kind.singular}.yaml").is_file()
    assert (ROOT / "docs" / "reference" / f"{kind.singular}.md").is_file()


def python_blocks() -> list[tuple[Path, int, str]]:
    """The Python that the pages show, with the line on which it begins."""
    found = []
    for page in DOCS:
        text = page.read_text()
        for match in re.finditer(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
            found.append((page, text[: match.start()].count("\n") + 2, match[1]))
    return found


@pytest.mark.parametrize(
    ("page", "line", "block"), [pytest.param(*block, id=f"{block[0].stem}-{block[1]}") for block in python_blocks()]
)
def test_each_python_block_of_the_pages_runs(page: Path, line: int, block: str) -> None:
    code = compile("\n" * (line - 1) + block, str(page), "exec")
    exec(code, {"__name__": f"docs.{page.stem.replace('-', '_')}"})  # what the pages show is ours


def test_no_tracked_file_names_a_registry_or_a_place_on_somebodys_machine() -> None:
    own = "tests/test_completeness.py"
    found = {
        f"{name}: {match[0]}"
        for name, text in tracked().items()
        if name != own
        for pattern in (REGISTRIES, MACHINE_PATHS)
        for match in pattern.finditer(text)
    }
    assert found == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_relative_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", outside_code(page))):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{target} leads nowhere"
        assert linked.is_relative_to(ROOT), f"{target} leads out of the repository"
        assert not anchor or anchor in anchors(linked), f"{target}: there is no such heading"


def test_the_decisions_are_numbered_without_a_gap_and_say_what_a_decision_must() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [page.name[:5] for page in pages] == [f"{number:04}-" for number in range(1, len(pages) + 1)]
    for page in pages:
        text = page.read_text()
        assert text.startswith(f"# {page.name[:4]}: "), page.name
        assert re.findall(r"^## (\w+)$", text, flags=re.MULTILINE)[:3] == ["Context", "Choice", "Cost"], page.name


def test_each_fragment_of_the_changes_is_fit_to_be_joined() -> None:
    fragments = [path for path in (ROOT / "docs" / "changes").iterdir() if path.name != "README.md"]
    assert fragments
    for path in fragments:
        text = path.read_text()
        assert re.fullmatch(r"[a-z0-9-]+\.md", path.name), path.name
        assert text.strip(), path.name
        assert "\n#" not in f"\n{text}", f"{path.name} has a heading"
