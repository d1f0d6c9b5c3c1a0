"""Assembling one choice as a reader of any speed gets its tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.chat.assembler import ChoiceAssembler
from ovchat_server.chat.collector import ChoiceCollector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.api.completion import Choice, ChunkChoice, FinishReason
    from ovchat_server.chat.assembler import AssemblyOptions
    from ovchat_server.chat.detokenizer import TokenDecoder


@dataclass
class Assembled:
    """What came of a choice."""

    chunks: list[ChunkChoice]
    assembler: ChoiceAssembler

    @property
    def choice(self) -> Choice:
        """The whole choice."""
        collector = ChoiceCollector()
        for chunk in self.chunks:
            collector.add(chunk)
        return collector.choice()


def assembled(
    decoder: TokenDecoder,
    groups: Sequence[Sequence[int]],
    options: AssemblyOptions,
    reason: FinishReason,
    logprobs: Sequence[float] = (),
) -> Assembled:
    """Feed `groups` of tokens; the last one comes with the engine's reason to end."""
    assembler = ChoiceAssembler(0, decoder, options)
    chunks: list[ChunkChoice] = []
    groups = groups or [[]]
    start = 0
    for number, group in enumerate(groups):
        finish = reason if number == len(groups) - 1 else None
        end = start + len(group)
        chunks += assembler.feed(group, logprobs[start:end], finish)
        start = end
        if assembler.ended:
            break
    return Assembled(chunks, assembler)
