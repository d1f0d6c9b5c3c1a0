"""Pairs of texts as rerankers read them: what stands around the second text of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

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
class PairFrame:
    """The tokens around the second text of a pair, those of the first one among them.

    Attributes:
        typed: Whether the second text has a token type of its own, up to the end.
    """

    before: Sequence[int]
    behind: Sequence[int]
    typed: bool = False

    @property
    def count(self) -> int:
        """The number of these tokens."""
        return len(self.before) + len(self.behind)


class PairTemplate(Protocol):
    """How a model reads pairs.

    Attributes:
        lead: What stands before second texts, as a part of their first token.
    """

    lead: ClassVar[str]

    def frame(self, tokenizer: Tokenizer, first: str) -> PairFrame:
        """Return what stands around the second text of each pair with a first text."""
        ...


class CrossEncoderPairs:
    """Pairs as the tokenizer joins them, with its special tokens; see PairTemplate."""

    lead: ClassVar[str] = ""

    def frame(self, tokenizer: Tokenizer, first: str) -> PairFrame:
        """See PairTemplate."""
        around = tokenizer.pair_frame
        before = [*around.before, *tokenizer.encode(first), *around.between]
        return PairFrame(before, around.behind, around.typed)


class Qwen3Pairs:
    """Pairs in the prompt of Qwen3's rerankers; see PairTemplate."""

    lead: ClassVar[str] = " "

    def frame(self, tokenizer: Tokenizer, first: str) -> PairFrame:
        """See PairTemplate."""
        before = tokenizer.encode(_QWEN3_BEFORE + _QWEN3_PAIR.format(query=first))
        return PairFrame(before, tokenizer.encode(_QWEN3_BEHIND))
