"""How a sequence under a grammar goes on when it has lost its place in the engine.

A grammar begins at the first token that is generated: whoever comes back as prompt + tokens so
far begins it anew. Where most of an answer is free text, and only calls in it have a form, there
are places where that is right: the text says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.base import Resumption


def resumed(grammar: str, resumptions: Sequence[Resumption], text: str) -> str:
    """The grammar of what follows `text`, the answer so far; "" for anything.

    Args:
        grammar: That of an answer from its beginning.
        resumptions: That behind some marks: the last one in the text counts.
        text: The answer so far.
    """
    found = [(text.rfind(item.mark), item.grammar) for item in resumptions]
    place, follows = max(found, key=lambda item: item[0], default=(-1, grammar))
    return grammar if place < 0 else follows
