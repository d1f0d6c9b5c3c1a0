"""Which processors serve, and which compute."""

from __future__ import annotations

import pytest

from ovchat_server.processors import serving


@pytest.mark.parametrize(
    ("available", "served_on"),
    [({0}, {0}), ({3}, {3}), ({0, 1}, {1}), ({2, 3, 5}, {3, 5})],
)
def test_the_first_processor_is_the_engines_if_there_is_another(
    available: set[int], served_on: set[int]
) -> None:
    assert serving(frozenset(available)) == served_on
