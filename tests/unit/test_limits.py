"""How deep JSON is, as a value and as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from ovchat_server.domain.limits import deeper, text_deeper

if TYPE_CHECKING:
    from ovchat_server.domain.json_value import JsonValue

# What may be taken for structure.
TEXT = st.text('[]{}"\\,:a')
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | TEXT | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)  # type: ignore[operator]
    ),
    max_leaves=20,
)


@given(VALUES, st.integers(1, 6))
@example("[[", 1)
def test_a_text_is_as_deep_as_what_it_says(value: JsonValue, depth: int) -> None:
    assert text_deeper(json.dumps(value), depth) == deeper(value, depth)
