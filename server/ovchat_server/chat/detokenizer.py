"""Detokenizing a stream of tokens, without ever cutting a character."""

from __future__ import annotations

import codecs
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# A character of UTF-8 has at most four bytes, and a token at least one.
MAX_TOKENS_A_CHARACTER = 4
# Tokens that never become text are no reason to decode ever more of them at once.
MAX_WINDOW = 16


class TokenDecoder(Protocol):
    """What a detokenizer needs of a tokenizer."""

    def decode(self, tokens: Sequence[int], *, special_tokens: bool = False) -> str:
        """Return the text of `tokens`, with U+FFFD for bytes that are not UTF-8.

        Args:
            tokens: Ids of the vocabulary.
            special_tokens: Whether the text includes that of special tokens.
        """
        ...

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes that a token stands for, which need not be UTF-8 by themselves."""
        ...


class Detokenizer:
    """Turns the tokens of one sequence into text as they arrive.

    The text of a token depends on the one before it (a leading space, bytes of one
    character), so each token is decoded together with those of the last piece handed out,
    and what is new is the difference. Text that ends in the middle of a character is held
    back until the character is whole; bytes that no more tokens can make one are handed
    out as replacements.
    """

    def __init__(
        self,
        decoder: TokenDecoder,
        *,
        special_tokens: bool = False,
        dropped: Collection[int] = (),
    ) -> None:
        """Start an empty sequence.

        Args:
            decoder: The tokenizer of the tokens.
            special_tokens: Whether the text includes that of special tokens.
            dropped: Special tokens whose text is left out nevertheless.
        """
        self._decode = partial(decoder.decode, special_tokens=special_tokens)
        self._token_bytes = decoder.token_bytes
        self._dropped = dropped
        # The tokens of the last piece, then those that came since.
        self._window: list[int] = []
        self._new = 0
        # How much of the window's text was handed out.
        self._passed = 0

    def feed(self, token: int) -> str:
        """Add a token and return the text that is complete with it, which may be empty."""
        if token in self._dropped:
            return ""
        self._window.append(token)
        self._new += 1
        text = self._decode(self._window)
        if not text.endswith(REPLACEMENT):
            piece = text[self._passed :]
            if piece:
                self._forget(self._new, held=0)
            self._new = 0
            return piece
        if self._new < MAX_TOKENS_A_CHARACTER:
            return ""
        # Bytes so old are no character; those behind the last replacement may become one.
        piece = text[self._passed : -1]
        self._passed = max(self._passed, len(text) - 1)
        if len(self._window) > MAX_WINDOW and self._decodes_to_replacements():
            self._forget(MAX_TOKENS_A_CHARACTER, held=1)
        return piece

    def start(self, token: int) -> int:
        """Return where a token begins that comes next, in characters behind those handed out.

        One that goes on with a character begins where that does. Another begins behind it: bytes
        that never become a character are shown as a replacement.
        """
        if not self._new:
            return 0
        text = self._decode(self._window)
        if self._continues(token):
            text = self._without_cut_character()
        return max(len(text) - self._passed, 0)

    def flush(self) -> str:
        """End the sequence and return the text that was held back."""
        return self._rest(self._decode(self._window))

    def end(self) -> str:
        """End the sequence as `flush`, but for a character that the end cut off.

        Its first bytes are no text: whoever reads on, reads it whole.
        """
        text = self._decode(self._window)
        return self._rest(self._without_cut_character() if text.endswith(REPLACEMENT) else text)

    def _rest(self, text: str) -> str:
        piece = text[self._passed :]
        self._passed += len(piece)
        return piece

    def _continues(self, token: int) -> bool:
        """Return whether a token goes on with the character that the window's last bytes begin."""
        if not self._decode([token]):
            return True
        begun = _begun_character(b"".join(map(self._token_bytes, self._texts())))
        first = self._token_bytes(token)[:1]
        return bool(begun) and len((begun + first).decode(errors="replace")) == 1

    def _texts(self) -> list[int]:
        """Return the tokens of the window that are text: others have no part in a character."""
        return [token for token in self._window if self._decode([token])]

    def _without_cut_character(self) -> str:
        """Return the window's text up to the character that its last bytes begin, if they do."""
        tokens = self._texts()
        spelled = [self._token_bytes(token) for token in tokens]
        cut = len(_begun_character(b"".join(spelled)))
        while cut and cut >= len(spelled[-1]):
            cut -= len(spelled.pop())
            tokens.pop()
        text = self._decode(tokens)
        # The rest of the beginning stands at the end of a token that is text before it.
        return text.removesuffix(REPLACEMENT) if cut else text

    def _forget(self, keep: int, held: int) -> None:
        """Drop all but the last `keep` tokens, of whose text `held` characters are held back."""
        self._window = self._window[-keep:]
        self._passed = len(self._decode(self._window)) - held

    def _decodes_to_replacements(self) -> bool:
        """Return whether the last tokens alone show where the last replacement begins."""
        tail = self._decode(self._window[-MAX_TOKENS_A_CHARACTER:])
        return tail.endswith(2 * REPLACEMENT)


def _begun_character(data: bytes) -> bytes:
    """Return the bytes at the end that may become a character with more of them."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return decoder.getstate()[0]


def token_offsets(decoder: TokenDecoder, tokens: Sequence[int], text: str) -> list[int]:
    """Return where each of the tokens of `text` begins in it, in characters.

    Special tokens that the tokenizer added around the text begin at its ends.
    """
    detokenizer = Detokenizer(decoder, special_tokens=True)
    offsets: list[int] = []
    pieces: list[str] = []
    length = 0
    for token in tokens:
        offsets.append(length + detokenizer.start(token))
        pieces.append(detokenizer.feed(token))
        length += len(pieces[-1])
    around = max("".join([*pieces, detokenizer.flush()]).find(text), 0)
    return [min(max(offset - around, 0), len(text)) for offset in offsets]
