"""The number of prompt tokens that a step may read without holding up running sequences."""

from __future__ import annotations

# At least, and before anything was measured.
MIN_TOKENS = 64
# The weight of the last step against those before it.
WEIGHT = 0.3
# A step that reads may take so many times as long as one that does not. All weights pass through
# the processor in each, so that short steps of a large model would do little else.
TIMES_BARE = 4
# The same where nobody waits for the step but those whose prompts are read.
TIMES_ALONE = 2


class StepBudget:
    """Estimates how many tokens the machine reads in a given time from recent steps."""

    def __init__(self, max_seconds: float, max_tokens: int) -> None:
        """Let a step take at most `max_seconds` (0 for any time) and read at most `max_tokens`."""
        self.max_tokens = max_tokens
        self._max_seconds = max_seconds
        # Tokens a second; 0 before anything was measured.
        self._pace = 0.0
        # Seconds of a step that reads nothing.
        self._bare = 0.0

    def tokens(self, *, streaming: bool) -> int:
        """Return the number of prompt tokens that fit into a step, beside streams or not."""
        if not self._max_seconds:
            return self.max_tokens
        seconds = max(self._max_seconds, TIMES_BARE * self._bare)
        if not streaming:
            seconds *= TIMES_ALONE
        return min(max(int(self._pace * seconds), MIN_TOKENS), self.max_tokens)

    def note(self, tokens: int, seconds: float) -> None:
        """Learn from a step that read `tokens`."""
        if not tokens:
            self._bare += WEIGHT * (seconds - self._bare)
            return
        pace = tokens / max(seconds, 1e-6)
        if not self._pace:
            self._pace = pace
        elif tokens * 2 >= self.tokens(streaming=True) or pace > self._pace:
            # A step that reads little says little of how fast it could have read more.
            self._pace += WEIGHT * (pace - self._pace)
