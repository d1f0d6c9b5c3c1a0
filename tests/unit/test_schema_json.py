"""JSON as it is written into grammars."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ovchat_server.grammar.json_text import json_text

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    scalars.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(values)
def test_a_value_is_written_on_one_line_and_read_as_it_was(value: Any) -> None:
    text = json_text(value)

    assert json.loads(text) == value
    assert "\n" not in text


def test_it_is_laid_out_as_people_do() -> None:
    assert json_text({"a": [1, 2.5, None], "ß": {}}) == '{"a": [1, 2.5, null], "ß": {}}'
