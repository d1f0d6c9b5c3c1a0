"""Chunks, joined as the reader of a stream has them in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.chat.collector import ChoiceCollector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ovchat_server.domain.completion import Choice, ChunkChoice


def collected(chunks: Iterable[ChunkChoice], count: int) -> list[Choice]:
    collectors = [ChoiceCollector() for _ in range(count)]
    for chunk in chunks:
        collectors[chunk.index].add(chunk)
    return [collector.choice() for collector in collectors]
