"""What the root of discovery says of our groups: kube-apiserver has others besides. All around their entries stays as it came."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Final

from tests.differential.side import Answer

_GROUPS: Final = ("clrk.apoxy.dev", "worker.saved.sh")
_A_LIST: Final = re.compile(r'^(?:\{\s*)?(?:"apiVersion":"[^"]*",)?"?kind"?: ?"?(?:APIGroupList|APIGroupDiscoveryList)\b', re.MULTILINE)
_IN_YAML: Final = re.compile(r"^- .*\n(?:  .*\n)*", re.MULTILINE)
_IN_PROTOBUF: Final = re.compile(r',"(?:groups|items)":(?=\{)')


def of_ours(answer: Answer) -> Answer:
    """An answer without the groups of others, if it is a list of groups."""
    if not _A_LIST.search(answer.text):
        return answer
    content_type = answer.headers[0]
    cut = _cut_yaml if "/yaml" in content_type else _cut_protobuf if "protobuf" in content_type else _cut_json
    return replace(answer, text=cut(answer.text))


def _cut_json(text: str) -> str:
    value = json.loads(text)
    assert _written(value, text) == text, text
    name = "groups" if "groups" in value else "items"
    value[name] = [group for group in value[name] if group.get("metadata", group)["name"] in _GROUPS]
    return _written(value, text)


def _written(value: object, like: str) -> str:
    if like.startswith("{\n"):
        return json.dumps(value, indent=2, ensure_ascii=False)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"


def _cut_yaml(text: str) -> str:
    return _IN_YAML.sub(lambda found: found[0] if re.search(rf"name: (?:{'|'.join(_GROUPS)})\n", found[0]) else "", text)


def _cut_protobuf(text: str) -> str:
    """Here each group is a member of its own, see protobuf_text.py; what follows the last is the end of the whole."""
    head, *groups = _IN_PROTOBUF.split(text.removesuffix("}"))
    ours = [group for group in groups if re.search(rf'"name":"(?:{"|".join(_GROUPS)})"', group)]
    return f"{' | '.join([head, *ours])}}}"
