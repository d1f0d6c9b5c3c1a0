"""Tokens to text, piece by piece, without ever cutting a character."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# A character of UTF-8 has at most four bytes, and a token at least one. Bytes that are not
# text after that many tokens never will be, and are handed out as replacements.
MAX_TOKENS_A_CHARACTER = 4


class TokenDecoder(Protocol):
    """What a detokenizer needs of a tokenizer."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`; bytes that are not UTF-8 as U+FFFD."""
        ...


class Detokenizer:
    """The text of one sequence, as its tokens arrive.

    The text of a token depends on the one before it (a leading space, bytes of one
    character), so each token is decoded together with those of the last piece handed out,
    and what is new is the difference. Text that ends in the middle of a character is held
    back until the character is whole.
    """

    def __init__(self, decoder: TokenDecoder) -> None:
        """Start an empty sequence."""
        self._decoder = decoder
        # The tokens of the last piece, then those whose text was not handed out yet.
        self._window: list[int] = []
        self._seen = 0

    def feed(self, token: int) -> str:
        """The text that is whole now that `token` came; often none."""
        self._window.append(token)
        return self._take(hold_back=len(self._window) - self._seen < MAX_TOKENS_A_CHARACTER)

    def flush(self) -> str:
        """What was held back, at the end of the sequence."""
        return self._take(hold_back=False)

    def _take(self, *, hold_back: bool) -> str:
        before = self._decoder.decode(self._window[: self._seen])
        text = self._decoder.decode(self._window)
        if hold_back and text.endswith(REPLACEMENT):
            return ""
        if len(text) <= len(before):
            return ""
        self._window = self._window[self._seen :]
        self._seen = len(self._window)
        return text[len(before) :]
