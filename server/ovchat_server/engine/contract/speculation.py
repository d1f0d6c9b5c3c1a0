"""What may be proposed of an answer before it is generated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Speculation:
    """How tokens are found that are likely to come; a step checks several of them at once.

    Attributes:
        num_assistant_tokens: The maximum number of tokens that are proposed for a step; 0 for none.
        max_ngram_size: How many of the last tokens are looked up in those before them; what
            followed there is proposed. 0: a draft model proposes.
        assistant_confidence_threshold: How likely the draft model must find each token that it
            proposes, 0 to 1.
    """

    num_assistant_tokens: int = 0
    max_ngram_size: int = 0
    assistant_confidence_threshold: float = 0.0

    @property
    def proposes(self) -> bool:
        """Whether anything is proposed."""
        return self.num_assistant_tokens > 0

    @property
    def drafts(self) -> bool:
        """Whether it is a draft model that proposes."""
        return self.proposes and not self.max_ngram_size


NO_SPECULATION = Speculation()
