"""How a sequence under a grammar goes on when it has lost its place in the engine.

A grammar begins at the first token that is generated: whoever comes back as prompt + tokens so
far begins it anew. Where most of an answer is free text, and only calls in it have a form, there
are places where that is right: the text says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ovchat_server.engine.contract.generation import Resumption


def resumed(grammar: str, resumptions: Sequence[Resumption], text: str) -> str:
    """Return the grammar of what follows `text`, the answer so far; "" if none can begin there.

    The text is read from its beginning, mark by mark: the next one of those that count behind
    the last, and of some at the same place the longest.

    Args:
        grammar: Of an answer from its beginning.
        resumptions: The grammars that follow some marks.
        text: The answer so far.
    """
    counting, place = [*resumptions], 0
    while found := [item for item in counting if item.mark in text[place:]]:
        at, _, last = min(
            ((text.index(item.mark, place), -len(item.mark), item) for item in found),
            key=lambda each: each[:2],
        )
        grammar, place = last.grammar, at + len(last.mark)
        # The answer begins once.
        following = [item for item in resumptions if item.mark]
        counting = [item for item in following if not last.until or item.mark in last.until]
    # A grammar that begins inside of a mark does not see it.
    return "" if _ends_inside_mark(text[place:], counting) else grammar


def _ends_inside_mark(text: str, marks: Iterable[Resumption]) -> bool:
    """Return whether a text ends with the beginning of a mark."""
    return any(
        text.endswith(item.mark[:count]) for item in marks for count in range(1, len(item.mark))
    )
