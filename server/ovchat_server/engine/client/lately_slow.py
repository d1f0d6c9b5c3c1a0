"""What was slow lately: clients, or grammars of theirs."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

# Seconds for which it is remembered: the machine may have been busy.
SLOW_FOR: Final = 60.0
REMEMBERED = 1024


class LatelySlow:
    """Remembers it for a while, the latest if there is much."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with nothing; `clock` returns seconds."""
        self._clock = clock
        # Until when, what was slow first first.
        self._until: OrderedDict[Hashable, float] = OrderedDict()

    def add(self, slow: Hashable) -> None:
        """Note that something was slow just now."""
        self._until[slow] = self._clock() + SLOW_FOR
        self._until.move_to_end(slow)
        if len(self._until) > REMEMBERED:
            self._until.popitem(last=False)

    def __contains__(self, item: Hashable) -> bool:
        """Return whether something was slow lately."""
        return self._clock() < self._until.get(item, -math.inf)
