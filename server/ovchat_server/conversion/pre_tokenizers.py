"""How texts are cut into words before they become tokens, by the names that GGUF files have for it.

The rules are those of the models' own `tokenizer.json`; llama.cpp has the same in its own spelling
(llama-vocab.cpp, llm_tokenizer_bpe).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokenizers import Regex, normalizers, pre_tokenizers

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_BREAKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def _words(numbers: str) -> str:
    letters = r"[^\r\n\p{L}\p{N}]?\p{L}+"
    return rf"{_SHORT}|{letters}|{numbers}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_BREAKS}"


_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
    rf"\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_BREAKS}"
)
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """How one kind of model cuts texts into words.

    Attributes:
        patterns: Each cuts what those before it left.
        composed: Whether texts are put into Unicode's NFC first.
        whole_words: Whether a word that is a token is not merged from its letters.
        adds_bos: Whether a text begins with the BOS token, where the file does not say it.
    """

    patterns: tuple[str, ...]
    composed: bool = False
    whole_words: bool = False
    adds_bos: bool = False

    def pre_tokenizer(self) -> pre_tokenizers.PreTokenizer:
        """Return it as tokenizers has it."""
        cuts = [pre_tokenizers.Split(Regex(each), "isolated") for each in self.patterns]
        letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return pre_tokenizers.Sequence([*cuts, letters])

    def normalizer(self) -> normalizers.Normalizer | None:
        """Return what is done to texts before."""
        return normalizers.NFC() if self.composed else None


_LLAMA3 = PreTokenizer((_words(r"\p{N}{1,3}"),), whole_words=True, adds_bos=True)
_QWEN2 = PreTokenizer((_words(r"\p{N}"),), composed=True)

PRE_TOKENIZERS: Mapping[str, PreTokenizer] = {
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "smollm": PreTokenizer((r"\p{N}", _GPT2)),
    "gpt-2": PreTokenizer((_GPT2,)),
    "tekken": PreTokenizer((_TEKKEN,), whole_words=True, adds_bos=True),
}
