"""The public bug reports that this server must not repeat, each with the tests that show it.

A test belongs to a case when its name, its docstring or the id of one of its parameters carries the case's id. `python -m
tests.cases.test_every_case_has_a_test` prints the table.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

CASES = {
    "T001": "a namespace can be deleted: aggregated discovery",
    "T002": "Accept headers of discovery clients",
    "T004": "no empty resource list while the store is away",
    "T005": "/api on a server of groups only",
    "T006": "every error is a Status",
    "T007": "the aggregator reads the documents as a user without groups",
    "T009": "client-side apply of a changed list",
    "T010": "two groups, each with its own document",
    "T012": "kinds are found in the documents by their group, version and kind",
    "T014": "a dry run writes nothing",
    "T015": "unknown fields: ignored, told, refused",
    "T017": "integers: large, written as floats, of another type",
    "T018": "a resourceVersion on create",
    "T019": "generateName and collisions",
    "T020": "changing identity on update",
    "T021": "a PUT without a resourceVersion",
    "T023": "admission webhooks are asked for all writes or for none",
    "T024": "quantities come back as written",
    "T025": "bodies of one to three megabytes",
    "T027": "bombs in YAML and JSON",
    "T029": "nulls and defaults",
    "T030": "generation counts changes of the desired state only",
    "T032": "strategic merge patch",
    "T033": "error codes of JSON patches",
    "T035": "server-side apply at all",
    "T036": "an apply again writes nothing",
    "T038": "writes that change nothing",
    "T039": "managedFields in an apply",
    "T040": "who owns the status",
    "T043": "items that are there twice",
    "T044": "an unknown field in an apply",
    "T045": "giving a field up",
    "T048": "the bookmark that ends the initial events",
    "T049": "a watch from no version, and from 0",
    "T051": "quota and garbage collectors read ours through",
    "T053": "pages of tables",
    "T054": "tables in watches",
    "T055": "a list's resourceVersion",
    "T056": "a watch from a version that cannot be resumed",
    "T057": "the ERROR event on the wire",
    "T058": "the version of DELETED events",
    "T059": "leaving and entering a selector",
    "T061": "a continue token that has expired",
    "T064": "field selectors",
    "T065": "a namespace whose name begins like another",
    "T066": "clients that want metadata only",
    "T067": "a watch over WebSocket",
    "T069": "small events are sent at once",
    "T071": "when a watch ends",
    "T072": "finalizers",
    "T074": "preconditions of a deletion",
    "T076": "propagation policies",
    "T077": "kubectl delete --wait and uids",
    "T078": "deletion of a collection",
    "T081": "deletion of a namespace with finalizers in it",
    "T083": "a scale with a selector",
    "T084": "writing a scale",
    "T086": "updates of the status",
    "T087": "forged identity headers",
    "T088": "names of front proxies: none, missing, others",
    "T089": "the front proxies' authority is replaced",
    "T090": "the serving certificate is renewed on disk",
    "T092": "the header of the uid",
    "T093": "delegated authorization fails or denies",
    "T096": "authorities that the TLS handshake names",
    "T097": "the first object of a kind",
    "T098": "revisions in the order of their commits",
    "T100": "a locked database",
    "T101": "durability",
    "T103": "etcd's tokens expire",
    "T104": "an etcd without progress requests",
    "T106": "two replicas",
    "T107": "the first etcd endpoint is down, another falls silent",
    "T109": "Python clients: bookmarks and 410",
    "T110": "a RetryWatcher begins at a list's version",
    "T112": "lists hold whole objects",
    "T114": "listed verbs work, others are 405",
    "T115": "a watcher that does not read",
    "T116": "events are encoded once",
    "T117": "ten thousand objects",
    "T120": "health while etcd is slow or away",
    "T122": "SIGTERM",
    "T123": "roles of ordinary users",
}

_ID = re.compile(r"(?<![A-Za-z0-9])[tT]([01]\d\d)(?!\d)|(?<=_)t([01]\d\d)(?!\d)")


def functions_by_case() -> dict[str, list[str]]:
    """The tests of each id, as `file::name`."""
    found: dict[str, list[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        for function in _test_functions(file):
            decorators = " ".join(map(ast.unparse, function.decorator_list))
            text = f"{function.name} {ast.get_docstring(function) or ''} {decorators}"
            for case in sorted({f"T{match[1] or match[2]}" for match in _ID.finditer(text)}):
                found.setdefault(case, []).append(f"{file.relative_to(TESTS)}::{function.name}")
    return found


def _test_functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    return functions_by_case()


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_a_test(found: dict[str, list[str]], case: str) -> None:
    assert found.get(case), f"no test shows {case}: {CASES[case]}"


def main() -> None:
    """Print which tests show which case."""
    found = functions_by_case()
    for case in sorted({*CASES, *found}):
        print(case, CASES.get(case, ""), *found.get(case, ["nothing shows it yet"]), sep="\n    ")  # noqa: T201


if __name__ == "__main__":
    main()
