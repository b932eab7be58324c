"""A page tells of a kind what its author has declared: shown on a kind that has one of everything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest
from pydantic import Field

from apiserver.meta.markers import AtomicMap, Immutable, ListMap, ListSet
from apiserver.meta.resource import Column, Model, Quantity, Resource, describe
from tests.docs.kind_page import page


class Shelf(Model):
    """Where books stand."""

    name: str
    """What it is called."""


class LibrarySpec(Model):
    """What is wanted of a library."""

    town: Annotated[str, Immutable]
    """Where it is, `a|b` or <c>."""
    size: int | None = Field(3, ge=1, le=9)
    """How big it is."""
    mood: Literal["calm", "loud"] | None = None
    """How it sounds."""
    tags: Annotated[list[str] | None, ListSet] = None
    """What it is known for."""
    shelves: Annotated[list[Shelf] | None, ListMap("name")] = None
    """Its shelves."""
    plain: list[str] | None = None
    """Anything."""
    limits: dict[str, Quantity] | None = None
    """How much it takes."""
    labels: Annotated[dict[str, str] | None, AtomicMap] = None
    """Its labels."""


class Library(Resource):
    """Library is a house of books."""

    group: ClassVar[str] = "books.example"
    version: ClassVar[str] = "v1"
    plural: ClassVar[str] = "libraries"
    scope: ClassVar[Literal["Namespaced", "Cluster"]] = "Cluster"
    columns: ClassVar[tuple[Column, ...]] = (Column("Town", "string", ".spec.town", description="Where it is", priority=1),)

    spec: LibrarySpec
    """What is wanted of the library."""


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    samples = tmp_path_factory.mktemp("samples")
    samples.joinpath("library-minimal.yaml").write_text("kind: Library\n")
    return page(describe(Library), samples).splitlines()


@pytest.mark.parametrize(
    "line",
    [
        "API group: `books.example/v1`",
        "| Scope | Cluster |",
        "| Subresources | none |",
        "| Column Town | Where it is: `.spec.town` (`-o wide`) |",
        "`GET /apis/books.example/v1/libraries/{name}`",
        "| `name` | path | string | name of the Library |",
        "| 201: Created | [Library](#fields) |",
        "Request body: DeleteOptions, as `application/json`, `application/yaml`; may be left out.",
        "| `spec` | [LibrarySpec](#libraryspec) | What is wanted of the library. **Required.** |",
        "| `town` | string | Where it is, `a\\|b` or &lt;c>. **Required.** Cannot be changed once it is set. |",
        "| `size` | integer | How big it is. Default: `3`. At least 1. At most 9. |",
        '| `mood` | string | How it sounds. One of `"calm"`, `"loud"`. |',
        "| `tags` | string[] | What it is known for. No element occurs twice; each has its own owner. |",
        "| `shelves` | [Shelf](#shelf)[] | Its shelves. Elements are told apart by `name`; each has its own owner. |",
        "| `plain` | string[] | Anything. The list has one owner and is replaced as a whole. |",
        "| `labels` | map of string | Its labels. Has one owner and is replaced as a whole. |",
        "### Shelf",
        "| `name` | string | What it is called. **Required.** |",
    ],
)
def test_a_page_has_the_line(lines: list[str], line: str) -> None:
    assert line in lines


def test_a_quantity_is_a_number_or_a_string_of_its_form(lines: list[str]) -> None:
    [line] = [line for line in lines if line.startswith("| `limits` |")]
    assert line.startswith("| `limits` | map of integer or string | How much it takes. Matches `^(\\+\\|-)?")
    assert line.count("|") - line.count("\\|") == 4


def test_two_types_of_one_name_have_no_page(tmp_path: Path) -> None:
    namesake = type("Shelf", (Model,), {"__doc__": "Another one.", "__annotations__": {"depth": int}})

    class TwinSpec(Model):
        one: Shelf
        other: namesake  # type: ignore[valid-type]

    class Twin(Library):
        plural: ClassVar[str] = "twins"
        spec: TwinSpec  # type: ignore[assignment]

    with pytest.raises(ValueError, match="two types below Twin are called Shelf"):
        page(describe(Twin), tmp_path)
