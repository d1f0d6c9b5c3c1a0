"""Whose prompts share what the prefix cache has."""

from __future__ import annotations

import itertools

from ovchat_server.engine.contract.prompt import CACHE_SALTS, CALLERS_SALTS
from ovchat_server.serving.cache_salts import CacheSalts

CALLERS = [
    *itertools.product(("", "ann", "bob"), (None, "s", "t")),
    ("", "ann"),
    ("spiffe://td/team", "s"),
    ("spiffe://td/team/s", None),
]


def test_callers_have_salts_of_their_own_and_more_if_they_say_so() -> None:
    salts = CacheSalts()
    found = [salts.salt(name, given) for name, given in CALLERS]
    assert found == [salts.salt(name, given) for name, given in CALLERS]
    assert len({*found}) == len(CALLERS)
    # Who has neither a key nor a salt shares it with all the others.
    assert found[0] == 0
    assert all(CALLERS_SALTS <= salt < CACHE_SALTS for salt in found[1:])


def test_nobody_can_know_the_salts_of_a_server() -> None:
    assert CacheSalts().salt("ann", None) != CacheSalts().salt("ann", None)
