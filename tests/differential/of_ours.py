"""What lists of groups and documents say of our groups: kube-apiserver has others besides. All around their entries stays as it came.

OpenAPI documents themselves are left out: test_references.py compares them.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Final

from tests.differential.side import Answer

DOCUMENT: Final = "(a document)"
"""What an OpenAPI document becomes."""
OUR_GROUPS: Final = ("clrk.apoxy.dev", "worker.saved.sh")
_A_LIST: Final = re.compile(r'^(?:\{\s*)?(?:"apiVersion":"[^"]*",)?"?kind"?: ?"?(?:APIGroupList|APIGroupDiscoveryList)\b', re.MULTILINE)
_INDEX_OF_DOCUMENTS: Final = '{"paths":{'
_DOCUMENTS: Final = ('{"openapi":', '{"swagger":', '{"components":', '{"definitions":')
_IN_YAML: Final = re.compile(r"^- .*\n(?:  .*\n)*", re.MULTILINE)
_IN_PROTOBUF: Final = re.compile(r',"(?:groups|items)":(?=\{)')


def of_ours(answer: Answer) -> Answer:
    """An answer without the groups of others, if it is a list of groups or documents."""
    if answer.text.startswith(_INDEX_OF_DOCUMENTS):
        return replace(answer, text=_cut_index(answer.text))
    if answer.text.startswith(_DOCUMENTS) or (answer.headers and "proto-openapi" in answer.headers[0]):
        return replace(answer, text=DOCUMENT)
    if not _A_LIST.search(answer.text):
        return answer
    content_type = answer.headers[0]
    cut = _cut_yaml if "/yaml" in content_type else _cut_protobuf if "protobuf" in content_type else _cut_json
    return replace(answer, text=cut(answer.text))


def _cut_index(text: str) -> str:
    paths = json.loads(text)["paths"]
    versions = tuple(f"apis/{group}/v1alpha1" for group in OUR_GROUPS)
    return "\n".join(f"{name} {paths[name]}" for name in ("apis", "version", *versions))


def _cut_json(text: str) -> str:
    value = json.loads(text)
    assert _written(value, text) == text, text
    name = "groups" if "groups" in value else "items"
    value[name] = [group for group in value[name] if group.get("metadata", group)["name"] in OUR_GROUPS]
    return _written(value, text)


def _written(value: object, like: str) -> str:
    if like.startswith("{\n"):
        return json.dumps(value, indent=2, ensure_ascii=False)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"


def _cut_yaml(text: str) -> str:
    return _IN_YAML.sub(lambda found: found[0] if re.search(rf"name: (?:{'|'.join(OUR_GROUPS)})\n", found[0]) else "", text)


def _cut_protobuf(text: str) -> str:
    """Here each group is a member of its own, see protobuf_text.py; what follows the last is the end of the whole."""
    head, *groups = _IN_PROTOBUF.split(text.removesuffix("}"))
    ours = [group for group in groups if re.search(rf'"name":"(?:{"|".join(OUR_GROUPS)})"', group)]
    return f"{' | '.join([head, *ours])}}}"
