"""Who is asked about which writes."""

from __future__ import annotations

from typing import Any, cast

import pytest

from apiserver.admission.chain import Attributes, Chain, Operation


class Part:
    """Remembers what it was asked about."""

    def __init__(self, *operations: Operation) -> None:
        self.operations = frozenset(operations)
        self.asked: list[Operation] = []

    async def mutate(self, attributes: Attributes, value: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
        self.asked.append(attributes.operation)

    async def validate(self, attributes: Attributes, value: dict[str, Any] | None, old: dict[str, Any] | None) -> None:
        self.asked.append(attributes.operation)


async def test_each_is_asked_where_it_has_a_say() -> None:
    creating, both = Part("CREATE"), Part("CREATE", "DELETE")
    chain = Chain([creating], [both])
    operations: tuple[Operation, ...] = ("CREATE", "DELETE")
    for operation in operations:
        bound = chain.bind(cast(Any, None), cast(Any, None), operation, dry_run=False)
        assert bound is not None
        await bound.mutate({}, None)
        await bound.validate({}, None)
    assert (creating.asked, both.asked) == (["CREATE"], ["CREATE", "DELETE"])


@pytest.mark.parametrize("chain", [Chain(), Chain([Part("CREATE")], [Part("CREATE", "DELETE")])], ids=["empty", "of others"])
def test_where_nobody_has_a_say_there_is_no_chain(chain: Chain) -> None:
    assert chain.bind(cast(Any, None), cast(Any, None), "UPDATE", dry_run=False) is None
