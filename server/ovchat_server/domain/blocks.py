"""An answer as a sequence of blocks: its reasoning, its text, its calls, in the order they came.

APIs that give each of them an object of its own, and events where it begins and ends, are written
from blocks: those of a stream, joined, are those of the whole.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ovchat_server.domain.completion import ChunkChoice, TokenLogprob


class BlockKind(StrEnum):
    """What a block is."""

    REASONING = "reasoning"
    TEXT = "text"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Block:
    """A block, or what is new of one.

    Attributes:
        text: Of a call: its arguments.
        call_index: Of a call: which one of the choice it is, from 0.
        call_id: Of a call: its id, at least where it begins; the same holds for `name`.
        logprobs: Of a text, where they were asked for.
    """

    kind: BlockKind
    text: str
    call_index: int | None = None
    call_id: str = ""
    name: str = ""
    logprobs: tuple[TokenLogprob, ...] = ()

    @property
    def identity(self) -> tuple[BlockKind, int | None]:
        """What tells it from the block before and the one after it."""
        return self.kind, self.call_index


def blocks_of(chunk: ChunkChoice) -> Iterator[Block]:
    """Yield what is new of each block in a chunk."""
    delta = chunk.delta
    if delta.reasoning_content:
        yield Block(BlockKind.REASONING, delta.reasoning_content)
    if delta.content:
        yield Block(BlockKind.TEXT, delta.content, logprobs=chunk.content_logprobs)
    for call in delta.tool_calls:
        yield Block(
            BlockKind.CALL,
            call.arguments or "",
            call_index=call.index,
            call_id=call.id or "",
            name=call.name or "",
        )


def joined(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Join neighbours that belong to one block."""
    return tuple(_join(list(group)) for _, group in groupby(blocks, lambda block: block.identity))


def _join(parts: list[Block]) -> Block:
    return dataclasses.replace(
        parts[0],
        text="".join(part.text for part in parts),
        logprobs=tuple(logprob for part in parts for logprob in part.logprobs),
    )
