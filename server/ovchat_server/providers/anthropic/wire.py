"""What answers look like on the wire; fields that nobody reads are left out.

All are optional as far as an answer makes sense without them.
"""

from __future__ import annotations

from typing import Any

import msgspec

NO_INPUT = msgspec.Raw(b"{}")


class OutputDetails(msgspec.Struct, frozen=True):
    """Of the answer's tokens."""

    thinking_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True):
    """How many tokens it took; of the prompt's, each is counted in one of three places."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


class Block(msgspec.Struct, frozen=True):
    """A text, a thought, a call or something else that an answer is made of."""

    type: str
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    # As it was written: the order of its keys is the model's.
    input: msgspec.Raw = NO_INPUT


class Delta(msgspec.Struct, frozen=True):
    """What is new of a block, or of the message."""

    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    stop_reason: str | None = None
    stop_sequence: str | None = None


class Message(msgspec.Struct, frozen=True):
    """A whole answer; of one that is streamed, its beginning."""

    type: str
    content: list[Block] | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: Usage | None = None
    error: Any = None


class Event(msgspec.Struct, frozen=True):
    """An event of a stream; its type says which fields it has."""

    type: str
    index: int = 0
    message: Message | None = None
    content_block: Block | None = None
    delta: Delta | None = None
    usage: Usage | None = None
    error: Any = None
