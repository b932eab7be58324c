"""The admission chain: an ordered list of mutators, then an ordered list of validators, asked for each write.

The registry calls it as a function that it was given (`apiserver.registry.write.Admission`), inside its update loop: whoever is in the
chain may be asked again for the same request. An empty chain costs nothing.
Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apiserver.meta.resource import ResourceKind
    from apiserver.registry.write import Admission
    from apiserver.request import Call

Operation = Literal["CREATE", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is known of a write before its object is: who wants to do what, where."""

    call: Call
    """User, warnings and address."""
    kind: ResourceKind
    operation: Operation
    dry_run: bool


class Mutator(Protocol):
    """Changes an object before the rules of its kind are applied; must give the same result when it is asked again."""

    @property
    def operations(self) -> frozenset[Operation]:
        """The writes in which it has a say: it is asked in no other."""

    async def mutate(self, attributes: Attributes, value: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
        """Change `value` in place; raise an APIError to refuse. See `apiserver.registry.write.Admission`."""


class Validator(Protocol):
    """Looks at a complete object."""

    @property
    def operations(self) -> frozenset[Operation]:
        """The writes in which it has a say: it is asked in no other."""

    async def validate(self, attributes: Attributes, value: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
        """Raise an APIError to refuse."""


class Chain:
    """All who are asked, in the order in which they are."""

    def __init__(self, mutators: Sequence[Mutator] = (), validators: Sequence[Validator] = ()) -> None:
        self._asked = {
            operation: (
                tuple(mutator for mutator in mutators if operation in mutator.operations),
                tuple(validator for validator in validators if operation in validator.operations),
            )
            for operation in get_args(Operation)
        }

    def bind(self, call: Call, kind: ResourceKind, operation: Operation, *, dry_run: bool) -> Admission | None:
        """The chain for one request; None when nobody in it has a say: what is written is then copied for nobody."""
        mutators, validators = self._asked[operation]
        if not mutators and not validators:
            return None
        return _Bound(mutators, validators, Attributes(call, kind, operation, dry_run))


@dataclass(frozen=True, slots=True)
class _Bound:
    mutators: tuple[Mutator, ...]
    validators: tuple[Validator, ...]
    attributes: Attributes

    async def mutate(self, value: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
        for mutator in self.mutators:
            await mutator.mutate(self.attributes, value, old)

    async def validate(self, value: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
        for validator in self.validators:
            await validator.validate(self.attributes, value, old)
