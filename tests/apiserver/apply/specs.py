"""What hypothesis draws of things."""

from __future__ import annotations

from hypothesis import strategies as st

SHORT = st.sampled_from("abc")
LEAVES = st.fixed_dictionaries({}, optional={"left": SHORT, "right": SHORT})
BRANCHES = st.fixed_dictionaries({}, optional={"leaf": LEAVES, "size": st.integers(0, 2)})
TAGS = st.lists(st.sampled_from("pqrs"), min_size=1, max_size=4, unique=True)
ITEMS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("ABC")}, optional={"value": SHORT, "tags": TAGS}),
    min_size=1,
    max_size=3,
    unique_by=lambda item: item["name"],
)
PORTS = st.lists(
    st.fixed_dictionaries({"port": st.integers(1, 2)}, optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": SHORT}),
    min_size=1,
    max_size=3,
    unique_by=lambda port: (port["port"], port.get("protocol", "TCP")),
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "count": st.integers(0, 2),
        "note": SHORT,
        "flag": st.booleans(),
        "branch": BRANCHES,
        "items": ITEMS,
        "ports": PORTS,
        "tags": TAGS,
        "numbers": st.lists(st.integers(0, 1), max_size=2),
        "options": st.dictionaries(SHORT, SHORT, max_size=2),
        "groups": st.dictionaries(SHORT, BRANCHES, max_size=2),
        "selector": st.dictionaries(SHORT, SHORT, max_size=2),
        "extra": st.dictionaries(
            SHORT, st.one_of(SHORT, st.booleans(), st.integers(0, 1), st.dictionaries(SHORT, SHORT, max_size=1)), max_size=2
        ),
    },
)
"""Empty lists of items are left out: applying one says nothing, and yet makes it where there is none."""
