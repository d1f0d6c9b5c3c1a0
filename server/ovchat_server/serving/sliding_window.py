"""How much was used within the last minute."""

from __future__ import annotations

from bisect import insort

# In milliseconds: whole numbers, which add up exactly.
WINDOW = 60_000
# What is used within so many of them counts as one use: a bound on what is kept, and added up.
GRAIN = 1000


class SlidingWindow:
    """Counts what is used within a minute, of at most `limit`.

    What goes beyond the limit, because it was known afterwards, is put where there is room again:
    in the long run nobody has more than the limit. Times are in seconds that only go on.
    """

    def __init__(self, limit: int) -> None:
        """Count from zero."""
        self.limit = limit
        # When and how much, the earliest first. Some may lie ahead.
        self._uses: list[tuple[int, int]] = []

    def remaining(self, now: float) -> int:
        """Return how much may be used at `now`."""
        return max(0, self.limit - self._used(_milliseconds(now)))

    def use(self, amount: int, now: float) -> None:
        """Count that as much is used."""
        at = _milliseconds(now)
        self._uses = [use for use in self._uses if use[0] > at - WINDOW]
        while amount > 0:
            part = min(amount, self.limit - self._used(at))
            if part > 0:
                self._put(at, part)
                amount -= part
            if amount:
                at = self._next_room(at)

    def free_after(self, now: float) -> float:
        """Return the seconds until something may be used."""
        at = begun = _milliseconds(now)
        while self._used(at) >= self.limit:
            at = self._next_room(at)
        return (at - begun) / 1000

    def reset_after(self, now: float) -> float:
        """Return the seconds until all of the limit may be used."""
        last = self._uses[-1][0] if self._uses else -WINDOW
        return max(0, last + WINDOW - _milliseconds(now)) / 1000

    def _put(self, at: int, amount: int) -> None:
        if self._uses and 0 <= at - self._uses[-1][0] < GRAIN:
            at, before = self._uses.pop()
            amount += before
        insort(self._uses, (at, amount))

    def _used(self, at: int) -> int:
        return sum(amount for begun, amount in self._uses if at - WINDOW < begun <= at)

    def _next_room(self, at: int) -> int:
        """Return when the first use ends of those that have not ended at `at`."""
        return next(begun + WINDOW for begun, _ in self._uses if begun > at - WINDOW)


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
