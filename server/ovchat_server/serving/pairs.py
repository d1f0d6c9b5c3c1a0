"""Pairs of texts as rerankers read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ovchat_server.engine.contract.pooling_engine import TokenizedText

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.tokenizer.huggingface import Tokenizer

# What Qwen3's rerankers were trained with (their model card).
_QWEN3_BEFORE = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    'the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
    "<|im_start|>user\n"
)
_QWEN3_PAIR = (
    "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n"
    "<Query>: {query}\n<Document>:"
)
_QWEN3_BEHIND = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


@dataclass(frozen=True, slots=True)
class PairBounds:
    """How many tokens of pairs are kept. The second text is cut at its end; None: it is not.

    Attributes:
        tokens: Of a pair, with all that stands around the texts.
        second_tokens: Of the second text.
    """

    tokens: int | None = None
    second_tokens: int | None = None


class PairTemplate(Protocol):
    """Makes the tokens of pairs."""

    def encode(
        self, tokenizer: Tokenizer, first: str, seconds: Sequence[str], bounds: PairBounds
    ) -> list[TokenizedText]:
        """Return the tokens of a text with each of some others, in their order.

        Args:
            tokenizer: The model's.
            first: The first text of all pairs, such as a query.
            seconds: The second texts, such as documents.
            bounds: What is kept. Nothing but second texts is cut: a pair may still be longer.
        """
        ...


class CrossEncoderPairs:
    """Pairs as the tokenizer joins them, with its special tokens."""

    def encode(
        self, tokenizer: Tokenizer, first: str, seconds: Sequence[str], bounds: PairBounds
    ) -> list[TokenizedText]:
        """See PairTemplate."""
        pairs = tokenizer.encode_pairs(
            first, seconds, most_tokens=bounds.tokens, most_second=bounds.second_tokens
        )
        return [TokenizedText.of(tokens, second) for tokens, second in pairs]


class Qwen3Pairs:
    """Pairs in the prompt of Qwen3's rerankers."""

    def encode(
        self, tokenizer: Tokenizer, first: str, seconds: Sequence[str], bounds: PairBounds
    ) -> list[TokenizedText]:
        """See PairTemplate."""
        before = tokenizer.encode(_QWEN3_BEFORE + _QWEN3_PAIR.format(query=first))
        behind = tokenizer.encode(_QWEN3_BEHIND)
        most = bounds.second_tokens
        if bounds.tokens is not None:
            room = max(bounds.tokens - len(before) - len(behind), 0)
            most = room if most is None else min(room, most)
        # The space in front of a document is a part of its first token.
        documents = tokenizer.encode_batch([f" {document}" for document in seconds])
        return [TokenizedText.of([*before, *tokens[:most], *behind]) for tokens in documents]
