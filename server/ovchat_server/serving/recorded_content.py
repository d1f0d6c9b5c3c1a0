"""What a request asked and was answered, kept for its trace where that is wanted."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ovchat_server.chat.collector import ChoiceCollector
from ovchat_server.serving.record import current_record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.completion import ChunkChoice
    from ovchat_server.domain.text import TextRequest


@dataclass(slots=True)
class RecordedContent:
    """The content of a request and of its answer.

    Attributes:
        request: The request; None until it was read.
        choices: What came of each choice, by its index.
        ended: The indices of those that have ended.
    """

    request: ChatRequest | TextRequest | None = None
    choices: defaultdict[int, ChoiceCollector] = field(
        default_factory=lambda: defaultdict(ChoiceCollector)
    )
    ended: set[int] = field(default_factory=set)

    async def collected(
        self, chunks: AsyncGenerator[ChunkChoice, None]
    ) -> AsyncGenerator[ChunkChoice, None]:
        """Yield the chunks of an answer, and keep what they say."""
        async with contextlib.aclosing(chunks):
            async for chunk in chunks:
                self.choices[chunk.index].add(chunk)
                if chunk.finish_reason is not None:
                    self.ended.add(chunk.index)
                yield chunk


def recorded(chunks: AsyncGenerator[ChunkChoice, None]) -> AsyncGenerator[ChunkChoice, None]:
    """Return the chunks of the answer to the current request, which its record keeps if it may."""
    content = current_record().content
    return content.collected(chunks) if content else chunks
