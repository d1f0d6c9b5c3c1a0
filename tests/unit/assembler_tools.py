"""Assembling one choice as a reader of any speed gets its tokens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ovchat_server.chat.assembler import AssemblyOptions, ChoiceAssembler
from ovchat_server.chat.collector import ChoiceCollector
from ovchat_server.chat.dialects.base import ParserOptions
from ovchat_server.chat.dialects.registry import choose_dialects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.chat.assembler import Alternatives
    from ovchat_server.chat.detokenizer import TokenDecoder
    from ovchat_server.domain.completion import Choice, ChunkChoice, FinishReason


@dataclass
class Assembled:
    """What came of a choice."""

    chunks: list[ChunkChoice]
    assembler: ChoiceAssembler

    @property
    def choice(self) -> Choice:
        """The whole choice."""
        collector = ChoiceCollector(blocks=True)
        for chunk in self.chunks:
            collector.add(chunk)
        return collector.choice()


def assembled(  # noqa: PLR0913  all that an engine brings
    decoder: TokenDecoder,
    groups: Sequence[Sequence[int]],
    options: AssemblyOptions,
    reason: FinishReason,
    logprobs: Sequence[float] = (),
    *,
    alternatives: Sequence[Alternatives] = (),
) -> Assembled:
    """Feed `groups` of tokens; the last one comes with the engine's reason to end."""
    assembler = ChoiceAssembler(0, decoder, options)
    chunks: list[ChunkChoice] = []
    groups = groups or [[]]
    start = 0
    for number, group in enumerate(groups):
        finish = reason if number == len(groups) - 1 else None
        end = start + len(group)
        chunks += assembler.feed(group, logprobs[start:end], finish, alternatives[start:end])
        start = end
        if assembler.ended:
            break
    return Assembled(chunks, assembler)


def options_of(
    *,
    reasoning: bool = False,
    reasoning_opened: bool = False,
    tool_calls: bool = False,
    **fields: Any,
) -> AssemblyOptions:
    """Options of a model that reasons as Qwen3 does and calls as Hermes does."""
    dialects = choose_dialects(
        "", "hermes" if tool_calls else "none", "qwen3" if reasoning else "none"
    )
    calls = ParserOptions() if tool_calls else None
    parser = partial(dialects.parser, calls, opened=reasoning and reasoning_opened)
    return AssemblyOptions(parser=parser, marks_reasoning=reasoning, **fields)
