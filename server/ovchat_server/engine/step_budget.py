"""How many tokens of prompts a step may read, so that those that run do not wait long for it."""

from __future__ import annotations

# Where nothing was measured yet, and at the least: a step costs much however little it reads.
FIRST_TOKENS, MIN_TOKENS = 256, 64
# What the last step weighs against those before it.
WEIGHT = 0.3


class StepBudget:
    """What the machine reads in a given time, by how long it took lately."""

    def __init__(self, max_seconds: float, max_tokens: int) -> None:
        """Let a step take `max_seconds` (0: any time), and read `max_tokens` at the most."""
        self.max_tokens = max_tokens
        self._max_seconds = max_seconds
        # Tokens a second.
        self._pace: float | None = None

    @property
    def tokens(self) -> int:
        """Tokens of prompts that fit into a step."""
        if not self._max_seconds:
            return self.max_tokens
        wanted = FIRST_TOKENS if self._pace is None else int(self._pace * self._max_seconds)
        return min(max(wanted, MIN_TOKENS), self.max_tokens)

    def note(self, tokens: int, seconds: float) -> None:
        """Learn from a step that read `tokens`."""
        pace = tokens / max(seconds, 1e-6)
        if self._pace is None:
            self._pace = pace
        elif tokens * 2 >= self.tokens or pace > self._pace:
            # A step that reads little says little of how fast it could have read more.
            self._pace += WEIGHT * (pace - self._pace)
