"""How much was used within the last minute."""

from __future__ import annotations

from collections import deque

# In milliseconds: whole numbers, which add up exactly.
WINDOW = 60_000
# What is used within so many of them counts as one use: a bound on what is kept, and added up.
GRAIN = 1000


class SlidingWindow:
    """Counts what is used within a minute, of at most `limit`.

    What goes beyond the limit, because it was known afterwards, is a debt: it takes the room that
    comes free until it is paid, so that in the long run nobody has more than the limit. Times are
    in seconds that only go on.
    """

    def __init__(self, limit: int) -> None:
        """Count from zero."""
        self.limit = limit
        # When and how much, the earliest first; their sum, and what has yet to find room.
        self._uses: deque[tuple[int, int]] = deque()
        self._used = self._debt = 0

    def remaining(self, now: float) -> int:
        """Return how much may be used at `now`."""
        self._go_on(now)
        return max(0, self.limit - self._used)

    def use(self, amount: int, now: float) -> None:
        """Count that as much is used."""
        at = self._go_on(now)
        self._debt += amount
        self._pay(at)

    def free_after(self, now: float) -> float:
        """Return the seconds until something may be used."""
        at = self._go_on(now)
        if self._used < self.limit:
            return 0.0
        return (self._freed(self._debt + self._used - self.limit + 1) - at) / 1000

    def reset_after(self, now: float) -> float:
        """Return the seconds until all of the limit may be used."""
        at = self._go_on(now)
        if not self._uses:
            return 0.0
        last = self._freed(self._debt) if self._debt else self._uses[-1][0]
        return (last + WINDOW - at) / 1000

    def _go_on(self, now: float) -> int:
        """Drop what is older than a minute, have debts take its room, and return the time."""
        at = round(now * 1000)
        if self._debt and self._uses:
            # As often as all that is used ended, and was used again: in one go.
            rounds = min((at - self._uses[-1][0]) // WINDOW, self._debt // self._used)
            if rounds > 0 and self._used <= self.limit:
                self._debt -= rounds * self._used
                self._uses = deque((use + rounds * WINDOW, much) for use, much in self._uses)
        while self._uses and (end := self._uses[0][0] + WINDOW) <= at:
            self._used -= self._uses.popleft()[1]
            self._pay(end)
        self._pay(at)
        return at

    def _pay(self, at: int) -> None:
        """Use what is owed, as far as there is room."""
        part = min(self._debt, self.limit - self._used)
        if part <= 0:
            return
        self._debt -= part
        self._used += part
        if self._uses and at - self._uses[-1][0] < GRAIN:
            at, before = self._uses.pop()
            part += before
        self._uses.append((at, part))

    def _freed(self, amount: int) -> int:
        """Return when as much will have ended, if what ends is used again at once."""
        rounds, rest = divmod(amount - 1, self._used)
        for begun, much in self._uses:
            if rest < much:
                return begun + (rounds + 1) * WINDOW
            rest -= much
        raise AssertionError("what is used is the sum of its parts")
