"""A model's tokenizer, from Hugging Face's `tokenizer.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tokenizers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class TokenizerError(Exception):
    """A model's folder has no usable tokenizer."""


class Tokenizer:
    """Text to tokens and back."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        """Wrap a tokenizer; its truncation and padding are turned off."""
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        self._longest_token = max(len(token) for token in vocabulary)
        added = tokenizer.get_added_tokens_decoder().values()
        self.control_tokens = frozenset(token.content for token in added if token.special)
        self.markup_tokens = frozenset(token.content for token in added if not token.special)

    @classmethod
    def load(cls, directory: Path) -> Tokenizer:
        """The tokenizer of a model's folder.

        Raises:
            TokenizerError: There is none, or it cannot be read.
        """
        path = directory / "tokenizer.json"
        if not path.is_file():
            raise TokenizerError("there is no tokenizer.json")
        try:
            return cls(tokenizers.Tokenizer.from_file(str(path)))
        except Exception as error:  # tokenizers raises bare Exception
            raise TokenizerError(f"tokenizer.json cannot be read: {error}") from error

    def token(self, text: str) -> int | None:
        """The id of a single token, None where there is none of that text."""
        return self._tokenizer.token_to_id(text)

    def encode(self, text: str, *, special_tokens: bool = False) -> list[int]:
        """The tokens of `text`, nothing added: a template writes its own control tokens."""
        # Unlike `encode`, the batch form leaves the GIL: 8 MB of text take seconds.
        [encoding] = self._tokenizer.encode_batch_fast([text], add_special_tokens=special_tokens)
        return encoding.ids

    def fewest_tokens(self, text: str) -> int:
        """How many tokens `text` has at the least, known without tokenising it."""
        return len(text) // self._longest_token

    def decode(self, tokens: Sequence[int], *, special_tokens: bool = False) -> str:
        """The text of `tokens` without control tokens; bytes that are no UTF-8 as U+FFFD."""
        return self._tokenizer.decode(tokens, skip_special_tokens=not special_tokens)

    def token_bytes(self, token: int) -> bytes:
        """The bytes of a token."""
        return self._tokenizer.decode([token], skip_special_tokens=False).encode()

    @property
    def vocabulary_size(self) -> int:
        """The number of ids."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)
