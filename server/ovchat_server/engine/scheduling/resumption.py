"""The grammar with which a preempted sequence is resumed.

A grammar begins at the first token that is generated: a sequence that is resumed as prompt and
tokens so far starts it anew. Where most of an answer is free text, and only the calls in it have a
format, there are positions where another grammar describes the rest: the text says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ovchat_server.engine.contract.generation import Resumption


def resumed(grammar: str, resumptions: Sequence[Resumption], text: str) -> str:
    """Return the grammar of the rest of an answer, or "" if none can begin here.

    The text is read from its beginning, mark by mark: always the first of those that count after
    the last one, and of several at the same position the longest.

    Args:
        grammar: The grammar of an answer from its beginning.
        resumptions: The grammars after marks.
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
    # A grammar that begins within a mark does not see it.
    return "" if _ends_within_mark(text[place:], counting) else grammar


def _ends_within_mark(text: str, marks: Iterable[Resumption]) -> bool:
    return any(
        text.endswith(item.mark[:count]) for item in marks for count in range(1, len(item.mark))
    )
