"""Counting what is under way, by whose it is."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator


@contextlib.contextmanager
def counted(counts: Counter[str], whose: str) -> Iterator[None]:
    """Count one more meanwhile. Who has none takes no room in `counts`."""
    counts[whose] += 1
    try:
        yield
    finally:
        counts[whose] -= 1
        if not counts[whose]:
            del counts[whose]
