"""How much was used within the last minute."""

from __future__ import annotations

from bisect import insort

# Seconds.
WINDOW = 60.0
# What is used within so many seconds counts as one use: a bound on what is kept.
GRAIN = 0.1


class SlidingWindow:
    """Counts what is used within a minute, of at most `limit`.

    What goes beyond the limit, because it was known afterwards, is put where there is room again:
    in the long run nobody has more than the limit.
    """

    def __init__(self, limit: int) -> None:
        """Count from zero."""
        self.limit = limit
        # When and how much, the earliest first. Some may lie ahead.
        self._uses: list[tuple[float, int]] = []

    def remaining(self, now: float) -> int:
        """Return how much may be used at `now`, in seconds that only go on."""
        return max(0, self.limit - self._used(now))

    def use(self, amount: int, now: float) -> None:
        """Count that as much is used."""
        self._forget(now)
        at = now
        while amount > 0:
            part = min(amount, self.limit - self._used(at))
            if part > 0:
                self._put(at, part)
                amount -= part
            at = self._next_room(at)

    def free_after(self, now: float) -> float:
        """Return the seconds until something may be used."""
        at = now
        while self._used(at) >= self.limit:
            at = self._next_room(at)
        return at - now

    def reset_after(self, now: float) -> float:
        """Return the seconds until all of the limit may be used."""
        self._forget(now)
        return self._uses[-1][0] + WINDOW - now if self._uses else 0.0

    def _put(self, at: float, amount: int) -> None:
        if self._uses and 0 <= at - self._uses[-1][0] < GRAIN:
            at, before = self._uses.pop()
            amount += before
        insort(self._uses, (at, amount))

    def _used(self, at: float) -> int:
        return sum(amount for begun, amount in self._uses if at - WINDOW < begun <= at)

    def _next_room(self, at: float) -> float:
        """Return when a use ends that counts at `at`, or one begins that lies ahead."""
        return next((begun + WINDOW for begun, _ in self._uses if begun > at - WINDOW), at)

    def _forget(self, now: float) -> None:
        self._uses = [use for use in self._uses if use[0] > now - WINDOW]
