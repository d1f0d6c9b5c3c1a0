"""The exact bytes that tokens stand for, as the tokenizer describes its decoding.

Decoding tokens to text loses them where a token is a part of a character, and a tokenizer
writes its tokens in letters of its own: a byte each (GPT-2), or "▁" for a space and `<0xE2>`
for a byte (SentencePiece).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokenizers.pre_tokenizers import ByteLevel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# As tokenizers reads it: two hexadecimal digits, nothing else.
FALLBACK_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
BYTES = 256


def _byte_alphabet() -> dict[str, int]:
    """Return GPT-2's letters for bytes: printable ones are their own, others follow from 256."""
    letters = sorted(ByteLevel.alphabet())
    own = {letter: ord(letter) for letter in letters if ord(letter) < BYTES}
    others = sorted(set(range(BYTES)) - set(own.values()))
    return own | dict(zip(letters[len(own) :], others, strict=True))


BYTE_ALPHABET = _byte_alphabet()


@dataclass(frozen=True, slots=True)
class TokenBytes:
    """Reads tokens as one tokenizer writes them.

    Attributes:
        byte_level: A letter is a byte.
        byte_fallback: `<0xE2>` is a byte.
        replaced: Texts and what they stand for, in order.
    """

    byte_level: bool
    byte_fallback: bool
    replaced: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, decoder: Mapping[str, Any] | None) -> TokenBytes:
        """Read the `decoder` of a `tokenizer.json`, None if it has none."""
        steps = list(_steps(decoder)) if decoder else []
        kinds = {step["type"] for step in steps}
        return cls(
            byte_level="ByteLevel" in kinds,
            byte_fallback="ByteFallback" in kinds,
            replaced=tuple(pair for step in steps if (pair := _replaced(step))),
        )

    def __call__(self, token: str) -> bytes:
        """Return the bytes of a token."""
        fallback = FALLBACK_BYTE.fullmatch(token) if self.byte_fallback else None
        if fallback:
            return bytes([int(fallback[1], 16)])
        for written, meant in self.replaced:
            token = token.replace(written, meant)
        if self.byte_level and all(letter in BYTE_ALPHABET for letter in token):
            return bytes(BYTE_ALPHABET[letter] for letter in token)
        return token.encode()


def _steps(decoder: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if decoder["type"] == "Sequence":
        for step in decoder["decoders"]:
            yield from _steps(step)
    else:
        yield decoder


def _replaced(step: Mapping[str, Any]) -> tuple[str, str] | None:
    match step:
        case {"type": "Metaspace", "replacement": str(letter)}:
            return letter, " "
        case {"type": "Replace", "pattern": {"String": str(written)}, "content": str(meant)}:
            return written, meant
    return None
