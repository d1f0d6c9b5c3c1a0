"""Stop strings, matched on text whatever the tokens' borders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.markup import overlap

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
        self.matched: str | None = None

    def feed(self, text: str) -> str:
        """What may be handed out now that `text` came. After a match: nothing."""
        if self.matched is not None:
            return ""
        self._held += text
        found = [(at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            # The match that is whole first, as if the text came one character at a time: so
            # the pieces' borders change nothing. Of several that end together, the longest.
            at, self.matched = min(found, key=lambda match: (match[0] + len(match[1]), match[0]))
            end = at + len(self.matched) if self._include else at
            passed, self._held = self._held[:end], ""
            return passed
        keep = max((overlap(self._held, stop) for stop in self._stops), default=0)
        passed = self._held[: len(self._held) - keep]
        self._held = self._held[len(self._held) - keep :]
        return passed

    def flush(self) -> str:
        """What was held back, at the end of the text."""
        held, self._held = self._held, ""
        return held
