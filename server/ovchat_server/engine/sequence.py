"""A sequence that is scheduled, from its coming to its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.messages import Add
    from ovchat_server.engine.scheduler import Handle


@dataclass(slots=True)
class ScheduledSequence:
    """One sequence, or the beams of a search, which run and are given up together.

    Attributes:
        request: What was asked for.
        tokens: What came of it so far.
        handle: Where it runs; None: it waits.
        drops: Times that the pipeline dropped it.
        steps: Steps since it runs. A search does not tell its length: it grows by a token a
            step at most.
        added: What it was added to the pipeline with, the last time.
        repeated: Tokens that come once more, because it began anew where it had begun before.
    """

    request: Add
    tokens: list[int] = field(default_factory=list)
    handle: Handle | None = None
    drops: int = 0
    steps: int = 0
    added: Add | None = None
    repeated: list[int] = field(default_factory=list)
    _repeatable: bool = True

    @property
    def length(self) -> int:
        """Tokens of prompt and answer so far."""
        grown = len(self.tokens) if self.request.beams == 1 else self.steps
        return len(self.request.prompt) + grown

    @property
    def constrained(self) -> bool:
        """Whether it cannot go on anywhere else."""
        return bool(self.request.grammar) and not self.request.resumptions

    @property
    def longest(self) -> int:
        """Tokens of prompt and answer at the most."""
        return len(self.request.prompt) + self.request.max_tokens

    def next(self, grammar: str) -> Add:
        """What to add to the pipeline now.

        With what there is as a prompt, and `grammar` for the rest. Where a grammar was lost,
        as it was added before: its own seed makes the tokens that it has already once more,
        which is how it comes to their end with its grammar. A search starts anew, too.
        """
        done = len(self.tokens)
        self.repeated = []
        if done == 0:
            self.added = self.request
        elif self.request.grammar and not grammar and self._repeatable and self.added:
            begun = len(self.added.prompt) - len(self.request.prompt)
            self.repeated = self.tokens[begun:]
        else:
            self.added = msgspec.structs.replace(
                self.request,
                prompt=(*self.request.prompt, *self.tokens),
                max_tokens=self.request.max_tokens - done,
                min_tokens=max(self.request.min_tokens - done, 0),
                # It must not draw the same random numbers again.
                seed=(self.request.seed + done) % 2**32,
                grammar=grammar,
            )
        return self.added

    def repeats(self, tokens: Sequence[int], *, ended: bool) -> int:
        """How many of the tokens that came now came before.

        Beside other sequences numbers round in another way, which may make other tokens. Then
        this is negative, and the sequence goes on without its grammar next time.
        """
        count = min(len(tokens), len(self.repeated))
        same = self.repeated[:count] == [*tokens[:count]]
        if not same or (ended and count < len(self.repeated)):
            self._repeatable = False
            self.repeated = []
            return -1
        del self.repeated[:count]
        return count
