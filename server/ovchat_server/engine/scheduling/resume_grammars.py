"""The grammars that preempted sequences resume with, compiled when they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.engine.scheduling.resumption import resumed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ovchat_server.engine.scheduling.sequence import ScheduledSequence


class ResumeGrammars:
    """Finds the grammar of the rest of a sequence, and knows which of them are being compiled."""

    def __init__(
        self, text: Callable[[Sequence[int]], str], compiled: Callable[[str], bool | None]
    ) -> None:
        """Begin with no sequence waiting.

        Args:
            text: Returns tokens as text.
            compiled: Returns whether a grammar is compiled, and has it compiled if not; None if it
                does not compile.
        """
        self._text = text
        self._compiled = compiled
        self._missing: set[str] = set()

    def of(self, sequence: ScheduledSequence) -> str | None:
        """Return the grammar of a sequence's rest, "" for any text; None if none can begin."""
        request = sequence.request.generation
        if not (sequence.tokens and request.grammar):
            return request.grammar
        if sequence.constrained:
            return None
        rest = resumed(request.grammar, request.resumptions, self._text(sequence.tokens))
        return rest if rest and self._compiled(rest) is not None else None

    def waits(self, rest: str | None) -> bool:
        """Return whether a sequence has to wait until this grammar is compiled."""
        if not rest or self._compiled(rest) is not False:
            return False
        self._missing.add(rest)
        return True

    def look_again(self) -> None:
        """Forget which sequences wait: others may be admitted now."""
        self._missing.clear()

    @property
    def missing(self) -> bool:
        """Whether sequences wait, and none of their grammars has been compiled since."""
        known = [self._compiled(grammar) for grammar in self._missing]
        return bool(known) and all(item is False for item in known)
