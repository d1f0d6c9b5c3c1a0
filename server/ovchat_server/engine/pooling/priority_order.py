"""Requests of one client in the order in which they run."""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from typing import Generic, TypeVar

Item = TypeVar("Item")


class PriorityOrder(Generic[Item]):
    """Items by priority, the lowest first, and of one priority in the order of their coming."""

    def __init__(self) -> None:
        """Start empty."""
        # Of an OrderedDict the first entry is found at once, however many were removed before it.
        self._levels: dict[int, OrderedDict[int, Item]] = {}
        self._priorities: list[int] = []

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._levels)

    @property
    def first(self) -> Item:
        """Return the first one; there is one."""
        return next(iter(self._levels[self._priorities[0]].values()))

    def add(self, priority: int, identifier: int, item: Item) -> None:
        """Add an item behind those of its priority."""
        if priority not in self._levels:
            self._levels[priority] = OrderedDict()
            insort(self._priorities, priority)
        self._levels[priority][identifier] = item

    def remove(self, priority: int, identifier: int) -> None:
        """Remove an item, which is here."""
        level = self._levels[priority]
        del level[identifier]
        if not level:
            del self._levels[priority]
            self._priorities.remove(priority)
