"""Stop strings, matched on text regardless of token boundaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class StopMatcher:
    """Lets text pass until a stop string appears in it.

    Holds back only the end of the text that may still become a match, so the first piece
    of an answer does not wait for the longest stop string (the engine's own matching does).
    """

    def __init__(self, stops: Sequence[str], *, include: bool = False) -> None:
        """Match any of `stops`, none of them empty; `include` lets the match itself pass."""
        self._stops = tuple(stops)
        self._include = include
        self._held = ""
        # How much of what is held came while not armed.
        self._immune = 0
        self._cut = 0
        self.matched: str | None = None

    @property
    def behind(self) -> int:
        """Characters behind those that passed: held back, or cut off with the match."""
        return len(self._held) + self._cut

    def feed(self, text: str, *, armed: bool = True) -> str:
        """Add text and return the text that may be sent; nothing after a match.

        A match that is complete while not `armed` is text like any other.
        """
        if self.matched is not None:
            return ""
        if not self._stops:
            return text
        self._held += text
        if not armed:
            self._immune = len(self._held)
        found = [(at, stop) for stop in self._stops if (at := self._find(stop)) >= 0]
        if found:
            # The match that is complete first, as if the text came one character at a time: so
            # the boundaries of pieces change nothing. Of several that end together, the longest.
            at, self.matched = min(found, key=lambda match: (match[0] + len(match[1]), match[0]))
            end = at + len(self.matched) if self._include else at
            passed, self._cut, self._held = self._held[:end], len(self._held) - end, ""
            return passed
        keep = max((overlap(self._held, stop) for stop in self._stops), default=0)
        passed = self._held[: len(self._held) - keep]
        self._held = self._held[len(passed) :]
        self._immune = max(self._immune - len(passed), 0)
        return passed

    def _find(self, stop: str) -> int:
        """Return where the first match begins that ends in text added while armed, or -1."""
        return self._held.find(stop, max(self._immune - len(stop) + 1, 0))

    def flush(self) -> str:
        """End the text and return what was held back."""
        held, self._held = self._held, ""
        return held


def overlap(text: str, stop: str) -> int:
    """Return the length of the longest suffix of `text` that is a proper prefix of `stop`."""
    longest = min(len(stop) - 1, len(text))
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
