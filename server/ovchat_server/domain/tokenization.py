"""Validated requests to tokenize and detokenize, and their answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.domain.chat import ChatRequest


class PaddingSide(StrEnum):
    """The side of a text on which it is padded."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class TextsInput:
    """Texts to tokenize, in which the text of a special token is read as that token.

    Attributes:
        texts: The texts, at least one; each is tokenized by itself.
        special_tokens: Whether the tokenizer adds special tokens, such as BOS.
        max_length: The maximum number of tokens of a text, including special tokens; the end of
            a longer one is cut off.
        pad: Whether to pad to `max_length` or, if that is None, to the model's context.
        name: The parameter that has them.
    """

    texts: tuple[str, ...]
    special_tokens: bool = True
    max_length: int | None = None
    pad: bool = False
    padding_side: PaddingSide = PaddingSide.RIGHT
    name: str = field(default="text", compare=False)


@dataclass(frozen=True, slots=True)
class TokenizeRequest:
    """A request to tokenize.

    Attributes:
        input: The texts, or the chat request whose prompt is tokenized.
        token_strings: Whether the tokens are also returned as the vocabulary writes them.
        ignored: The names of unknown fields.
    """

    model: str
    input: TextsInput | ChatRequest
    token_strings: bool = False
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenSequence:
    """The tokens of one text.

    Attributes:
        strings: The tokens as the vocabulary writes them, such as "Ġthe"; None if not requested.
    """

    tokens: Sequence[int]
    strings: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Tokenized:
    """The tokens of one or more texts.

    Attributes:
        sequences: The tokens of each text, in order; a conversation is one text.
        context_length: The model's maximum number of tokens of prompt and answer together.
    """

    sequences: tuple[TokenSequence, ...]
    context_length: int

    @property
    def count(self) -> int:
        """The number of tokens in all sequences."""
        return sum(len(sequence.tokens) for sequence in self.sequences)


@dataclass(frozen=True, slots=True)
class DetokenizeRequest:
    """A request to detokenize.

    Attributes:
        tokens: The token ids; not checked against the vocabulary yet.
        ignored: The names of unknown fields.
    """

    model: str
    tokens: Sequence[int]
    ignored: tuple[str, ...] = ()
