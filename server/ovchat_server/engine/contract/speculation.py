"""How many tokens a sequence has in a step."""

from __future__ import annotations

from dataclasses import dataclass, replace

# A step takes about as long for so many rows as for two (AVX-512 with VNNI, weights of 8 bits).
CHEAP_ROWS = 8


@dataclass(frozen=True, slots=True)
class Speculation:
    """How many tokens are proposed for each step of a sequence, and how they are found.

    Attributes:
        num_assistant_tokens: The number of tokens that are proposed; 0 for none.
        max_ngram_size: How many of the last tokens are looked up at most in those before them;
            what followed there is proposed. 0 where nothing is proposed.
    """

    num_assistant_tokens: int = 0
    max_ngram_size: int = 0

    def beside(self, running: int) -> Speculation:
        """Return what to propose to a sequence while so many run, itself among them."""
        if running == 1 or not self.proposes:
            return self
        most = max(CHEAP_ROWS // running - 1, 1)
        return replace(self, num_assistant_tokens=min(self.num_assistant_tokens, most))

    @property
    def proposes(self) -> bool:
        """Whether anything is proposed."""
        return self.num_assistant_tokens > 0

    @property
    def rows(self) -> int:
        """How many tokens a step reads of a running sequence: its last one and those proposed.

        As many may come of it: of those proposed as many as are right, and one more.
        """
        return 1 + self.num_assistant_tokens

    @property
    def look_ahead(self) -> int:
        """For how many more tokens there must be room before a step: for the next one, too.

        A sequence that is cancelled keeps its blocks for a step. Without room in that step genai
        leaves out another one, and proposes its tokens twice (2026.4.1).
        """
        return 2 * self.rows


NO_SPECULATION = Speculation()
