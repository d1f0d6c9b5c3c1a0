"""Clients of whom something was slow lately."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# Seconds for which it is remembered: the machine may have been busy.
SLOW_FOR: Final = 60.0
REMEMBERED_CLIENTS = 1024


class SlowClients:
    """Remembers them for a while, the latest ones if there are many."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with none; `clock` returns seconds."""
        self._clock = clock
        # Until when, by client, those first who were slow first.
        self._until: OrderedDict[str, float] = OrderedDict()

    def add(self, client: str) -> None:
        """Note that a client was slow just now."""
        self._until[client] = self._clock() + SLOW_FOR
        self._until.move_to_end(client)
        if len(self._until) > REMEMBERED_CLIENTS:
            self._until.popitem(last=False)

    def __contains__(self, client: str) -> bool:
        """Return whether a client was slow lately."""
        return self._clock() < self._until.get(client, -math.inf)
