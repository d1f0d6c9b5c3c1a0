"""Texts and conversations to tokens, tokens to text: what is asked and answered, validated."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.api.chat import ChatRequest


class PaddingSide(StrEnum):
    """Where padding goes."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class TextsInput:
    """Texts, as the tokenizer takes them: what is written like a control token becomes one.

    Attributes:
        texts: At least one, tokenised each by itself.
        special_tokens: Add those that the tokenizer puts around a text, such as BOS.
        max_length: Most tokens of a text, special ones included; the end is cut off.
        pad: Fill up to `max_length`, or to the model's context where there is none.
    """

    texts: tuple[str, ...]
    special_tokens: bool = True
    max_length: int | None = None
    pad: bool = False
    padding_side: PaddingSide = PaddingSide.RIGHT


@dataclass(frozen=True, slots=True)
class TokenizeRequest:
    """What to tokenise.

    Attributes:
        input: Texts, or what would be asked of the model in a chat.
        token_strings: Tell also how the vocabulary writes the tokens.
        ignored: Names of the fields that are unknown here.
    """

    model: str
    input: TextsInput | ChatRequest
    token_strings: bool = False
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """The tokens of one text.

    Attributes:
        strings: How the vocabulary writes them, such as "Ġthe"; None where not asked for.
    """

    tokens: Sequence[int]
    strings: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Tokenized:
    """The tokens of one or more texts.

    Attributes:
        sequences: In the order of the texts; a conversation is one.
        context_length: Most tokens of prompt and answer together that the model takes.
    """

    sequences: tuple[TokenSequence, ...]
    context_length: int

    @property
    def count(self) -> int:
        """How many tokens there are, in all sequences together."""
        return sum(len(sequence.tokens) for sequence in self.sequences)


@dataclass(frozen=True, slots=True)
class DetokenizeRequest:
    """What to turn into text.

    Attributes:
        tokens: Ids; whether the model knows them is not checked yet.
        ignored: Names of the fields that are unknown here.
    """

    model: str
    tokens: Sequence[int]
    ignored: tuple[str, ...] = ()
