"""What a request asked and was answered, kept for its trace where that is wanted."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ovchat_server.chat.collector import ChoiceCollector
from ovchat_server.domain.completion import ChunkChoice, Delta
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.text import TextRequest

# Of the texts of an answer, in characters.
MOST: Final = 64 << 10
# Where more was said than is kept.
CUT: Final = "[cut]"


@dataclass(slots=True)
class RecordedContent:
    """The content of a request and of its answer.

    Attributes:
        request: The request; None until it was read.
        choices: What was said in each choice, by its index, as far as it is kept.
        ended: The indices of those that have ended.
        cut: The indices of those of which more was said.
        room: How many characters of the answer may still be kept.
    """

    request: ChatRequest | TextRequest | None = None
    choices: defaultdict[int, ChoiceCollector] = field(
        default_factory=lambda: defaultdict(ChoiceCollector)
    )
    ended: set[int] = field(default_factory=set)
    cut: set[int] = field(default_factory=set)
    room: int = MOST

    async def collected(
        self, chunks: AsyncGenerator[ChunkChoice, None]
    ) -> AsyncGenerator[ChunkChoice, None]:
        """Yield the chunks of an answer, and keep what they say."""
        async with contextlib.aclosing(chunks):
            async for chunk in chunks:
                self._keep(chunk)
                yield chunk

    def _keep(self, chunk: ChunkChoice) -> None:
        index, delta = chunk.index, chunk.delta
        if (size := _size(delta)) and self.room <= 0:
            delta = Delta() if index in self.cut else Delta(content=CUT)
            self.cut.add(index)
        self.room -= size
        # Without log probabilities and tokens, which nobody shows.
        self.choices[index].add(ChunkChoice(index, delta, chunk.finish_reason))
        if chunk.finish_reason is not None:
            self.ended.add(index)


def _size(delta: Delta) -> int:
    texts = (
        delta.content,
        delta.reasoning_content,
        *(text for call in delta.tool_calls for text in (call.id, call.name, call.arguments)),
    )
    return sum(len(text) for text in texts if text)


def recorded(chunks: AsyncGenerator[ChunkChoice, None]) -> AsyncGenerator[ChunkChoice, None]:
    """Return the chunks of the answer to the current request, which its record keeps if it may."""
    content = current_record().content
    return content.collected(chunks) if content else chunks
