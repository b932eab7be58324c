"""The form that a client wants an object in: whole, as a table, or its metadata alone; written as JSON, YAML or protobuf.

Found out by `endpoints/negotiation.py`, used wherever objects become bytes: single answers, lists and watches. Knows no HTTP. A Form is
hashable, so that watchers who want the same share their frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from apiserver.registry.table import TableConvertor

MediaType = Literal["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"]
Conversion = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]


@dataclass(frozen=True, slots=True)
class Form:
    """How an answer is to look."""

    media_type: MediaType = "application/json"
    """Protobuf knows no custom resources: only their metadata, and failures, are written in it."""
    as_: Conversion = ""
    """What the object is converted to; nothing for the object itself."""
    version: str = "v1"
    """The version of meta.k8s.io for a conversion: v1 or v1beta1."""
    pretty: bool = False
    """Indented JSON: asked for with `pretty`, or guessed from a browser's or curl's User-Agent as kube-apiserver does."""
    include_object: str = ""
    """What a table's rows carry: None, Metadata (also when empty) or Object."""
    tables: TableConvertor | None = None
    """The resource's own table layout; never None when `as_` is Table."""

    @property
    def is_plain(self) -> bool:
        """Whether the bytes that are kept for an object can be sent as they are."""
        return not self.as_ and not self.pretty and self.media_type == "application/json"

    @property
    def is_protobuf(self) -> bool:
        """Whether it is protobuf."""
        return self.media_type == "application/vnd.kubernetes.protobuf"

    @property
    def meta_api_version(self) -> str:
        """The apiVersion of a converted answer."""
        return f"meta.k8s.io/{self.version}"


PLAIN = Form()
PRETTY = Form(pretty=True)
