"""Which processors serve, and which compute."""

from __future__ import annotations

import pytest

from ovchat_server.processors import serving


@pytest.mark.parametrize(
    ("available", "servers", "served_on"),
    [
        ({0}, 1, {0}),
        ({3}, 1, {3}),
        ({0, 1}, 1, {1}),
        ({2, 3, 5}, 1, {3, 5}),
        ({0, 1}, 2, {0, 1}),
        ({2, 3, 5}, 2, {3, 5}),
    ],
)
def test_the_first_processor_is_the_engines_if_each_server_has_another(
    available: set[int], servers: int, served_on: set[int]
) -> None:
    assert serving(frozenset(available), servers) == served_on
    assert serving(frozenset(available), servers, engines=False) == available
