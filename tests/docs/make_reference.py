"""Writes the reference pages anew: `make docs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from apiserver import kinds
from tests.docs import kind_page, settings_page

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"
_SAMPLES = ROOT / "manifests" / "samples"


def pages() -> Iterator[tuple[Path, str]]:
    """Yield every page with its text, as it should be."""
    for kind in kinds.load("apiserver.kinds"):
        yield FOLDER / f"{kind.singular}.md", kind_page.page(kind, _SAMPLES)
    yield FOLDER / "settings.md", settings_page.page()


def main() -> None:
    """Write all pages."""
    FOLDER.mkdir(exist_ok=True)
    for file, text in pages():
        file.write_text(text)


if __name__ == "__main__":
    main()
