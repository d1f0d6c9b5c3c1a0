"""Requests that make no sense, but have the keys and the words of an API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def junk(keys: str, words: str) -> SearchStrategy[Any]:
    """JSON of the keys and words that two texts list."""
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    return st.recursive(
        scalars | st.sampled_from(words.split()),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(keys.split()) | st.text(), inner, max_size=5)
        ),
        max_leaves=30,
    )


def junk_fields(junk: SearchStrategy[Any], required: str, *names: str) -> SearchStrategy[Any]:
    """The fields of a request with some of the names."""
    return st.fixed_dictionaries({required: junk}, optional=dict.fromkeys(names, junk))
